//! Reads the body of one answer: bytes in, model events out, one finish or one error.
//!
//! Takes an event stream or one whole JSON document, whatever the content type says: the first
//! byte that is no blank decides. What the chunks mean is the business of what [`Assemble`]s them.

use serde::de::IgnoredAny;

use crate::host::Host;
use crate::model::{ErrorKind, Finish, ModelError, ModelEvent, Usage};
use crate::provider::classify;
use crate::provider::openai::auth::limits::Limits;
use crate::wire::sse::{Decoder, EVENT_BYTES_MAX, Event, SseError};

/// Bytes of a body that is no answer which its error shows.
const EXCERPT_BYTES: usize = 300;

enum Form {
    /// Only blanks so far.
    Unknown,
    Events,
    /// One document, collected until the end.
    Whole(Vec<u8>),
}

/// Who answers.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'r> {
    pub provider: &'r str,
    /// `host:port`, for messages.
    pub authority: &'r str,
    /// This vendor sends the same reasoning delta twice.
    pub repeats_reasoning: bool,
}

/// Makes model events of a stream's events.
pub trait Assemble {
    /// Takes one event of the stream. An error is the answer's end.
    fn event(
        &mut self,
        event: Event<'_>,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), ModelError>;

    /// The end mark was read: nothing that follows matters.
    fn is_done(&self) -> bool;

    /// The answer is complete: only usage and the end mark may follow.
    fn is_complete(&self) -> bool;

    /// What counts towards the bound on an answer: text, reasoning and calls.
    fn said_bytes(&self) -> usize;

    /// At least one piece of an answer was read.
    fn has_begun(&self) -> bool;

    /// Nothing can follow: the answer was one document, or what follows cannot be read.
    fn end_of_document(&mut self);

    /// The counts that the server has sent so far, where nobody else gives them out when the
    /// answer fails.
    fn reported(&self) -> Option<Usage> {
        None
    }

    /// What the stream has told of the account's limits since this was asked last.
    fn take_limits(&mut self) -> Option<Limits> {
        None
    }

    /// The name of the last event, where events have names, for messages.
    fn last_event(&self) -> &str {
        ""
    }

    /// `host:port` of the server, for messages.
    fn authority(&self) -> &str;

    /// Events of a kind that is not known.
    fn unknown_events(&self) -> u64;

    /// The end of the body: gives out what must be whole, and says how the answer ended.
    fn finish(self, host: &Host, sink: &mut dyn FnMut(ModelEvent)) -> Result<Finish, ModelError>;
}

/// The reader of one answer.
pub struct Reader<A> {
    form: Form,
    decoder: Decoder,
    excerpt: Vec<u8>,
    answer: A,
}

impl<A: Assemble> Reader<A> {
    pub fn of(answer: A) -> Reader<A> {
        Reader { form: Form::Unknown, decoder: Decoder::default(), excerpt: Vec::new(), answer }
    }

    /// Takes the next bytes of the body. An error is the answer's end.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), ModelError> {
        let room = EXCERPT_BYTES.saturating_sub(self.excerpt.len());
        self.excerpt.extend_from_slice(&bytes[..room.min(bytes.len())]);
        if let Form::Unknown = self.form {
            // The bytes of a byte order mark occur nowhere else at the start of a body.
            let leads = |b: &&u8| !b.is_ascii_whitespace() && !b"\xef\xbb\xbf".contains(b);
            let lead = bytes.iter().position(|byte| leads(&byte));
            match lead.map(|at| (at, bytes[at])) {
                None => {}
                Some((at, b'{' | b'[' | b'<')) => {
                    self.form = Form::Whole(Vec::new());
                    // What led may have come before: it is no part of a document either way.
                    bytes = &bytes[at..];
                }
                Some(_) => self.form = Form::Events,
            }
        }
        let answer = &mut self.answer;
        match &mut self.form {
            Form::Whole(held) if held.len() + bytes.len() > EVENT_BYTES_MAX => {
                let error = SseError::TooLarge { bytes_max: EVENT_BYTES_MAX };
                Err(Failed::Sse(error).into_error(&*answer))
            }
            Form::Whole(held) => {
                held.extend_from_slice(bytes);
                Ok(())
            }
            Form::Unknown | Form::Events => {
                let mut each = |event: Event<'_>| answer.event(event, sink).map_err(Failed::Model);
                let result = self.decoder.push(bytes, &mut each);
                self.unless_complete(result)
            }
        }
    }

    /// What cannot be decoded ends the answer; behind a complete one it takes nothing away.
    fn unless_complete(&mut self, result: Result<(), Failed>) -> Result<(), ModelError> {
        match result {
            Err(Failed::Sse(_)) if self.answer.is_complete() => self.answer.end_of_document(),
            other => other.map_err(|failed| failed.into_error(&self.answer))?,
        }
        Ok(())
    }

    /// The end mark was read: nothing that follows matters.
    pub fn is_done(&self) -> bool {
        self.answer.is_done()
    }

    /// The answer is complete: only usage and the end mark may follow.
    pub fn is_complete(&self) -> bool {
        self.answer.is_complete()
    }

    /// How much the answer says so far.
    pub fn said_bytes(&self) -> usize {
        self.answer.said_bytes()
    }

    /// As [`Assemble::reported`].
    pub fn reported(&self) -> Option<Usage> {
        self.answer.reported()
    }

    /// As [`Assemble::take_limits`].
    pub fn take_limits(&mut self) -> Option<Limits> {
        self.answer.take_limits()
    }

