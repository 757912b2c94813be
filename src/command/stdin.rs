//! Standard input: read to its end, without hanging on a pipe that nobody closes.
//!
//! With a prompt given, a pipe or socket that stays silent is announced after one second and
//! given up after ten, unless a process that is neither etch nor one of its ancestors holds its
//! other end: such a writer is waited for, up to ten minutes. Once a byte came, input is read to
//! its end, however slow. Every wait ends at once when the run is cancelled.
//!
//! Limits: [`KEPT_BYTES_MAX`] of the text are kept, from its beginning and its end; reading stops
//! for good after [`READ_BYTES_MAX`].

use std::fs::File;
use std::io::{self, IsTerminal, PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use super::args::StdinMode;
use crate::cancel::{Cancel, Cancelled, Closer, Reason};
use crate::host::Host;
use crate::sys::{self, Interest, PollFd, Relation};
use crate::text::{human_bytes, looks_binary};

/// How much of attached input the model gets.
pub const KEPT_BYTES_MAX: usize = 256 * 1024;
/// Of these, how much is kept from the end.
const TAIL_BYTES_MAX: usize = 64 * 1024;
/// Where reading stops: input without an end must not hold a run for ever.
const READ_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// A prompt is never cut: longer than this is an error.
pub const PROMPT_BYTES_MAX: usize = 1024 * 1024;

/// How long a silent pipe is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// Until the wait is announced.
    notice: Duration,
    /// Until it is given up, from the start.
    silent: Duration,
    /// Until it is given up although a writer lives.
    writer: Duration,
}

pub const WAITS: Waits = Waits {
    notice: Duration::from_secs(1),
    silent: Duration::from_secs(10),
    writer: Duration::from_secs(600),
};

/// Text that came from outside, with what has to be said about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attached {
    pub text: String,
    /// What was cut or replaced, one sentence each.
    pub notes: Vec<String>,
}

/// Why there is no input.
#[derive(Debug)]
pub enum Error {
    Cancelled(Cancelled),
    /// For the person: what is wrong and what to do.
    Usage(String),
}

impl From<Cancelled> for Error {
    fn from(cancelled: Cancelled) -> Error {
        Error::Cancelled(cancelled)
    }
}

/// Where notices go.
pub type Say<'a> = &'a mut dyn FnMut(&str);

/// What is attached to a given prompt: `None` when there is nothing.
pub fn attached(
    mode: StdinMode,
    host: &Host,
    cancel: &Cancel,
    say: Say<'_>,
) -> Result<Option<Attached>, Error> {
    if mode == StdinMode::Never {
        return Ok(None);
    }
    let Some(input) = Input::stdin(host, cancel)? else { return Ok(None) };
    if mode == StdinMode::Auto {
        if input.is_terminal {
            return Ok(None);
        }
        if input.may_be_silent && !input.wait_for_first(WAITS, say)? {
            return Ok(None);
        }
    } else if input.is_terminal {
        say("reading standard input; end it with Ctrl-D");
    }
    let Some(bytes) = input.read_all()? else { return Ok(None) };
    let text = bytes.into_text("standard input", KEPT_BYTES_MAX)?;
    for note in &text.notes {
        say(note);
    }
    Ok((!text.text.is_empty()).then_some(text))
}

/// The prompt itself, from the whole of standard input.
pub fn prompt(
    mode: StdinMode,
    host: &Host,
    cancel: &Cancel,
    say: Say<'_>,
) -> Result<String, Error> {
    let none = || Error::Usage("no prompt on standard input: give one with -p \"TEXT\"".to_owned());
    let Some(input) = Input::stdin(host, cancel)? else { return Err(none()) };
    if input.is_terminal {
        say("reading the prompt from standard input; end it with Ctrl-D");
    } else if mode == StdinMode::Auto && input.may_be_silent && !input.wait_for_first(WAITS, say)? {
        return Err(none());
    }
    let bytes = input.read_all()?.ok_or_else(none)?;
    if bytes.total > PROMPT_BYTES_MAX as u64 {
        return Err(Error::Usage(format!(
            "the prompt on standard input is longer than {}: give a short one with -p \"TEXT\" \
             and pipe the rest in, or name a file in it",
            human_bytes(PROMPT_BYTES_MAX as u64)
        )));
    }
    let text = bytes.into_text("the prompt on standard input", PROMPT_BYTES_MAX)?;
    for note in &text.notes {
        say(note);
    }
    if text.text.trim().is_empty() { Err(none()) } else { Ok(text.text) }
}

