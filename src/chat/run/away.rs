//! While others have the terminal: the shell behind Ctrl-Z, the editor of the draft.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use crossbeam_channel::select;

use super::Chat;
use crate::cancel::Reason;
use crate::chat::block::Notice;
use crate::chat::draft::{self, Edited};
use crate::chat::reader::Reader;
use crate::chat::terminal;
use crate::sys::{self, Signal};

/// The signal of a suspension that ended comes within this, and that of a Ctrl-C in an editor.
const KNOWN_WITHIN: Duration = Duration::from_secs(1);
/// What else was sent to a stopped process reaches it within this when it is continued.
const SIGNALS_WITHIN: Duration = Duration::from_millis(200);
/// How often it stops again when it is continued in the background.
const STOPS_MAX: usize = 100;

impl Chat {
    /// Waits until the terminal has taken all of this. False: it will not, the end was asked for.
    pub(super) fn flush(&mut self, bytes: Vec<u8>) -> bool {
        let mut last = Some(bytes);
        loop {
            if !self.terminal.is_busy() {
                let Some(bytes) = last.take() else { return true };
                if self.terminal.write(bytes).is_err() {
                    self.hang_up();
                    return false;
                }
                continue;
            }
            select! {
                recv(self.terminal.written()) -> end => {
                    let end = end.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
                    if self.terminal.is_written(end).is_err() {
                        self.hang_up();
                        return false;
                    }
                },
                recv(self.signals) -> signal => if let Ok(signal) = signal
                    && let Some(reason) = end_asked_for(signal)
                {
                    self.end_by(reason);
                    return false;
                },
            }
        }
    }

    /// False: it was not given away, the end was asked for.
    fn give_away(&mut self) -> bool {
        let mut out = Vec::new();
        self.live.take_off(&mut out);
        if !self.flush(out) {
            return false;
        }
        if let Some(reader) = self.reader.take() {
            let left = reader.stop(&self.typed);
            self.early.extend(left);
        }
        self.terminal.leave(b"");
        true
    }

    fn take_back(&mut self) {
        let Ok(ahead) = self.terminal.enter() else { return self.hang_up() };
        match Reader::start(self.type_in.clone(), ahead) {
            Ok(reader) => self.reader = Some(reader),
            Err(_) => self.hang_up(),
        }
        let size = terminal::size();
        self.stage.resize(size);
        self.live.resize(size);
        self.live.forget();
        self.is_dirty = true;
    }

    pub(super) fn suspend(&mut self) {
        if !self.give_away() {
            return;
        }
        for _ in 0..STOPS_MAX {
            // Returns when the process is continued.
            if let Err(error) = sys::suspend() {
                self.stage.notice(Notice::Error, &format!("cannot suspend: {error}"));
            }
            if sys::is_foreground(io::stdin().as_fd()) {
                break;
            }
            // In the background it was continued by mistake, or to be ended.
            while let Ok(signal) = self.signals.recv_timeout(SIGNALS_WITHIN) {
                if let Some(reason) = end_asked_for(signal) {
                    return self.end_by(reason);
                }
            }
        }
        self.take_back();
        self.resumed_at = Some(self.host.elapsed());
        self.draw();
    }

    /// Stopped and continued by somebody else: the shell may have set the terminal its own way.
    pub(super) fn come_back(&mut self) {
        if self.reader.is_some() && !self.is_known(self.resumed_at) {
            if self.terminal.enter().is_err() {
                return self.hang_up();
            }
            self.live.forget();
            self.draw();
        }
    }

    pub(super) fn has_just_edited(&self) -> bool {
        self.is_known(self.edited_at)
    }

    fn is_known(&self, at: Option<Duration>) -> bool {
        at.is_some_and(|at| self.host.elapsed().saturating_sub(at) < KNOWN_WITHIN)
    }

    pub(super) fn edit_draft(&mut self, text: &str) {
        if !self.give_away() {
            return;
        }
        let edited = draft::edit(&self.host, text, &self.signals);
        if let Edited::Ended(signal) = edited {
            return self.end_by(end_asked_for(signal).unwrap_or(Reason::Terminate));
        }
        self.take_back();
        self.edited_at = Some(self.host.elapsed());
        match edited {
            Edited::Text(text) => self.stage.set_draft(&text),
            Edited::Failed(message) => self.stage.notice(Notice::Error, &message),
            Edited::Ended(_) => {}
        }
    }
}

fn end_asked_for(signal: Signal) -> Option<Reason> {
    match signal {
        Signal::Interrupt => Some(Reason::Interrupt),
        Signal::Terminate => Some(Reason::Terminate),
        Signal::Hangup => Some(Reason::Hangup),
        Signal::Resized | Signal::Continued => None,
    }
}