    /// As [`Assemble::last_event`].
    pub fn last_event(&self) -> &str {
        self.answer.last_event()
    }

    pub fn unknown_events(&self) -> u64 {
        self.answer.unknown_events()
    }

    /// The body has ended.
    pub fn finish(
        mut self,
        host: &Host,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Whole(bytes) => self.whole(&bytes, sink)?,
            Form::Events | Form::Unknown => {
                let answer = &mut self.answer;
                // A last event that is no JSON was cut: the answer's own end says what that means.
                let mut each = |event: Event<'_>| match event.data.trim() {
                    data if data.starts_with('{') && !is_json(data) => Ok(()),
                    _ => answer.event(event, sink).map_err(Failed::Model),
                };
                let result = self.decoder.finish(&mut each);
                self.unless_complete(result)?;
            }
        }
        if !self.answer.has_begun() {
            return Err(self.no_answer());
        }
        self.answer.finish(host, sink)
    }

    /// A body that is one JSON document, or no JSON at all.
    fn whole(&mut self, bytes: &[u8], sink: &mut dyn FnMut(ModelEvent)) -> Result<(), ModelError> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        if !is_json(text) {
            return Err(self.no_answer());
        }
        self.answer.event(Event { name: "", data: text }, sink)?;
        self.answer.end_of_document();
        Ok(())
    }

    fn no_answer(&self) -> ModelError {
        let begin = String::from_utf8_lossy(&self.excerpt);
        let text = classify::excerpt(&classify::page_text(begin.trim()), EXCERPT_BYTES);
        let host = self.answer.authority();
        let error = |message| ModelError::new(ErrorKind::Protocol, message);
        if text.is_empty() || text.starts_with(':') || text.starts_with("data:") {
            return error(format!("the stream from {host} held no answer"));
        }
        let error = error(format!("{host} sent no answer but this: {text}"))
            .with_hint("check that the base URL is that of a model server");
        // A page is a portal or the wrong server: it stays one.
        if begin.trim_start().starts_with('<') { error.not_retryable() } else { error }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// What can fail while bytes are decoded.
enum Failed {
    Sse(SseError),
    Model(ModelError),
}

impl From<SseError> for Failed {
    fn from(error: SseError) -> Failed {
        Failed::Sse(error)
    }
}

impl Failed {
    fn into_error(self, answer: &impl Assemble) -> ModelError {
        match self {
            Failed::Sse(error) => {
                let text = format!("unreadable answer from {}: {error}", answer.authority());
                ModelError::new(ErrorKind::Protocol, text)
            }
            Failed::Model(error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Message, Request, ToolSpec};
    use crate::provider::openai::answer::Answer;
    use std::fmt::Write;
    use std::path::PathBuf;

    fn streams() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/streams")
    }

    /// Events and outcome as text, one line each.
    fn read(pieces: &[&[u8]]) -> String {
        let tool = |name: &str| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: "{}".into(),
        };
        let tools = [tool("ls"), tool("read"), tool("write")];
        let messages = [Message::text(crate::model::Role::User, "12345678")];
        let request = Request {
            model: "m",
            system: &[],
            messages: &messages,
            tools: &tools,
            session_id: "s",
            reasoning_effort: None,
            reasoning_summary: None,
            max_output_tokens: None,
        };
        let origin = Origin { provider: "p", authority: "host", repeats_reasoning: false };
        let mut reader = Reader::of(Answer::new(&request, origin));
        let mut shown = String::new();
        let mut sink = |event: ModelEvent| {
            let _ = writeln!(shown, "{event:?}");
        };
        let mut result = Ok(());
        for piece in pieces {
            result = result.and_then(|()| reader.push(piece, &mut sink));
        }
        let outcome = match result {
            Ok(()) => reader.finish(&Host::fixed(), &mut sink),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(finish) => writeln!(shown, "finish: {}", finish.as_str()),
            Err(error) => {
                let again = if error.retryable { "try again" } else { "final" };
                writeln!(shown, "error: {} ({again}): {error}", error.kind.as_str())
            }
        }
        .unwrap();
        shown
    }

    /// `UPDATE_FIXTURES=1` in the environment writes what is read: look at the difference.
    #[test]
    fn every_recorded_stream_means_what_its_golden_file_says_however_it_is_cut() {
        let mut names: Vec<PathBuf> =
            std::fs::read_dir(streams()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.retain(|path| path.extension().is_some_and(|ext| ext == "sse"));
        names.sort();
        assert!(names.len() >= 90, "{} streams", names.len());
        let mut wrong = Vec::new();
        for path in names {
            let bytes = std::fs::read(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let got = read(&[&bytes]);
            let want_path = path.with_extension("want");
            if std::env::var_os("UPDATE_FIXTURES").is_some() {
                std::fs::write(&want_path, &got).unwrap();
            }
            let want = std::fs::read_to_string(&want_path).unwrap_or_default();
            if got != want {
                wrong.push(format!("{name}: got\n{got}want\n{want}"));
                continue;
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            if read(&single) != want {
                wrong.push(format!("{name}: byte by byte it is\n{}want\n{want}", read(&single)));
            }
            for cut in 0..bytes.len() {
                let (one, two) = bytes.split_at(cut);
                if read(&[one, two]) != want {
                    wrong.push(format!("{name}: cut at {cut} it is\n{}", read(&[one, two])));
                    break;
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
