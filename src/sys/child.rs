//! Child processes: start in a session of their own, signal, wait.
//!
//! A child is started by `clone` with shared memory, the caller standing still until the program
//! runs, as `posix_spawn` does it: the cost does not grow with the memory of this process (a
//! fork of 100 MB takes eight times as long). Unlike `posix_spawn` it can put its own number on
//! a pipe before the program starts, so that there is no moment in which it runs unannounced.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::sys::check;

/// What to start, complete: nothing is taken from this process but its open descriptors without
/// the close-on-exec mark, ignored signals, limits and user.
pub struct Launch<'a> {
    /// A path; `PATH` is not searched.
    pub program: &'a CStr,
    /// `argv`, the program's name first.
    pub args: &'a [CString],
    /// `NAME=value`.
    pub env: &'a [CString],
    pub cwd: &'a CStr,
    /// Descriptors 0, 1 and 2 of the child. They must themselves be above 2, as everything is
    /// that a Rust program opens.
    pub stdio: [BorrowedFd<'a>; 3],
    /// Gets `+PID\n` before the program starts, and `-PID\n` when it could not be started.
    pub announce: Option<BorrowedFd<'a>>,
}

/// What failed in a [`launch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchStage {
    Clone,
    Descriptors,
    Directory,
    Program,
}

#[derive(Debug)]
pub struct LaunchError {
    pub stage: LaunchStage,
    pub source: io::Error,
}

/// Enough for the calls that the child makes; a page fault takes the memory only when used.
const STACK_BYTES: usize = 32 * 1024;

/// All that the child reads and writes between `clone` and `execve`, made before.
struct Plan {
    program: *const libc::c_char,
    argv: Vec<*const libc::c_char>,
    envp: Vec<*const libc::c_char>,
    cwd: *const libc::c_char,
    stdio: [RawFd; 3],
    announce: RawFd,
    stage: AtomicI32,
    /// 0, or why the child ended before the program ran.
    errno: AtomicI32,
}

/// Starts a program as the leader of a new session (and so without a controlling terminal) and
/// of a new process group, both named by its process id, which is returned.
///
/// Returns when the program runs or could not be started. The child must be waited for.
pub fn launch(launch: &Launch<'_>) -> Result<u32, LaunchError> {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        let ends = std::iter::once(std::ptr::null());
        strings.iter().map(|string| string.as_ptr()).chain(ends).collect()
    };
    let plan = Plan {
        program: launch.program.as_ptr(),
        argv: pointers(launch.args),
        envp: pointers(launch.env),
        cwd: launch.cwd.as_ptr(),
        stdio: launch.stdio.map(|fd| fd.as_raw_fd()),
        announce: launch.announce.map_or(-1, |fd| fd.as_raw_fd()),
        stage: AtomicI32::new(0),
        errno: AtomicI32::new(0),
    };
    let pid =
        clone_with(&plan).map_err(|source| LaunchError { stage: LaunchStage::Clone, source })?;
    let errno = plan.errno.load(Ordering::Relaxed);
    if errno == 0 {
        return Ok(pid);
    }
    if let Some(fd) = launch.announce {
        let line = format!("-{pid}\n");
        // SAFETY: the pointer and the length describe `line`.
        unsafe { libc::write(fd.as_raw_fd(), line.as_ptr().cast(), line.len()) };
    }
    let _ = wait(pid);
    let stage = match plan.stage.load(Ordering::Relaxed) {
        1 => LaunchStage::Descriptors,
        2 => LaunchStage::Directory,
        _ => LaunchStage::Program,
    };
    Err(LaunchError { stage, source: io::Error::from_raw_os_error(errno) })
}

fn clone_with(plan: &Plan) -> io::Result<u32> {
    let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
    let top = stack.as_mut_ptr_range().end;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: a zeroed set is valid memory for `sigfillset` and `pthread_sigmask` to write.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: both sets are live. With every signal blocked no handler of this process can run
    // in the child while it shares our memory; the child unblocks them after its handlers are
    // gone.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    // SAFETY: the stack is aligned, grows down from its end, and like `plan` outlives the child's
    // use of it, because CLONE_VFORK holds this thread until the child has left our memory.
    // `child_main` makes only system calls.
    let pid = unsafe {
        let plan = std::ptr::from_ref(plan).cast_mut().cast();
        libc::clone(child_main, top.cast(), flags, plan)
    };
    let result = check(pid);
    // SAFETY: `before` was filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    drop(stack);
    result.map(|pid| u32::try_from(pid).unwrap_or(0))
}

