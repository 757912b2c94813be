//! The trivial provider: answers with the latest user text. Needs no network and no key.

use crate::cancel::Cancel;
use crate::model::{
    ErrorKind, Finish, Metrics, Model, ModelError, ModelEvent, Request, Role, Usage,
};

pub struct Echo;

impl Model for Echo {
    fn provider(&self) -> &str {
        "echo"
    }

    fn stream(
        &self,
        request: &Request<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::new(ErrorKind::Cancelled, "cancelled"));
        }
        let latest = request.messages.iter().rfind(|message| message.role == Role::User);
        let text = latest.map(crate::model::Message::joined_text).unwrap_or_default();
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if !text.is_empty() {
            sink(ModelEvent::TextStart);
            sink(ModelEvent::TextDelta(text));
            sink(ModelEvent::TextEnd);
        }
        let tokens = bytes.div_ceil(4);
        sink(ModelEvent::Usage(Usage {
            input: tokens,
            output: tokens,
            total: tokens * 2,
            estimated: true,
            ..Usage::default()
        }));
        sink(ModelEvent::Metrics(Metrics {
            transport: "echo".into(),
            requests: 1,
            input_messages: u64::try_from(request.messages.len()).unwrap_or(u64::MAX),
            ..Metrics::default()
        }));
        Ok(Finish::Stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Message;

    #[test]
    fn it_answers_with_the_latest_user_text() {
        let messages = [
            Message::text(Role::User, "old"),
            Message::text(Role::Assistant, "no"),
            Message::text(Role::User, "hé"),
        ];
        let request = Request {
            model: "",
            system: &[],
            messages: &messages,
            tools: &[],
            session_id: "s",
            reasoning_effort: None,
            reasoning_summary: None,
            max_output_tokens: None,
        };
        let mut events = Vec::new();
        let result = Echo.stream(&request, &Cancel::new(), &mut |event| events.push(event));
        assert_eq!(result, Ok(Finish::Stop));
        assert_eq!(
            events[..3],
            [ModelEvent::TextStart, ModelEvent::TextDelta("hé".into()), ModelEvent::TextEnd,]
        );
    }
}
