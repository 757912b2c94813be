//! A terminal for a test: the program under test is its session's leader, the test types.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any test needs, even on a machine that is busy with other things.
const DEADLINE: Duration = Duration::from_secs(60);

/// What the reading side of a terminal holds when it is full.
const TERMINAL_BYTES: libc::c_int = 4095;

pub struct Pty {
    master: File,
    child: Child,
    output: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// Closed: nobody reads the terminal any more.
    wake: Option<io::PipeWriter>,
    /// Nobody reads for now.
    is_held: Arc<AtomicBool>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Pty {
    /// Starts a command on a new terminal of this size: its three streams and its controlling
    /// terminal.
    pub fn spawn(mut command: Command, columns: u16, rows: u16) -> Pty {
        let (master, slave) = open(columns, rows).unwrap();
        let stdio = || slave.try_clone().unwrap();
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        // SAFETY: both calls are allowed between fork and exec and touch no memory.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() == -1 || libc::ioctl(0, libc::TIOCSCTTY, 0) == -1 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        let (sender, output) = channel();
        let mut terminal = master.try_clone().unwrap();
        let (woken, wake) = io::pipe().unwrap();
        let is_held = Arc::new(AtomicBool::new(false));
        let holds = Arc::clone(&is_held);
        let reader = thread::spawn(move || {
            let mut chunk = [0; 4096];
            // A terminal that nobody has open any more reports an error, not an end.
            while wait_for_input(&terminal, &woken) {
                while holds.load(Ordering::SeqCst) {
                    thread::park();
                }
                let Ok(count @ 1..) = terminal.read(&mut chunk) else { return };
                if sender.send(chunk[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let (wake, reader) = (Some(wake), Some(reader));
        Pty { master, child, output, seen: Vec::new(), wake, is_held, reader }
    }

    /// From now on nobody reads what is written, as with a pane that is held. Waits until the
    /// terminal is full.
    pub fn hold(&self) {
        self.is_held.store(true, Ordering::SeqCst);
        let begun = Instant::now();
        let mut held = 0;
        while held < TERMINAL_BYTES {
            assert!(begun.elapsed() < DEADLINE, "the program writes no more than {held} bytes");
            // SAFETY: the request writes one integer.
            unsafe { libc::ioctl(self.master.as_raw_fd(), libc::FIONREAD, &raw mut held) };
            thread::yield_now();
        }
    }

    /// Reads on.
    pub fn go_on(&self) {
        self.is_held.store(false, Ordering::SeqCst);
        self.reader.iter().for_each(|reader| reader.thread().unpark());
    }

    /// Types keys as a person does: `\r` is Enter, `\u{3}` is Ctrl-C.
    pub fn type_keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen output holds `text`; everything up to now, as it was written.
    pub fn wait_for(&mut self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let so_far = String::from_utf8_lossy(&self.seen).into_owned();
            if so_far.contains(text) {
                return so_far;
            }
            let left = DEADLINE.saturating_sub(begun.elapsed());
            match self.output.recv_timeout(left) {
                Ok(chunk) => self.seen.extend(chunk),
                Err(_) => panic!("no '{text}' on the terminal: {so_far}"),
            }
        }
    }

    /// Everything that was written up to now, waiting until `done` says that it is enough.
    pub fn wait_until(&mut self, what: &str, mut done: impl FnMut(&[u8]) -> bool) -> &[u8] {
        let begun = Instant::now();
        while !done(&self.seen) {
            match self.output.recv_timeout(DEADLINE.saturating_sub(begun.elapsed())) {
                Ok(chunk) => self.seen.extend(chunk),
                Err(_) => {
                    panic!("not on the terminal: {what}\n{}", String::from_utf8_lossy(&self.seen))
                }
            }
        }
        &self.seen
    }

    /// Another size, of which the program is told.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size = libc::winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the call reads one `winsize`.
        assert_eq!(
            unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) },
            0
        );
    }

    /// The person closes the window; the program's status.
    pub fn close(mut self) -> ExitStatus {
        drop(self.wake.take());
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        let (read, _) = io::pipe().unwrap();
        // In its place something else: this was the last descriptor of the terminal's other side.
        self.master = File::from(std::os::fd::OwnedFd::from(read));
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < DEADLINE, "the program lives on without a terminal");
            thread::yield_now();
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the program's end; its status and everything that it wrote.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let begun = Instant::now();
        while let Ok(chunk) = self.output.recv_timeout(DEADLINE.saturating_sub(begun.elapsed())) {
            self.seen.extend(chunk);
        }
        let text = String::from_utf8_lossy(&self.seen).into_owned();
        match self.child.try_wait().unwrap() {
            Some(status) => (status, text),
            None if begun.elapsed() < DEADLINE => (self.child.wait().unwrap(), text),
            None => panic!("the program does not end: {text}"),
        }
    }
}

/// False: nobody wants to know any more.
fn wait_for_input(terminal: &File, woken: &io::PipeReader) -> bool {
    let poll = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut fds = [poll(terminal.as_raw_fd()), poll(woken.as_raw_fd())];
    // SAFETY: the call gets a live array and its length.
    unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
    fds[1].revents == 0
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.go_on();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open(columns: u16, rows: u16) -> io::Result<(File, File)> {
    let size = libc::winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    let check = |result: i32| match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    };
    // SAFETY: the calls take descriptors that were just made, a live `winsize`, and a buffer
    // with its length; each descriptor gets one owner.
    unsafe {
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        let master = File::from_raw_fd(check(libc::posix_openpt(flags))?);
        check(libc::grantpt(master.as_raw_fd()))?;
        check(libc::unlockpt(master.as_raw_fd()))?;
        check(libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size))?;
        let mut name = [0; 128];
        check(-libc::ptsname_r(master.as_raw_fd(), name.as_mut_ptr(), name.len()).signum())?;
        let slave = File::from_raw_fd(check(libc::open(name.as_ptr(), flags))?);
        Ok((master, slave))
    }
}