/// The text of a file for `-f`; a named pipe is read to its end. Never cut: one that is too
/// large is an error.
pub fn file(file: File, shown: &str, host: &Host, cancel: &Cancel) -> Result<Attached, Error> {
    file_within(WAITS.silent, file, shown, host, cancel)
}

fn file_within(
    silent: Duration,
    file: File,
    shown: &str,
    host: &Host,
    cancel: &Cancel,
) -> Result<Attached, Error> {
    let input = Input::over(file, host, cancel).map_err(|error| cannot_read(shown, &error))?;
    let failed = |error| match error {
        ReadError::Cancelled(cancelled) => Error::Cancelled(cancelled),
        ReadError::Io(error) => cannot_read(shown, &error),
    };
    if input.may_be_silent
        && !input.ready(Some(silent)).map_err(failed)?
        && sys::pipe_writers(input.file.as_fd()).unwrap_or_default().is_empty()
    {
        let waited = seconds(silent);
        return Err(Error::Usage(format!(
            "cannot read '{shown}': it is a pipe, and for {waited} nobody wrote to it"
        )));
    }
    let bytes = input.read_up_to(KEPT_BYTES_MAX as u64).map_err(failed)?;
    if bytes.total > KEPT_BYTES_MAX as u64 {
        return Err(Error::Usage(format!(
            "'{shown}' is larger than {}, the most that -f attaches: name the file in the prompt \
             instead, the model reads the parts it needs",
            human_bytes(KEPT_BYTES_MAX as u64)
        )));
    }
    bytes.into_text(&format!("'{shown}'"), KEPT_BYTES_MAX)
}

fn cannot_read(shown: &str, error: &io::Error) -> Error {
    Error::Usage(format!("cannot read '{shown}': {error}"))
}

/// An open input and what ends a wait on it.
struct Input<'a> {
    file: File,
    is_terminal: bool,
    /// A pipe or a socket: silence does not mean that it ended.
    may_be_silent: bool,
    host: &'a Host,
    cancel: &'a Cancel,
    /// Hangs up when the run is cancelled.
    cancelled: PipeReader,
    _closer: Closer,
}

enum ReadError {
    Cancelled(Cancelled),
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

impl<'a> Input<'a> {
    /// `None` when there is no standard input at all.
    fn stdin(host: &'a Host, cancel: &'a Cancel) -> Result<Option<Input<'a>>, Error> {
        let Ok(fd) = io::stdin().as_fd().try_clone_to_owned() else { return Ok(None) };
        match Input::over(File::from(fd), host, cancel) {
            Ok(input) => Ok(Some(input)),
            Err(error) => Err(cannot_read_stdin(&error)),
        }
    }

