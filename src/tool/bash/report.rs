//! A finished command as text for the model.
//!
//! Escape sequences and redrawn lines are resolved, bytes that are no text are marked or
//! summarised, and each stream has its own bound. The frame is always the same, so that a model
//! (or a script) finds the exit code and the streams at once.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use crate::process::{Capture, EndedBy, Output, Process, Status};
use crate::text;

/// How many processes are named; more are counted.
const NAMED_MAX: usize = 10;
/// How far a stream is looked at to tell text from binary.
const SNIFF_BYTES: usize = 8 * 1024;
/// Binary is what has at least this many bytes that are no text, and more than one in
/// [`BAD_SHARE`] of them.
const BAD_MIN: usize = 8;
const BAD_SHARE: usize = 8;

pub(super) struct Limits {
    /// The limit of this call, and the highest that a call may ask for.
    pub(super) seconds: u64,
    pub(super) seconds_max: u64,
    pub(super) stream_bytes: usize,
    /// What is shown as the duration.
    pub(super) duration: Duration,
}

pub(super) fn render(output: &Output, limits: &Limits) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = match output.status {
        Status::Exited(code) => writeln!(out, "exit code: {code}"),
        Status::Signalled(number) => {
            writeln!(out, "exit code: -1\nsignal: {number} ({})", signal_name(number))
        }
        Status::Unknown => writeln!(out, "exit code: -1\nsignal: 9 (SIGKILL), not ended yet"),
    };
    let _ = writeln!(out, "duration: {}", short_duration(limits.duration));
    if let Some(EndedBy::Timeout { .. }) = output.ended_by {
        out.push_str("timed out: true\n");
    }
    let (stdout, stderr) = (&output.stdout, &output.stderr);
    for (name, capture) in [("stdout", stdout), ("stderr", stderr)] {
        if !capture.is_empty() {
            let text = stream_text(capture, limits.stream_bytes);
            let _ = writeln!(out, "\n{name}:\n{}", text.strip_suffix('\n').unwrap_or(&text));
        }
    }
    if stdout.is_empty() && stderr.is_empty() {
        out.push_str("\n(no output)\n");
    }
    let notes = notes(output, limits);
    if !notes.is_empty() {
        let _ = write!(out, "\n{notes}");
    }
    out.truncate(out.trim_end().len());
    out
}

fn notes(output: &Output, limits: &Limits) -> String {
    let mut notes = String::new();
    if let Some(EndedBy::Timeout { stopped }) = output.ended_by {
        let more = match limits.seconds < limits.seconds_max {
            true => format!("give timeoutSeconds, at most {}, for more", limits.seconds_max),
            false => "no call may take longer: do it in smaller steps".to_owned(),
        };
        let _ = writeln!(notes, "[ended after its limit of {} s; {more}]", limits.seconds);
        if stopped {
            notes.push_str("[it did not run any more: a signal had stopped it]\n");
        }
    }
    if !output.left_running.is_empty() {
        let _ = writeln!(
            notes,
            "[still running when the command ended, so ended with it: {}]",
            names(&output.left_running)
        );
    }
    if !output.escaped.is_empty() {
        let _ = writeln!(
            notes,
            "[in a session of its own and still running: {}; 'kill PID' ends it]",
            names(&output.escaped)
        );
    }
    notes
}

fn names(processes: &[Process]) -> String {
    let named = processes.iter().take(NAMED_MAX);
    let mut names: Vec<_> = named.map(|p| format!("{} (pid {})", p.name, p.pid)).collect();
    if processes.len() > NAMED_MAX {
        names.push(format!("{} more", processes.len() - NAMED_MAX));
    }
    names.join(", ")
}

/// `4ms`, `1.25s`, `2m05s`.
fn short_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{:02}s", ms / 1000, ms % 1000 / 10),
        _ => format!("{}m{:02}s", ms / 60_000, ms / 1000 % 60),
    }
}

/// The text of one stream, at most `bytes_max` bytes.
fn stream_text(capture: &Capture, bytes_max: usize) -> String {
    if is_binary(&capture.head) || is_binary(&capture.tail) {
        return format!("[binary output, {}]", text::plural(capture.total_bytes(), "byte"));
    }
    let whole;
    let mut kept = Kept {
        head: &capture.head,
        tail: &capture.tail,
        elided_bytes: capture.elided_bytes,
        elided_lines: capture.elided_lines,
    };
    if kept.elided_bytes == 0 {
        whole = [kept.head, kept.tail].concat();
        let text = clean(&whole);
        if text.len() <= bytes_max {
            return text;
        }
        (kept.head, kept.tail) = whole.split_at(whole.len() / 2);
        kept.halve();
    }
    kept.trim();
    let mut text = kept.text();
    // Marks for bytes that are no text make it longer, at most fourfold.
    while bytes_max < text.len() && !(kept.head.is_empty() && kept.tail.is_empty()) {
        kept.halve();
        kept.trim();
        text = kept.text();
    }
    text
}

