//! The Responses protocol over HTTP: what is sent, and what comes of the answers.

use etch::model::{Finish, Message, ModelEvent, Part, ResultStatus, Role, ToolResult};
use etch::provider::ProviderSettings;
use serde_json::{Value, json};

use crate::support::model::{Outcome, ask, ask_with, model, settings, user};
use crate::support::responses::Responses;
use crate::support::server::{Reply, Server};

fn responses(server: &Server) -> ProviderSettings {
    let mut settings = settings(&format!("{}/v1", server.url()));
    settings.api = "responses".to_owned();
    settings
}

fn bodies(server: &Server) -> Vec<Value> {
    let seen = server.seen();
    seen.iter().map(|seen| serde_json::from_slice(&seen.body).unwrap()).collect()
}

/// The answer as the log would give it back, with a result for each call.
pub fn said(outcome: &Outcome) -> Vec<Message> {
    let (mut parts, mut results) = (Vec::new(), Vec::new());
    let mut items = Vec::new();
    for event in &outcome.events {
        match event {
            ModelEvent::TextStart => parts.push(Part::Text(String::new())),
            ModelEvent::TextDelta(delta) => match parts.last_mut() {
                Some(Part::Text(text)) => text.push_str(delta),
                _ => panic!("a delta outside of a run"),
            },
            ModelEvent::ToolCallEnd { call, .. } => {
                parts.push(Part::ToolCall(call.clone()));
                results.push(Message {
                    role: Role::Tool,
                    parts: vec![Part::ToolResult(ToolResult {
                        call_id: call.id.clone(),
                        name: call.name.clone(),
                        text: "out".into(),
                        status: ResultStatus::Ok,
                    })],
                });
            }
            ModelEvent::ProviderItem(opaque) => items.push(opaque.clone()),
            _ => {}
        }
    }
    for item in items.into_iter().rev() {
        parts.insert(item.at, Part::Opaque(item));
    }
    let mut messages = vec![Message { role: Role::Assistant, parts }];
    messages.extend(results);
    messages
}