/// The child from `clone` to `execve`: system calls only, no allocation, no panic, no lock.
extern "C" fn child_main(plan: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `clone_with` passes a `Plan` that lives until this process has left its memory.
    let plan = unsafe { &*plan.cast::<Plan>() };
    // SAFETY: these take no memory but that of `plan`, whose strings end with NUL and whose
    // lists end with null.
    unsafe {
        libc::setsid();
        if plan.announce >= 0 {
            announce(plan.announce);
        }
        for (target, source) in (0..).zip(plan.stdio) {
            if libc::dup2(source, target) == -1 {
                return fail(plan, 1);
            }
        }
        if libc::chdir(plan.cwd) == -1 {
            return fail(plan, 2);
        }
        reset_signals();
        libc::execve(plan.program, plan.argv.as_ptr(), plan.envp.as_ptr());
    }
    fail(plan, 3)
}

/// Writes `+PID\n` in one piece. A guard that is gone is no reason not to run.
///
/// # Safety
/// Only for the child between `clone` and `execve`.
unsafe fn announce(fd: RawFd) {
    let mut line = [0_u8; 16];
    let mut start = line.len() - 1;
    line[start] = b'\n';
    // SAFETY: no memory is involved.
    let mut rest = unsafe { libc::getpid() }.unsigned_abs();
    while rest > 0 && start > 1 {
        start -= 1;
        line[start] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    start -= 1;
    line[start] = b'+';
    // SAFETY: the range lies within `line`.
    unsafe { libc::write(fd, line[start..].as_ptr().cast(), line.len() - start) };
}

/// Signals as a program expects them: nothing blocked, SIGPIPE deadly, no handler of ours. What
/// was ignored when etch started (`nohup`) stays ignored.
///
/// # Safety
/// Only for the child between `clone` and `execve`.
unsafe fn reset_signals() {
    // SAFETY: zeroed sets and actions are valid memory for these calls to write.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        for signal in 1..=libc::SIGRTMAX() {
            let mut action: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0;
            let handler = action.sa_sigaction;
            if known && handler != libc::SIG_DFL && handler != libc::SIG_IGN {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

fn fail(plan: &Plan, stage: i32) -> libc::c_int {
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    plan.stage.store(stage, Ordering::Relaxed);
    plan.errno.store(errno, Ordering::Relaxed);
    // SAFETY: ends the child without running anything of the parent's.
    unsafe { libc::_exit(127) }
}

/// Sends `signal` (0 only asks) to a process.
pub fn kill(pid: u32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::kill(one_process(pid)?, signal) }).map(|_| ())
}

/// Sends `signal` to every member of a process group.
pub fn kill_group(group: u32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::kill(-one_process(group)?, signal) }).map(|_| ())
}

/// The id for a system call; never one that means "all" or "init".
fn one_process(pid: u32) -> io::Result<libc::pid_t> {
    match libc::pid_t::try_from(pid) {
        Ok(pid) if pid > 1 => Ok(pid),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "no process id to signal")),
    }
}

/// A descriptor that becomes readable when the process ends. Fails where the kernel has none
/// (before 5.3) or forbids it.
pub fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes two integers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, one_process(pid)?, 0) };
    let fd = check(i32::try_from(fd).unwrap_or(-1))?;
    // SAFETY: the kernel just made this descriptor (close-on-exec) for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits until a child has ended and takes its status: its id is free afterwards.
pub fn wait(pid: u32) -> io::Result<ExitStatus> {
    wait_with(pid, 0)?.ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))
}

/// [`wait`] that does not wait: `None` while the child runs.
pub fn wait_now(pid: u32) -> io::Result<Option<ExitStatus>> {
    wait_with(pid, libc::WNOHANG)
}

