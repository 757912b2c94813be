//! Reads the body of one answer: bytes in, model events out, one finish or one error.
//!
//! Takes an event stream or one whole JSON document, whatever the content type says: the first
//! byte that is no blank decides. What the chunks mean is [`Answer`]'s business.

use serde_json::value::RawValue;

use crate::host::Host;
use crate::model::{ErrorKind, Finish, ModelError, ModelEvent, Request};
use crate::provider::classify;
use crate::provider::openai::answer::{Answer, Origin};
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

/// The reader of one answer.
pub struct Reader<'r> {
    form: Form,
    decoder: Decoder,
    excerpt: Vec<u8>,
    answer: Answer<'r>,
}

impl<'r> Reader<'r> {
    pub fn new(request: &'r Request<'r>, origin: Origin<'r>) -> Reader<'r> {
        Reader {
            form: Form::Unknown,
            decoder: Decoder::default(),
            excerpt: Vec::new(),
            answer: Answer::new(request, origin),
        }
    }

    /// Takes the next bytes of the body. An error is the answer's end.
    pub fn push(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), ModelError> {
        let room = EXCERPT_BYTES.saturating_sub(self.excerpt.len());
        self.excerpt.extend_from_slice(&bytes[..room.min(bytes.len())]);
        if let Form::Unknown = self.form {
            // The bytes of a byte order mark occur nowhere else at the start of a body.
            let leads = |b: &&u8| !b.is_ascii_whitespace() && !b"\xef\xbb\xbf".contains(b);
            match bytes.iter().find(leads) {
                None => {}
                Some(b'{' | b'[' | b'<') => self.form = Form::Whole(Vec::new()),
                Some(_) => self.form = Form::Events,
            }
        }
        let answer = &mut self.answer;
        match &mut self.form {
            Form::Whole(held) if held.len() + bytes.len() > EVENT_BYTES_MAX => {
                let error = SseError::TooLarge { bytes_max: EVENT_BYTES_MAX };
                Err(Failed::Sse(error).into_error(answer))
            }
            Form::Whole(held) => {
                held.extend_from_slice(bytes);
                Ok(())
            }
            Form::Unknown | Form::Events => {
                let mut each = |event: Event<'_>| answer.event(event, sink).map_err(Failed::Model);
                let result = self.decoder.push(bytes, &mut each);
                result.map_err(|failed| failed.into_error(&self.answer))
            }
        }
    }

    /// The end mark was read: nothing that follows matters.
    pub fn is_done(&self) -> bool {
        self.answer.is_done()
    }

    /// The answer is complete: only usage and the end mark may follow.
    pub fn is_complete(&self) -> bool {
        self.answer.is_complete()
    }

    pub fn unknown_events(&self) -> u64 {
        self.answer.unknown_events
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
                let mut each = |event: Event<'_>| answer.event(event, sink).map_err(Failed::Model);
                let result = self.decoder.finish(&mut each);
                result.map_err(|failed| failed.into_error(&self.answer))?;
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
        let text = text.trim_start_matches('\u{feff}').trim();
        if serde_json::from_str::<&RawValue>(text).is_err() {
            return Err(self.no_answer());
        }
        self.answer.event(Event { name: "", data: text }, sink)?;
        self.answer.end_of_document();
        Ok(())
    }

    fn no_answer(&self) -> ModelError {
        let text = classify::excerpt(&String::from_utf8_lossy(&self.excerpt), EXCERPT_BYTES);
        let host = self.answer.authority();
        let error = |message| ModelError::new(ErrorKind::Protocol, message);
        if text.is_empty() || text.starts_with(':') || text.starts_with("data:") {
            return error(format!("the stream from {host} held no answer"));
        }
        error(format!("the stream from {host} held no answer; it began: {text}"))
            .with_hint("check that the base URL is that of a model server")
    }
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
    fn into_error(self, answer: &Answer<'_>) -> ModelError {
        match self {
            Failed::Sse(error) => {
                let text = format!("unreadable answer from {}: {error}", answer.authority());
                ModelError::new(ErrorKind::Protocol, text)
            }
            Failed::Model(error) => error,
        }
    }
}