#[test]
fn a_tool_turn_sends_everything_back_in_the_order_in_which_it_came() {
    let first = Responses::new().reasoning("plan").call("call_1", "ls", "{\"path\":\"a\"}");
    let first = first.message("and").reasoning("more").call("call_2", "read", "{}");
    let server = Server::start([
        first.usage(100, 64, 30, 20).completed().reply(),
        Responses::answer("done").reply(),
    ]);
    let model = model(&responses(&server), etch::host::Host::fixed());
    let mut messages = vec![user("go")];
    let outcome = ask(&*model, &messages);
    assert_eq!(outcome.result, Ok(Finish::ToolCalls));
    let usage = outcome.events.iter().find_map(|event| match event {
        ModelEvent::Usage(usage) => Some(*usage),
        _ => None,
    });
    let usage = usage.unwrap();
    assert_eq!(
        (usage.input, usage.cached_input, usage.output, usage.reasoning_output),
        (100, 64, 30, 20)
    );
    messages.extend(said(&outcome));
    let outcome = ask(&*model, &messages);
    assert_eq!((outcome.result.clone(), outcome.text()), (Ok(Finish::Stop), "done".into()));
    let bodies = bodies(&server);
    assert_eq!(bodies[0]["store"], false);
    assert_eq!(bodies[0]["stream"], true);
    assert_eq!(bodies[0]["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(bodies[0]["instructions"], "be brief");
    assert_eq!(bodies[0]["prompt_cache_key"], "s");
    assert_eq!(bodies[0]["tools"][0]["name"], "ls");
    let kinds: Vec<&str> = bodies[1]["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "message",
            "reasoning",
            "function_call",
            "message",
            "reasoning",
            "function_call",
            "function_call_output",
            "function_call_output"
        ]
    );
    let reasoning = &bodies[1]["input"][1];
    assert!(reasoning["encrypted_content"].as_str().unwrap().starts_with("gAAAA-rs"));
    assert_eq!(reasoning["summary"][0]["text"], "plan");
}

#[test]
fn a_models_state_goes_back_to_its_own_model_and_server_alone() {
    let first = || Responses::new().reasoning("plan").call("c1", "ls", "{}").completed().reply();
    let answer = || Responses::answer("done").reply();
    let server = Server::start([first(), answer(), answer()]);
    let other = Server::start([answer()]);
    let own = model(&responses(&server), etch::host::Host::fixed());
    let mut messages = vec![user("go")];
    messages.extend(said(&ask(&*own, &messages)));
    ask(&*own, &messages);
    let change = |request: &mut etch::model::Request<'_>| request.model = "another";
    ask_with(&*own, &messages, &etch::cancel::Cancel::new(), &mut |_| {}, change);
    let elsewhere = model(&responses(&other), etch::host::Host::fixed());
    ask(&*elsewhere, &messages);
    let holds = |body: &Value| body.to_string().contains("encrypted_content\":");
    let sent = bodies(&server);
    assert!(holds(&sent[1]) && !holds(&sent[2]), "{sent:?}");
    let sent = bodies(&other);
    assert!(!holds(&sent[0]), "{sent:?}");
    assert_eq!(sent[0]["input"][1]["type"], "function_call");
}

#[test]
fn a_field_that_is_refused_by_name_is_left_out_at_once() {
    let refusal = |param: &str, message: &str| {
        Reply::json(
            400,
            &json!({"error": {"message": message, "type": "invalid_request_error",
                "param": param, "code": "unsupported_parameter"}}),
        )
    };
    let server = Server::start([
        refusal("include", "Encrypted content is not supported with this model."),
        refusal("reasoning.summary", "Unsupported parameter: 'reasoning.summary'"),
        refusal("reasoning.effort", "Unsupported parameter: 'reasoning.effort'"),
        refusal("prompt_cache_key", "Unknown parameter: 'prompt_cache_key'"),
        Responses::answer("hi").reply(),
    ]);
    let model = model(&responses(&server), etch::host::Host::fixed());
    let messages = [user("go")];
    let cancel = etch::cancel::Cancel::new();
    let outcome = ask_with(&*model, &messages, &cancel, &mut |_| {}, |request| {
        request.reasoning_effort = Some("high");
        request.reasoning_summary = Some("auto");
    });
    assert_eq!(outcome.text(), "hi");
    let sent = bodies(&server);
    assert_eq!(sent[0]["reasoning"], json!({"effort": "high", "summary": "auto"}));
    assert_eq!(sent[2]["reasoning"], json!({"effort": "high"}));
    for field in ["include", "reasoning", "prompt_cache_key"] {
        assert_eq!(sent[4].get(field), None, "{field}");
    }
    let notices = outcome.events.iter().filter(|event| matches!(event, ModelEvent::Notice(_)));
    assert_eq!(notices.count(), 2);
}

#[test]
fn state_that_the_server_cannot_read_any_more_is_left_out_once() {
    let refusal = json!({"error": {"message": "The encrypted content for item rs_1 could not be \
        verified.", "type": "invalid_request_error", "param": null,
        "code": "invalid_encrypted_content"}});
    let server = Server::start([
        Responses::new().reasoning("plan").call("c1", "ls", "{}").completed().reply(),
        Reply::json(400, &refusal),
        Responses::answer("done").reply(),
    ]);
    let model = model(&responses(&server), etch::host::Host::fixed());
    let mut messages = vec![user("go")];
    messages.extend(said(&ask(&*model, &messages)));
    assert_eq!(ask(&*model, &messages).text(), "done");
    let sent = bodies(&server);
    assert_eq!(sent[1]["input"][1]["type"], "reasoning");
    assert_eq!(sent[2]["input"][1]["type"], "function_call");
}