fn wait_with(pid: u32, flags: i32) -> io::Result<Option<ExitStatus>> {
    let pid = one_process(pid)?;
    let mut status = 0;
    loop {
        // SAFETY: `status` is a live int.
        match check(unsafe { libc::waitpid(pid, &raw mut status, flags) }) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(ExitStatus::from_raw(status))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until a child has ended but leaves it to be waited for: its id stays taken.
pub fn wait_keeping(pid: u32) -> io::Result<()> {
    let flags = libc::WEXITED | libc::WNOWAIT;
    loop {
        // SAFETY: a zeroed `siginfo_t` is valid memory for the call to write.
        let result = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, pid, &raw mut info, flags)
        };
        match check(result) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map(|_| ()),
        }
    }
}

/// The process group of a process (0: of this one); `None` when it is gone.
pub fn group_of(pid: u32) -> Option<u32> {
    // SAFETY: no memory is involved.
    let group = unsafe { libc::getpgid(libc::pid_t::try_from(pid).ok()?) };
    u32::try_from(group).ok()
}

/// The session of a process (0: of this one); `None` when it is gone.
pub fn session_of(pid: u32) -> Option<u32> {
    // SAFETY: no memory is involved.
    let session = unsafe { libc::getsid(libc::pid_t::try_from(pid).ok()?) };
    u32::try_from(session).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    fn strings(texts: &[&str]) -> Vec<CString> {
        texts.iter().map(|text| CString::new(*text).unwrap()).collect()
    }

    /// Runs a shell line; what it wrote, what it announced, and its status.
    fn run(line: &str, cwd: &CStr) -> Result<(String, String, ExitStatus), LaunchError> {
        let (stdin, _) = io::pipe().unwrap();
        let (mut output, out) = io::pipe().unwrap();
        let (mut announced, announce) = io::pipe().unwrap();
        let pid = launch(&Launch {
            program: c"/bin/sh",
            args: &strings(&["sh", "-c", line]),
            env: &strings(&["PATH=/usr/bin:/bin", "A=b c"]),
            cwd,
            stdio: [stdin.as_fd(), out.as_fd(), out.as_fd()],
            announce: Some(announce.as_fd()),
        })?;
        drop((out, announce));
        let (mut text, mut line) = (String::new(), String::new());
        output.read_to_string(&mut text).unwrap();
        announced.read_to_string(&mut line).unwrap();
        assert_eq!(line, format!("+{pid}\n"));
        wait_keeping(pid).unwrap();
        Ok((text, line, wait(pid).unwrap()))
    }

    #[test]
    fn a_child_leads_its_own_session_and_gets_exactly_what_it_was_given() {
        let (text, line, status) =
            run("echo $A; pwd; cut -d' ' -f5-7 /proc/$$/stat; exit 3", c"/").unwrap();
        let pid = line.trim().trim_start_matches('+');
        // Group, session and terminal.
        assert_eq!(text, format!("b c\n/\n{pid} {pid} 0\n"));
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn a_child_starts_with_no_signal_blocked_and_sigpipe_deadly() {
        let (text, ..) = run("grep -E 'SigBlk|SigIgn' /proc/self/status", c"/").unwrap();
        let mask = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap()
        };
        assert_eq!(mask("SigBlk"), 0);
        assert_eq!(mask("SigIgn") & (1 << (libc::SIGPIPE - 1)), 0);
    }

    #[test]
    fn a_failed_start_says_what_failed_and_leaves_nothing() {
        let error = run("true", c"/no/such/place").err().unwrap();
        assert_eq!(error.stage, LaunchStage::Directory);
        assert_eq!(error.source.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn signals_never_go_to_everyone() {
        for pid in [0, 1, u32::MAX] {
            assert_eq!(kill(pid, 0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
            assert_eq!(kill_group(pid, 0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn a_write_of_the_announcement_fits_the_longest_number() {
        let (mut reader, mut writer) = io::pipe().unwrap();
        // SAFETY: it only writes to the descriptor.
        unsafe { announce(writer.as_raw_fd()) };
        writer.write_all(b"|").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, format!("+{}\n|", std::process::id()));
    }
}
