//! Calls a model and keeps what it said, for tests below the binary.

use std::sync::Arc;
use std::time::Duration;

use etch::cancel::Cancel;
use etch::host::Host;
use etch::model::{
    Finish, Message, Model, ModelError, ModelEvent, Request, Retry, Role, ToolCall, ToolSpec,
};
use etch::provider::openai::access::Access;
use etch::provider::retry::RetryPolicy;
use etch::provider::secret::Secret;
use etch::provider::{ApiKey, ProviderSettings, build};
use etch::wire::http::Timeouts;

/// Settings for the server at `base_url`: quick retries, a key, patience of a test.
pub fn settings(base_url: &str) -> ProviderSettings {
    let mut settings = ProviderSettings::new("openai", "m");
    base_url.clone_into(&mut settings.base_url);
    settings.retry = RetryPolicy::new(5, Duration::from_millis(1));
    settings.timeouts = Timeouts {
        connect: Duration::from_secs(10),
        headers: Duration::from_secs(20),
        idle: Duration::from_secs(20),
    };
    let source = "OPENAI_API_KEY".to_owned();
    settings.access = Access::Key(ApiKey { secret: Secret::new("sk-test-ABCDEF"), source });
    settings
}

pub fn model_at(base_url: &str) -> Box<dyn Model> {
    model(&settings(base_url), Host::fixed())
}

pub fn model(settings: &ProviderSettings, host: Host) -> Box<dyn Model> {
    build(settings, Arc::new(host)).expect("usable settings")
}

/// What came of one call.
#[derive(Debug)]
pub struct Outcome {
    pub result: Result<Finish, ModelError>,
    pub events: Vec<ModelEvent>,
}

impl Outcome {
    pub fn text(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            ModelEvent::TextDelta(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub fn calls(&self) -> Vec<ToolCall> {
        let calls = self.events.iter().filter_map(|event| match event {
            ModelEvent::ToolCallEnd { call, .. } => Some(call.clone()),
            _ => None,
        });
        calls.collect()
    }

    pub fn retries(&self) -> Vec<&Retry> {
        let retries = self.events.iter().filter_map(|event| match event {
            ModelEvent::Retry(retry) => Some(retry),
            _ => None,
        });
        retries.collect()
    }

    #[track_caller]
    pub fn error(&self) -> &ModelError {
        match &self.result {
            Err(error) => error,
            Ok(finish) => panic!("no error, but {finish:?}"),
        }
    }
}

/// Tools that the tests' models may call.
pub fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: format!("{name} something"),
        parameters: r#"{"type":"object","properties":{"path":{"type":"string"}}}"#.into(),
    };
    vec![tool("ls"), tool("read"), tool("write")]
}

pub fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

/// One call with these messages.
pub fn ask(model: &dyn Model, messages: &[Message]) -> Outcome {
    ask_with(model, messages, &Cancel::new(), &mut |_| {}, |_| {})
}

/// One call; `change` may set what the request holds, `watch` sees the events as they come.
pub fn ask_with(
    model: &dyn Model,
    messages: &[Message],
    cancel: &Cancel,
    watch: &mut dyn FnMut(&ModelEvent),
    change: impl FnOnce(&mut Request<'_>),
) -> Outcome {
    let tools = tools();
    let system = [Message::text(Role::System, "be brief")];
    let mut request = Request {
        model: "m",
        system: &system,
        messages,
        tools: &tools,
        session_id: "s",
        reasoning_effort: None,
        reasoning_summary: None,
        max_output_tokens: None,
    };
    change(&mut request);
    let mut events = Vec::new();
    let result = model.stream(&request, cancel, &mut |event| {
        watch(&event);
        events.push(event);
    });
    Outcome { result, events }
}
