//! The wire: what the scripted server itself promises, and how connections behave.

use serde_json::json;

use crate::support::chat::Chat;
use crate::support::history::check_history;

#[test]
fn the_strict_server_refuses_what_strict_servers_refuse() {
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "a"});
    let user = json!({"role": "user", "content": "hi"});
    let fine = json!([{"role": "system", "content": "s"}, user, call, result]);
    assert_eq!(check_history(&fine), Ok(()));
    let mut broken = call.clone();
    broken["tool_calls"][0]["function"]["arguments"] = json!({});
    for bad in [
        json!([]),
        json!([user, result]),
        json!([user, call]),
        json!([user, call, user, result]),
        json!([user, broken, result]),
        json!([user, {"role": "assistant", "content": ""}]),
        json!([user, call, {"role": "tool", "tool_call_id": "c1", "content": ""}]),
    ] {
        assert!(check_history(&bad).is_err(), "{bad}");
    }
}

#[test]
fn composed_streams_are_event_streams() {
    let bytes = Chat::new().text("é").finish("stop").done().into_bytes();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with("data: {") && text.ends_with("\n\ndata: [DONE]\n\n"), "{text}");
    assert!(text.contains(r#""delta":{"content":"é"}"#), "{text}");
}