    fn over(file: File, host: &'a Host, cancel: &'a Cancel) -> io::Result<Input<'a>> {
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let (cancelled, waker) = io::pipe()?;
        let closer = cancel.on_cancel(move || drop(waker));
        Ok(Input {
            is_terminal: file.is_terminal(),
            may_be_silent: kind.is_fifo() || kind.is_socket(),
            file,
            host,
            cancel,
            cancelled,
            _closer: closer,
        })
    }

    /// Waits until there is something to read (its end included) or `timeout` is over.
    fn ready(&self, timeout: Option<Duration>) -> Result<bool, ReadError> {
        let start = self.host.elapsed();
        loop {
            let passed = self.host.elapsed().saturating_sub(start);
            let left = timeout.map(|timeout| timeout.saturating_sub(passed));
            let mut fds = [
                PollFd::new(Some(self.file.as_fd()), Interest::Read),
                PollFd::new(Some(self.cancelled.as_fd()), Interest::Read),
            ];
            sys::poll(&mut fds, left)?;
            if fds[1].is_ready() || self.cancel.is_cancelled() {
                let reason = self.cancel.reason().unwrap_or(Reason::User);
                return Err(ReadError::Cancelled(Cancelled(reason)));
            }
            if fds[0].is_ready() {
                return Ok(true);
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
        }
    }

    /// Waits for the first byte or the end; false when the pipe stayed silent and was given up.
    fn wait_for_first(&self, waits: Waits, say: Say<'_>) -> Result<bool, Error> {
        let ready = |timeout| self.ready(Some(timeout)).map_err(stdin_error);
        if ready(waits.notice)? {
            return Ok(true);
        }
        let mut waited = waits.notice;
        let mut announced = None;
        loop {
            let writer = self.writer();
            let limit = if writer.is_some() { waits.writer } else { waits.silent };
            if waited >= limit {
                say(&format!(
                    "nothing came on standard input for {}: going on without it",
                    seconds(waited)
                ));
                return Ok(false);
            }
            if announced.as_ref() != Some(&writer) {
                say(&waiting(writer.as_deref(), limit - waited));
                announced = Some(writer);
            }
            // Looked at again from time to time: the writer may have left the pipe to others.
            let next = waits.silent.min(limit - waited);
            let next = if waited < waits.silent { next.min(waits.silent - waited) } else { next };
            if ready(next)? {
                return Ok(true);
            }
            waited += next;
        }
    }

    /// A process at the other end that may still write: its name and id.
    fn writer(&self) -> Option<String> {
        let writers = sys::pipe_writers(self.file.as_fd()).unwrap_or_default();
        let other = writers.into_iter().find(|writer| writer.relation == Relation::Other)?;
        Some(format!("{} (pid {})", other.name, other.pid))
    }

    /// `None` when standard input was closed.
    fn read_all(&self) -> Result<Option<Bytes>, Error> {
        match self.read_up_to(READ_BYTES_MAX) {
            Ok(bytes) => Ok(Some(bytes)),
            // Closed before etch began, or opened for writing only.
            Err(ReadError::Io(error)) if error.raw_os_error() == Some(libc::EBADF) => Ok(None),
            Err(error) => Err(stdin_error(error)),
        }
    }

    /// Reads until the end, or until more than `bytes_max` came.
    fn read_up_to(&self, bytes_max: u64) -> Result<Bytes, ReadError> {
        let mut bytes = Bytes::default();
        let mut chunk = vec![0; 64 * 1024];
        while bytes.total <= bytes_max {
            self.ready(None)?;
            match (&self.file).read(&mut chunk) {
                Ok(0) => return Ok(bytes),
                Ok(len) => bytes.push(&chunk[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(ReadError::Io(error)),
            }
        }
        bytes.endless = true;
        Ok(bytes)
    }
}

fn cannot_read_stdin(error: &io::Error) -> Error {
    Error::Usage(format!("cannot read standard input: {error}; --stdin never does not look at it"))
}

fn stdin_error(error: ReadError) -> Error {
    match error {
        ReadError::Cancelled(cancelled) => Error::Cancelled(cancelled),
        ReadError::Io(error) => cannot_read_stdin(&error),
    }
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        // Said a second after the clock began: ten minutes are still ten.
        secs if secs >= 120 => format!("{} minutes", secs.div_ceil(60)),
        secs => format!("{secs} s"),
    }
}

fn waiting(writer: Option<&str>, left: Duration) -> String {
    let left = seconds(left);
    match writer {
        Some(writer) => format!(
            "waiting for standard input from {writer}, at most {left}; --stdin never does not wait"
        ),
        None => format!(
            "standard input is open and silent: going on without it in {left}; --stdin never does \
             not wait, --stdin always waits for its end"
        ),
    }
}

/// What was read: all of it while it is small, else its beginning and its end.
#[derive(Debug, Default)]
struct Bytes {
    /// At most [`PROMPT_BYTES_MAX`].
    head: Vec<u8>,
    /// The latest bytes; at most twice [`TAIL_BYTES_MAX`], only filled when the head is full.
    tail: Vec<u8>,
    total: u64,
    /// Reading stopped before the end.
    endless: bool,
}

impl Bytes {
    fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        let (head, rest) = chunk.split_at(chunk.len().min(PROMPT_BYTES_MAX - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * TAIL_BYTES_MAX {
            self.tail.drain(..self.tail.len() - TAIL_BYTES_MAX);
        }
    }

    /// The last bytes of all, at most `len`.
    fn end(&self, len: usize) -> Vec<u8> {
        let from_tail = &self.tail[self.tail.len().saturating_sub(len)..];
        let missing = len - from_tail.len();
        let from_head = &self.head[self.head.len().saturating_sub(missing)..];
        [from_head, from_tail].concat()
    }

    /// The text for the model: whole up to `whole_bytes_max`, else cut to [`KEPT_BYTES_MAX`].
    fn into_text(self, what: &str, whole_bytes_max: usize) -> Result<Attached, Error> {
        if looks_binary(&self.head) {
            return Err(Error::Usage(format!(
                "{what} is binary: convert it to text first{}",
                if what == "standard input" { ", or give --stdin never" } else { "" }
            )));
        }
        let mut notes = Vec::new();
        let whole = self.total <= whole_bytes_max as u64;
        let (text, replaced) = if whole {
            decode(&self.head)
        } else {
            let more = if self.endless { "more than " } else { "" };
            let head = whole_lines_end(&self.head[..KEPT_BYTES_MAX - TAIL_BYTES_MAX]);
            let end = self.end(TAIL_BYTES_MAX);
            let tail = whole_lines_start(&end);
            let cut = human_bytes(self.total - (head.len() + tail.len()) as u64);
            notes.push(format!(
                "{what} has {more}{}: only its first {} and last {} are attached (the limit is {})",
                human_bytes(self.total),
                human_bytes(head.len() as u64),
                human_bytes(tail.len() as u64),
                human_bytes(KEPT_BYTES_MAX as u64),
            ));
            let ((head, first), (tail, last)) = (decode(head), decode(tail));
            (format!("{head}\n[… {cut} of {what} left out here …]\n{tail}"), first + last)
        };
        if replaced > 0 {
            notes.push(format!(
                "{what} is not all UTF-8: {replaced} {} shown as \u{fffd}",
                if replaced == 1 { "place is" } else { "places are" }
            ));
        }
        Ok(Attached { text, notes })
    }
}

/// UTF-8, with a mark for each run of bytes that is none, and how many there are.
fn decode(bytes: &[u8]) -> (String, usize) {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let replaced = bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
    (String::from_utf8_lossy(bytes).into_owned(), replaced)
}

/// Up to the last line end, if there is one.
fn whole_lines_end(bytes: &[u8]) -> &[u8] {
    match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => &bytes[..end],
        None => &bytes[..floor_byte(bytes)],
    }
}

/// From the first line start, if there is one.
fn whole_lines_start(bytes: &[u8]) -> &[u8] {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(start) => &bytes[start + 1..],
        None => &bytes[bytes.iter().take_while(|byte| **byte & 0xc0 == 0x80).count()..],
    }
}