/// The start and the end of a stream, and how much is missing between them.
struct Kept<'a> {
    head: &'a [u8],
    tail: &'a [u8],
    elided_bytes: u64,
    elided_lines: u64,
}

impl Kept<'_> {
    /// Cuts both so that no line, or else no character, is torn.
    fn trim(&mut self) {
        self.keep(whole_head(self.head).len(), whole_tail(self.tail).len());
    }

    fn halve(&mut self) {
        self.keep(self.head.len() / 2, self.tail.len() / 2);
    }

    fn keep(&mut self, head_bytes: usize, tail_bytes: usize) {
        let (head, after) = self.head.split_at(head_bytes);
        let (before, tail) = self.tail.split_at(self.tail.len() - tail_bytes);
        let cut = [after, before];
        self.elided_bytes += count(cut, |_| true);
        self.elided_lines += count(cut, |byte| byte == b'\n');
        (self.head, self.tail) = (head, tail);
    }

    fn text(&self) -> String {
        let mut out = clean(self.head);
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&text::elided(self.elided_bytes, self.elided_lines));
        out.push('\n');
        out.push_str(&clean(self.tail));
        out
    }
}

fn count(pieces: [&[u8]; 2], wanted: impl Fn(u8) -> bool) -> u64 {
    let all = pieces.into_iter().flatten();
    u64::try_from(all.filter(|byte| wanted(**byte)).count()).unwrap_or(0)
}

fn clean(bytes: &[u8]) -> String {
    let decoded = text::decode_lossy(bytes);
    // A NUL separates names (`find -print0`): dropped like other controls, it would join them.
    let marked: Cow<'_, str> = match decoded.contains('\0') {
        true => Cow::Owned(decoded.replace('\0', "\\x00")),
        false => decoded,
    };
    text::strip_ansi(&marked).into_owned()
}

/// A start without its torn end: up to the last line end where that keeps half of it, else
/// without half a character.
fn whole_head(head: &[u8]) -> &[u8] {
    match memchr::memrchr(b'\n', head) {
        Some(at) if head.len() / 2 <= at => &head[..=at],
        _ => {
            let torn = head.iter().rev().take(3).position(|byte| *byte >= 0xc0);
            match torn {
                Some(back) if is_torn(&head[head.len() - back - 1..]) => {
                    &head[..head.len() - back - 1]
                }
                _ => head,
            }
        }
    }
}

fn is_torn(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// The same for an end and its torn start.
fn whole_tail(tail: &[u8]) -> &[u8] {
    match memchr::memchr(b'\n', tail) {
        Some(at) if at < tail.len() / 2 => &tail[at + 1..],
        _ => {
            let torn = tail.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
            &tail[torn..]
        }
    }
}

/// Many bytes that no text has: NUL, other control characters, bytes that are not UTF-8.
fn is_binary(bytes: &[u8]) -> bool {
    let sniffed = &bytes[..bytes.len().min(SNIFF_BYTES)];
    let mut bad = 0;
    for chunk in sniffed.utf8_chunks() {
        bad += chunk.valid().bytes().filter(|byte| is_odd_control(*byte)).count();
        bad += chunk.invalid().len();
    }
    BAD_MIN <= bad && bad * BAD_SHARE > sniffed.len()
}

/// Controls that neither text nor a terminal program writes.
fn is_odd_control(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, 0x07..=0x0f | 0x1b)
}

