//! The real binary as a test sees it: a clean environment, a home of its own, a deadline.
//!
//! Nothing of the developer's machine leaks in: the environment is empty but for `PATH`, and
//! home, working and temporary directories are fresh and removed afterwards. A child that does
//! not end is killed with its whole process group, and the test fails with what it had printed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any test needs, even on a machine that is busy with other things.
const DEADLINE: Duration = Duration::from_secs(60);

/// A directory that is removed when dropped.
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    pub fn new() -> TempDir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("etch-test-{}-{count}", std::process::id());
        let path = std::env::temp_dir().canonicalize().unwrap().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        TempDir { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file below, with the folders that it needs; its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.path.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Where a person works: a home and a directory inside it, kept over several commands.
pub struct Place {
    pub home: TempDir,
}

impl Place {
    pub fn new() -> Place {
        let home = TempDir::new();
        fs::create_dir(home.path().join("code")).unwrap();
        fs::create_dir(home.path().join("tmp")).unwrap();
        Place { home }
    }

    /// The working directory.
    pub fn work(&self) -> PathBuf {
        self.home.path().join("code")
    }

    /// Writes a file below the working directory.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.home.write(&format!("code/{name}"), content)
    }

    /// `etch ARGS` here.
    pub fn etch<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> TestCommand {
        self.command(env!("CARGO_BIN_EXE_etch"), args)
    }

    /// Runs a script here by `sh`; `$ETCH` is the binary.
    pub fn sh(&self, script: &str) -> TestCommand {
        self.command("sh", ["-c", script]).env("ETCH", env!("CARGO_BIN_EXE_etch"))
    }

    pub fn command<A: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> TestCommand {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.work()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.home.path()).env("TMPDIR", self.home.path().join("tmp"));
        TestCommand { command, input: Input::Null, deadline: DEADLINE }
    }
}

enum Input {
    Null,
    Bytes(Vec<u8>),
    As(Stdio),
}

/// One command line, run to its end by [`TestCommand::run`].
pub struct TestCommand {
    command: Command,
    input: Input,
    deadline: Duration,
}

impl TestCommand {
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> TestCommand {
        self.command.arg(arg);
        self
    }

    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> TestCommand {
        self.command.args(args);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> TestCommand {
        self.command.env(name, value);
        self
    }

    /// Relative to the place's working directory.
    pub fn dir(mut self, dir: impl AsRef<Path>) -> TestCommand {
        let now = self.command.get_current_dir().unwrap().join(dir);
        self.command.current_dir(now);
        self
    }

    /// A pipe with these bytes, closed after them.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> TestCommand {
        self.input = Input::Bytes(bytes.into());
        self
    }

    /// Any other standard input: a file, a socket, one end of a pipe that the test holds.
    pub fn stdin_as(mut self, stdin: impl Into<Stdio>) -> TestCommand {
        self.input = Input::As(stdin.into());
        self
    }

    pub fn deadline(mut self, deadline: Duration) -> TestCommand {
        self.deadline = deadline;
        self
    }

    pub fn spawn(mut self) -> Running {
        let (stdin, bytes) = match self.input {
            Input::Null => (Stdio::null(), None),
            Input::Bytes(bytes) => (Stdio::piped(), Some(bytes)),
            Input::As(stdio) => (stdio, None),
        };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let shown = format!("{:?}", self.command);
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        if let Some(bytes) = bytes {
            let mut pipe = child.stdin.take().unwrap();
            // The child may end without reading everything: that is its right.
            thread::spawn(move || drop(pipe.write_all(&bytes)));
        }
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        Running { child: Some(child), shown, stdout, stderr, deadline: self.deadline }
    }

    pub fn run(self) -> Ran {
        self.spawn().wait()
    }