/// The length without a character that was cut at the end.
fn floor_byte(bytes: &[u8]) -> usize {
    match bytes.utf8_chunks().last() {
        Some(chunk) if chunk.invalid().len() < 4 => bytes.len() - chunk.invalid().len(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::thread;

    const SHORT: Waits = Waits {
        notice: Duration::from_millis(20),
        silent: Duration::from_millis(60),
        writer: Duration::from_secs(600),
    };

    fn input_over<'a>(reader: PipeReader, host: &'a Host, cancel: &'a Cancel) -> Input<'a> {
        Input::over(File::from(std::os::fd::OwnedFd::from(reader)), host, cancel).unwrap()
    }

    #[test]
    fn a_silent_pipe_of_our_own_is_announced_and_given_up() {
        let (host, cancel) = (Host::from_process(), Cancel::new());
        let (reader, _writer) = io::pipe().unwrap();
        let input = input_over(reader, &host, &cancel);
        let mut said = Vec::new();
        let came = input.wait_for_first(SHORT, &mut |line| said.push(line.to_owned())).unwrap();
        assert!(!came);
        // A child that another test is starting may hold the pipe for a moment, so more may be said.
        let last_two = &said[said.len() - 2..];
        assert_eq!(
            last_two,
            [
                "standard input is open and silent: going on without it in 0 s; --stdin never \
                 does not wait, --stdin always waits for its end",
                "nothing came on standard input for 0 s: going on without it",
            ]
        );
    }

    #[test]
    fn a_living_writer_is_waited_for_and_slow_input_is_whole() {
        let (host, cancel) = (Host::from_process(), Cancel::new());
        let (reader, writer) = io::pipe().unwrap();
        // Longer silent than an orphaned pipe would be waited for, then slow.
        let mut child = Command::new("sh")
            .args(["-c", "sleep 0.3; printf one; sleep 0.1; printf ' two'"])
            .stdin(Stdio::null())
            .stdout(writer)
            .spawn()
            .unwrap();
        let input = input_over(reader, &host, &cancel);
        let mut said = Vec::new();
        let came = input.wait_for_first(SHORT, &mut |line| said.push(line.to_owned())).unwrap();
        assert!(came, "{said:?}");
        let text =
            input.read_all().unwrap().unwrap().into_text("standard input", KEPT_BYTES_MAX).unwrap();
        assert_eq!(text, Attached { text: "one two".to_owned(), notes: Vec::new() });
        assert!(said[0].starts_with("waiting for standard input from s"), "{said:?}");
        child.wait().unwrap();
    }

    #[test]
    fn a_cancelled_run_does_not_wait() {
        let (host, cancel) = (Host::from_process(), Cancel::new());
        let (reader, _writer) = io::pipe().unwrap();
        let input = input_over(reader, &host, &cancel);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| input.wait_for_first(WAITS, &mut |_| {}));
            cancel.cancel(Reason::Interrupt);
            let ended = waiting.join().unwrap();
            assert!(matches!(ended, Err(Error::Cancelled(Cancelled(Reason::Interrupt)))));
        });
        assert!(matches!(input.read_all(), Err(Error::Cancelled(_))));
    }

    #[test]
    fn a_named_pipe_is_read_when_somebody_writes_and_given_up_when_nobody_does() {
        let path = std::env::temp_dir().join(format!("etch-pipe-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let (host, cancel) = (Host::from_process(), Cancel::new());
        let read = |silent, cancel: &Cancel| {
            let file = crate::command::attach::open(&path).unwrap();
            file_within(silent, file, "p", &host, cancel)
        };
        match read(Duration::from_millis(20), &cancel) {
            Err(Error::Usage(message)) => {
                assert!(
                    message.starts_with("cannot read 'p': it is a pipe, and for "),
                    "{message}"
                );
            }
            other => panic!("{other:?}"),
        }
        let write = || std::fs::write(&path, "late\n").unwrap();
        let text = std::thread::scope(|scope| {
            scope.spawn(write);
            read(Duration::from_secs(20), &cancel).unwrap().text
        });
        assert_eq!(text, "late\n");
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| cancel.cancel(Reason::Interrupt));
            read(Duration::from_secs(20), &cancel)
        });
        assert!(matches!(ended, Err(Error::Cancelled(_))), "{ended:?}");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn large_input_keeps_its_beginning_and_its_end() {
        let (host, cancel) = (Host::from_process(), Cancel::new());
        let (reader, mut writer) = io::pipe().unwrap();
        let all: String = (0..700_000).map(|number| format!("{number}\n")).collect();
        let total = all.len();
        assert!(total > 4_000_000);
        let feeder = thread::spawn(move || writer.write_all(all.as_bytes()).unwrap());
        let bytes = input_over(reader, &host, &cancel).read_all().unwrap().unwrap();
        feeder.join().unwrap();
        let attached = bytes.into_text("standard input", KEPT_BYTES_MAX).unwrap();
        let text = &attached.text;
        assert!(text.starts_with("0\n1\n2\n") && text.ends_with("699998\n699999\n"));
        assert!(text.contains("of standard input left out here"), "says where");
        assert!(text.len() <= KEPT_BYTES_MAX + 100, "{}", text.len());
        assert_eq!(attached.notes.len(), 1);
        assert!(attached.notes[0].contains("only its first"), "{:?}", attached.notes);
        // No line is cut in two.
        assert!(text.lines().all(|line| line.starts_with('[') || line.parse::<u32>().is_ok()));
    }

    #[test]
    fn bytes_that_are_no_text_are_marked_and_binary_is_refused() {
        let read = |bytes: &[u8]| {
            let mut all = Bytes::default();
            all.push(bytes);
            all.into_text("standard input", KEPT_BYTES_MAX)
        };
        let latin = read(b"Gr\xf6\xdfe").unwrap();
        assert_eq!(latin.text, "Gr\u{fffd}\u{fffd}e");
        let note = "standard input is not all UTF-8: 2 places are shown as \u{fffd}";
        assert_eq!(latin.notes, [note]);
        assert_eq!(read(b"\xef\xbb\xbfbom").unwrap().text, "bom");
        let Err(Error::Usage(message)) = read(b"\x7fELF\0\0") else { panic!("binary is no text") };
        assert_eq!(
            message,
            "standard input is binary: convert it to text first, or give --stdin never"
        );
    }

    #[test]
    fn the_end_is_kept_whatever_the_sizes_of_the_pieces() {
        for piece in [1, 7, 4096, 65_536, 200_000] {
            let mut all = Bytes::default();
            let data: Vec<u8> = (0..1_500_000_u32).map(|i| (i % 251) as u8).collect();
            data.chunks(piece).for_each(|chunk| all.push(chunk));
            assert_eq!(all.end(TAIL_BYTES_MAX), data[data.len() - TAIL_BYTES_MAX..], "{piece}");
            assert_eq!(all.head, data[..PROMPT_BYTES_MAX]);
        }
    }
}