fn signal_name(number: i32) -> &'static str {
    match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => "another signal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(bytes: &[u8]) -> Capture {
        Capture { head: bytes.to_vec(), ..Capture::default() }
    }

    fn output(stdout: &[u8], stderr: &[u8]) -> Output {
        Output {
            status: Status::Exited(0),
            ended_by: None,
            stdout: capture(stdout),
            stderr: capture(stderr),
            duration: Duration::ZERO,
            left_running: Vec::new(),
            escaped: Vec::new(),
        }
    }

    const LIMITS: Limits = Limits {
        seconds: 2,
        seconds_max: 600,
        stream_bytes: 64 * 1024,
        duration: Duration::from_millis(4),
    };

    #[test]
    fn the_frame_is_the_same_for_every_end() {
        let check = |output: &Output, want: &str| assert_eq!(render(output, &LIMITS), want);
        let both = output(b"out\n\n", b"err");
        check(&both, "exit code: 0\nduration: 4ms\n\nstdout:\nout\n\n\nstderr:\nerr");
        check(&output(b"", b"e\n"), "exit code: 0\nduration: 4ms\n\nstderr:\ne");
        check(&output(b"", b""), "exit code: 0\nduration: 4ms\n\n(no output)");
        let killed = Output { status: Status::Signalled(11), ..output(b"x\n", b"") };
        check(&killed, "exit code: -1\nsignal: 11 (SIGSEGV)\nduration: 4ms\n\nstdout:\nx");
        let late = Output {
            status: Status::Exited(7),
            ended_by: Some(EndedBy::Timeout { stopped: true }),
            ..output(b"part", b"")
        };
        check(
            &late,
            "exit code: 7\nduration: 4ms\ntimed out: true\n\nstdout:\npart\n\n\
             [ended after its limit of 2 s; give timeoutSeconds, at most 600, for more]\n\
             [it did not run any more: a signal had stopped it]",
        );
        let process = |pid| Process { pid, name: format!("sleep {pid}") };
        let left = Output {
            left_running: (1..=12).map(process).collect(),
            escaped: vec![process(99)],
            ..output(b"", b"")
        };
        let named: Vec<_> = (1..=10).map(|pid| format!("sleep {pid} (pid {pid})")).collect();
        check(
            &left,
            &format!(
                "exit code: 0\nduration: 4ms\n\n(no output)\n\n\
                 [still running when the command ended, so ended with it: {}, 2 more]\n\
                 [in a session of its own and still running: sleep 99 (pid 99); 'kill PID' ends \
                 it]",
                named.join(", ")
            ),
        );
    }

    #[test]
    fn a_limit_that_is_the_highest_offers_no_more() {
        let late =
            Output { ended_by: Some(EndedBy::Timeout { stopped: false }), ..output(b"", b"") };
        let limits = Limits { seconds: 600, ..LIMITS };
        let want = "[ended after its limit of 600 s; no call may take longer: do it in smaller \
                    steps]\n";
        assert_eq!(notes(&late, &limits), want);
    }

    #[test]
    fn bytes_become_text_that_is_safe_and_says_what_is_missing() {
        let check = |bytes: &[u8], want: &str| {
            assert_eq!(stream_text(&capture(bytes), 1000), want, "{bytes:?}");
        };
        check(b"ok\xff\xfe\n", "ok\\xff\\xfe\n");
        check(b"a\r b\r c\n", " c\n");
        check(b"\x1b[31mred\x1b[0m\x1b]0;t\x07\n", "red\n");
        check(b"src/main.rs\0src/lib.rs\0", "src/main.rs\\x00src/lib.rs\\x00");
        check("漢字 é\n".as_bytes(), "漢字 é\n");
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01", "[binary output, 20 bytes]");
        check(&[0; 500], "[binary output, 500 bytes]");
        let utf16: Vec<u8> = "a longer text".encode_utf16().flat_map(u16::to_le_bytes).collect();
        check(&utf16, "[binary output, 26 bytes]");
    }

    #[test]
    fn what_is_left_out_is_counted_and_cuts_fall_on_lines_and_characters() {
        let capture = |head: &str, tail: &str| Capture {
            head: head.into(),
            tail: tail.into(),
            elided_bytes: 100,
            elided_lines: 7,
        };
        let check = |head: &str, tail: &str, want: &str| {
            assert_eq!(stream_text(&capture(head, tail), 1000), want);
        };
        check(
            "one\ntwo\nth",
            "ght\nnine\nten\n",
            "one\ntwo\n[... 106 bytes in 8 lines left out ...]\nnine\nten\n",
        );
        check("abc", "xyz", "abc\n[... 100 bytes in 7 lines left out ...]\nxyz");
        // Torn characters at both cuts.
        let (three, four) = ("a漢".as_bytes(), "𝄞z".as_bytes());
        for head_bytes in 1..three.len() {
            for tail_from in 1..four.len() - 1 {
                let torn = Capture {
                    head: three[..head_bytes].to_vec(),
                    tail: four[tail_from..].to_vec(),
                    elided_bytes: 1,
                    elided_lines: 0,
                };
                let missing = 1 + (head_bytes - 1) + (four.len() - 1 - tail_from);
                let want =
                    format!("a\n[... {} left out ...]\nz", text::plural(missing as u64, "byte"));
                assert_eq!(stream_text(&torn, 1000), want);
            }
        }
    }

    #[test]
    fn marks_do_not_break_the_bound_nor_the_count() {
        for (ok_bytes, bad_bytes) in [(9_000, 1_000), (9_000, 1_200), (20_000, 0)] {
            let mut bytes = b"line of text\n".repeat(ok_bytes / 13);
            bytes.extend(vec![0xff; bad_bytes]);
            let text = stream_text(&capture(&bytes), 10_000);
            assert!(text.len() <= 10_000 && 4_000 < text.len(), "{}", text.len());
            let notes: Vec<_> = text.lines().filter(|line| line.starts_with('[')).collect();
            let plain = text.matches("line of text\n").count() * 13;
            let marks = text.matches("\\xff").count();
            let missing = bytes.len() - plain - marks;
            let want = format!("[... {missing} bytes ");
            assert!(notes.len() == 1 && notes[0].starts_with(&want), "{notes:?} {want}");
        }
    }

    #[test]
    fn durations_read_well() {
        let check = |ms, want: &str| assert_eq!(short_duration(Duration::from_millis(ms)), want);
        check(0, "0ms");
        check(999, "999ms");
        check(1_259, "1.25s");
        check(59_999, "59.99s");
        check(125_000, "2m05s");
        check(3_600_000, "60m00s");
    }
}
