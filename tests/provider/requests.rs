//! What is sent: where to, with which headers, and in a form that strict servers take.

use etch::host::Host;
use etch::model::{
    Finish, Message, ModelEvent, Part, Reasoning, ResultStatus, Role, ToolCall, ToolResult,
};
use etch::provider::openai::access::Access;
use etch::provider::secret::Secret;
use serde_json::{Value, json};

use crate::support::chat::Chat;
use crate::support::model::{ask, ask_with, model, model_at, settings, user};
use crate::support::server::{Reply, Seen, Server};

/// The assistant's message and the results of its calls, as the log would give them back.
fn continued(events: &[ModelEvent]) -> Vec<Message> {
    let mut parts = Vec::new();
    let mut results = Vec::new();
    let mut text = String::new();
    for event in events {
        match event {
            ModelEvent::TextDelta(delta) => text.push_str(delta),
            ModelEvent::ReasoningEnd(reasoning) => parts.push(Part::Reasoning(reasoning.clone())),
            ModelEvent::ProviderItem(opaque) => parts.push(Part::Opaque(opaque.clone())),
            ModelEvent::ToolCallEnd { call, .. } => {
                parts.push(Part::ToolCall(call.clone()));
                results.push(result(&call.id, "out"));
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    let mut messages = vec![Message { role: Role::Assistant, parts }];
    messages.extend(results);
    messages
}

fn result(id: &str, text: &str) -> Message {
    let result = ToolResult {
        call_id: id.into(),
        name: "ls".into(),
        text: text.into(),
        status: ResultStatus::Ok,
    };
    Message { role: Role::Tool, parts: vec![Part::ToolResult(result)] }
}

#[test]
fn every_form_of_a_base_url_reaches_the_call() {
    let server = Server::with(|seen| match seen.path.as_str() {
        "/v1/chat/completions" | "/gw/v1/chat/completions" => Chat::answer("Hi"),
        _ => Reply::new(404, "text/plain", "404 page not found"),
    });
    let (url, port) = (server.url(), server.address().port());
    for base in [
        format!("{url}/v1"),
        format!("{url}/v1/"),
        url.clone(),
        format!("{url}/gw/v1"),
        format!("{url}/gw/v1//"),
        format!(" {url}/v1 "),
        format!("{url}/v1/chat/completions"),
        format!("http://localhost:{port}"),
        format!("localhost:{port}/v1"),
    ] {
        assert_eq!(ask(&*model_at(&base), &[user("go")]).text(), "Hi", "{base}");
    }
    let outcome = ask(&*model_at(&format!("{url}/wrong")), &[user("go")]);
    let text = outcome.error().to_string();
    assert!(text.contains(&format!("{url}/wrong/chat/completions")), "{text}");
    assert!(text.contains("/v1"), "{text}");
}

#[test]
fn headers_are_few_and_the_key_is_trimmed() {
    for key in ["sk-test-ABCDEF", "sk-test-ABCDEF\n", "sk-test-ABCDEF\r\n"] {
        let server = Server::start([Chat::answer("Hi")]);
        let mut settings = settings(&server.base_url());
        if let Access::Key(set) = &mut settings.access {
            set.secret = Secret::new(key);
        }
        assert_eq!(ask(&*model(&settings, Host::fixed()), &[user("go")]).text(), "Hi");
        let seen = &server.seen()[0];
        assert_eq!(seen.header("authorization"), Some("Bearer sk-test-ABCDEF"), "{key:?}");
        assert_eq!(seen.header("content-type"), Some("application/json"));
        assert!(seen.header("user-agent").is_some_and(|agent| agent.starts_with("etch/")));
        let mut names: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        let want =
            ["accept", "authorization", "content-length", "content-type", "host", "user-agent"];
        assert_eq!(names, want);
    }
}

#[test]
fn a_server_without_a_key_gets_no_header_for_it() {
    let server = Server::start([Chat::answer("Hi")]);
    let mut settings = settings(&server.base_url());
    settings.access = Access::None;
    assert_eq!(ask(&*model(&settings, Host::fixed()), &[user("go")]).text(), "Hi");
    assert_eq!(server.seen()[0].header("authorization"), None);
}

#[test]
fn a_redirect_is_not_followed_and_the_key_goes_nowhere() {
    let other = Server::start([]);
    let target = format!("{}/v1/chat/completions", other.url());
    let server =
        Server::with(move |_| Reply::new(307, "text/plain", "moved").header("Location", &target));
    let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
    let text = outcome.error().to_string();
    assert!(text.contains("HTTP 307") && text.contains(&other.url()), "{text}");
    assert_eq!((server.seen().len(), other.seen().len()), (1, 0));
}

/// A server that refuses the field until it is gone.
fn picky(refuses: impl Fn(&Value) -> Option<Reply> + Send + Sync + 'static) -> Server {
    Server::with(move |seen: &Seen| refuses(&seen.json()).unwrap_or_else(|| Chat::answer("Hi")))
}

fn unsupported(param: &str, message: &str) -> Reply {
    Reply::json(
        400,
        &json!({"error": {"message": message, "type": "invalid_request_error", "param": param,
            "code": "unsupported_parameter"}}),
    )
}

#[test]
fn a_field_that_the_server_refuses_by_name_is_changed_once_and_remembered() {
    let said = "Unsupported parameter: 'max_tokens' is not supported with this model. \
                Use 'max_completion_tokens' instead.";
    let limit = picky(|body| body.get("max_tokens").map(|_| unsupported("max_tokens", said)));
    let model = model_at(&limit.base_url());
    for _ in 0..2 {
        let outcome = ask_with(
            &*model,
            &[user("go")],
            &etch::cancel::Cancel::new(),
            &mut |_| {},
            |request| request.max_output_tokens = Some(9),
        );
        assert_eq!((outcome.text().as_str(), outcome.retries().len()), ("Hi", 0));
    }
    let sent: Vec<_> =
        limit.seen().iter().map(|seen| seen.json()["max_completion_tokens"].clone()).collect();
    assert_eq!(sent, [Value::Null, json!(9), json!(9)]);

    let extra = picky(|body| {
        let refused = body.get("stream_options")?;
        let text = format!(
            "{{\"detail\":[{{\"loc\":[\"body\",\"stream_options\"],\"msg\":\
            \"stream_options: Extra inputs are not permitted\",\"input\":{refused}}}]}}"
        );
        Some(Reply::new(422, "application/json", text))
    });
    assert_eq!(ask(&*model_at(&extra.base_url()), &[user("go")]).text(), "Hi");
    assert_eq!(extra.seen().len(), 2);

    let effort = picky(|body| {
        body.get("reasoning_effort").map(|_| {
            unsupported("reasoning_effort", "Unrecognized request argument: reasoning_effort")
        })
    });
    let outcome = ask_with(
        &*model_at(&effort.base_url()),
        &[user("go")],
        &etch::cancel::Cancel::new(),
        &mut |_| {},
        |request| request.reasoning_effort = Some("high"),
    );
    assert_eq!(outcome.text(), "Hi");
    let host = effort.address();
    let notice = format!("{host} takes no reasoning effort: going on without it");
    assert!(outcome.events.contains(&ModelEvent::Notice(notice)), "{:?}", outcome.events);
}

#[test]
fn a_field_that_stays_refused_is_an_error_and_no_loop() {
    let server = Server::with(|_| unsupported("messages", "Unsupported parameter: 'messages'"));
    let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
    assert!(outcome.error().message.contains("'messages'"));
    assert_eq!(server.seen().len(), 1);
    let server = Server::with(|_| unsupported("max_tokens", "'max_tokens' is not supported"));
    let outcome = ask_with(
        &*model_at(&server.base_url()),
        &[user("go")],
        &etch::cancel::Cancel::new(),
        &mut |_| {},
        |request| request.max_output_tokens = Some(9),
    );
    assert!(outcome.result.is_err());
    assert!(server.seen().len() <= 3, "{}", server.seen().len());
}

#[test]
fn reasoning_sent_beside_a_call_comes_back_under_its_own_name() {
    for field in ["reasoning_content", "reasoning"] {
        let server = Server::with(move |seen: &Seen| {
            let body = seen.json();
            let messages = body["messages"].as_array().unwrap();
            let said = messages.iter().filter(|message| message["role"] == "assistant");
            let missing = said.clone().any(|message| message.get(field).is_none());
            let first = said.clone().next().map(|message| message[field].clone());
            match (missing, first) {
                (true, _) => Reply::error(
                    400,
                    "invalid_request_error",
                    "The `reasoning_content` in the thinking mode must be passed back to the API.",
                ),
                (_, None) => Chat::new()
                    .delta(&json!({field: "plan…"}))
                    .call(0, "c1", "ls", "{}")
                    .finish("tool_calls")
                    .done()
                    .reply(),
                (_, Some(text)) if text == "plan…" => Chat::answer("done"),
                (_, Some(text)) => Reply::error(400, "x", &format!("wrong reasoning {text}")),
            }
        });
        let model = model_at(&server.base_url());
        let mut messages = vec![user("go")];
        let first = ask(&*model, &messages);
        assert_eq!(first.text(), "", "reasoning is no answer");
        messages.extend(continued(&first.events));
        let second = ask(&*model, &messages);
        assert_eq!((second.text().as_str(), second.result.clone()), ("done", Ok(Finish::Stop)));
        messages.extend(continued(&second.events));
        messages.push(user("more"));
        // A fresh adapter, as after a resume.
        assert_eq!(ask(&*model_at(&server.base_url()), &messages).text(), "done", "{field}");
        assert_eq!(server.seen().len(), 3, "{field}");
    }
}

#[test]
fn reasoning_that_was_never_sent_is_never_made_up_and_a_refusal_turns_it_round() {
    let server = Server::with(|_| Chat::answer("done"));
    let call = ToolCall { id: "c".into(), name: "ls".into(), arguments: "{}".into(), extra: None };
    let plain = [
        user("go"),
        Message { role: Role::Assistant, parts: vec![Part::ToolCall(call.clone())] },
        result("c", "out"),
    ];
    assert_eq!(ask(&*model_at(&server.base_url()), &plain).text(), "done");
    assert!(!server.seen()[0].json().to_string().contains("reasoning"));

    let wants = picky(|body| {
        let said = body["messages"].as_array()?.iter().find(|m| m["role"] == "assistant")?;
        said.get("reasoning_content").is_none().then(|| {
            Reply::error(
                400,
                "invalid_request_error",
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
            )
        })
    });
    assert_eq!(ask(&*model_at(&wants.base_url()), &plain).text(), "Hi");
    assert_eq!(wants.seen().len(), 2);

    let hates = picky(|body| {
        let said = body["messages"].as_array()?.iter().find(|m| m["role"] == "assistant")?;
        said.get("reasoning_content").map(|_| {
            Reply::error(400, "invalid_request_error", "reasoning_content is not allowed here")
        })
    });
    let mut thought = plain.to_vec();
    let reasoning = Reasoning {
        text: "hm".into(),
        field: "reasoning_content".into(),
        provider: "openai".into(),
        model: "m".into(),
    };
    thought[1].parts.insert(0, Part::Reasoning(reasoning));
    assert_eq!(ask(&*model_at(&hates.base_url()), &thought).text(), "Hi");
    assert_eq!(hates.seen().len(), 2);
}

#[test]
fn a_history_with_holes_is_taken_by_a_strict_server() {
    let server = Server::with(|_| Chat::answer("Hi"));
    let call = |id: &str, arguments: &str| {
        Part::ToolCall(ToolCall {
            id: id.into(),
            name: "ls".into(),
            arguments: arguments.into(),
            extra: None,
        })
    };
    let said = |parts: Vec<Part>| Message { role: Role::Assistant, parts };
    let messages = [
        result("lost", "orphan"),
        user("go"),
        said(vec![call("a", "{\"broken"), call("b", ""), call("b", "[]")]),
        user("steer"),
        result("b", ""),
        said(vec![]),
        said(vec![Part::Text(" ".into())]),
        said(vec![call(&"long".repeat(20), "{}"), call("", "{}")]),
        user(" "),
        user("end"),
    ];
    // The server itself refuses what strict servers refuse.
    assert_eq!(ask(&*model_at(&server.base_url()), &messages).text(), "Hi");
}

#[test]
fn what_was_sent_once_is_sent_again_byte_for_byte() {
    let replies = (0..6).map(|round| {
        let id = format!("c{round}");
        Chat::calls(&[(id.as_str(), "ls", "{\"path\": \"é\\n\"}")])
    });
    let server = Server::start(replies);
    let model = model_at(&server.base_url());
    let mut messages = vec![user("go \u{1f980}")];
    for _ in 0..6 {
        let outcome = ask(&*model, &messages);
        messages.extend(continued(&outcome.events));
    }
    let bodies: Vec<Vec<u8>> = server.seen().into_iter().map(|seen| seen.body).collect();
    for pair in bodies.windows(2) {
        let kept = &pair[0][..pair[0].len() - "]}".len()];
        assert!(pair[1].starts_with(kept));
    }
}