    /// The bare command, to be started on a terminal.
    pub fn into_command(self) -> Command {
        self.command
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut chunk = [0_u8; 8192];
        while let Ok(len @ 1..) = pipe.read(&mut chunk) {
            if sender.send(chunk[..len].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// A command that was started.
pub struct Running {
    child: Option<Child>,
    shown: String,
    stdout: mpsc::Receiver<Vec<u8>>,
    stderr: mpsc::Receiver<Vec<u8>>,
    deadline: Duration,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends a signal by name, as in `INT`, to the process alone.
    pub fn signal(&self, name: &str) {
        kill(name, &self.pid().to_string());
    }

    /// Waits until standard error holds `text`; everything of it up to then.
    pub fn wait_for_stderr(&mut self, text: &str) -> String {
        self.wait_for(text, "stderr", &self.stderr)
    }

    /// The same of standard output. What was waited for is not seen again.
    pub fn wait_for_stdout(&mut self, text: &str) -> String {
        self.wait_for(text, "stdout", &self.stdout)
    }

    fn wait_for(&self, text: &str, name: &str, output: &mpsc::Receiver<Vec<u8>>) -> String {
        let mut seen = Vec::new();
        while let Ok(chunk) = output.recv_timeout(self.deadline) {
            seen.extend(chunk);
            let so_far = String::from_utf8_lossy(&seen);
            if so_far.contains(text) {
                return so_far.into_owned();
            }
        }
        self.kill();
        panic!("{}: no '{text}' on {name}: {}", self.shown, String::from_utf8_lossy(&seen));
    }

    /// Waits until a file exists; fails when the process ends first.
    pub fn wait_for_file(&self, path: &Path) {
        let limit = Instant::now() + self.deadline;
        let ended = || matches!(fs::read_to_string(format!("/proc/{}/stat", self.pid())), Ok(stat) if stat.contains(") Z "));
        while !path.exists() {
            if Instant::now() > limit || ended() {
                self.kill();
                panic!("{}: never made {}", self.shown, path.display());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn kill(&self) {
        kill("KILL", &format!("-{}", self.pid()));
    }

    pub fn wait(mut self) -> Ran {
        let mut child = self.child.take().unwrap();
        let group = format!("-{}", child.id());
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || drop(sender.send(child.wait())));
        let status = receiver.recv_timeout(self.deadline);
        if status.is_err() {
            kill("KILL", &group);
        }
        // Both end with the process, unless something that outlives it holds them.
        let drain = |receiver: &mpsc::Receiver<Vec<u8>>| {
            let mut all = Vec::new();
            while let Ok(chunk) = receiver.recv_timeout(Duration::from_secs(10)) {
                all.extend(chunk);
            }
            all
        };
        let (stdout, stderr) = (drain(&self.stdout), drain(&self.stderr));
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let status = match status {
            Ok(status) => status.unwrap(),
            Err(_) => panic!(
                "{}: did not end within {:?}\nstdout: {}\nstderr: {stderr}",
                self.shown,
                self.deadline,
                String::from_utf8_lossy(&stdout),
            ),
        };
        Ran {
            shown: self.shown.clone(),
            code: status.code(),
            signal: status.signal(),
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            kill("KILL", &format!("-{}", child.id()));
            let _ = child.wait();
        }
    }
}

fn kill(signal: &str, target: &str) {
    let script = format!("kill -s {signal} -- {target} 2>/dev/null");
    let _ = Command::new("sh").args(["-c", &script]).status();
}

/// How a command ended.
pub struct Ran {
    shown: String,
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ran {
    /// Standard output as text.
    pub fn out(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("standard output is UTF-8")
    }

    /// Fails, with everything that was printed, unless the exit code is this.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert_eq!(
            self.code,
            Some(code),
            "{} (signal {:?})\nstdout: {}\nstderr: {}",
            self.shown,
            self.signal,
            String::from_utf8_lossy(&self.stdout),
            self.stderr
        );
        self
    }

    /// Exit code, standard output and standard error, exactly.
    #[track_caller]
    pub fn is(self, code: i32, stdout: &str, stderr: &str) {
        let ran = self.exits(code);
        assert_eq!(ran.out(), stdout, "standard output of {}", ran.shown);
        assert_eq!(ran.stderr, stderr, "standard error of {}", ran.shown);
    }
}

/// The words of a command line, split at blanks.
pub fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}
