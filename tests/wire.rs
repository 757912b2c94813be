//! The wire: what the scripted server itself promises, and how connections behave.

use etch::host::Host;
use serde_json::json;

use crate::support::chat::Chat;
use crate::support::command::TempDir;
use crate::support::history::check_history;
use crate::support::model::{ask, model, settings, user};
use crate::support::relay::Relay;
use crate::support::server::{Framing, Reply, Server};
use crate::support::tls;

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

/// A call through the proxies of this environment; the error as text.
fn call_with(vars: &[(&str, String)], base_url: &str) -> Result<String, String> {
    let mut host = Host::fixed();
    for (name, value) in vars {
        host = host.with_var(*name, value);
    }
    let outcome = ask(&*model(&settings(base_url), host), &[user("go")]);
    let text = outcome.text();
    outcome.result.map(|_| text).map_err(|error| error.to_string())
}

#[test]
fn another_host_is_reached_through_the_proxy_and_this_machine_is_not() {
    let server = Server::with(|_| Chat::answer("Hi"));
    let proxy = Server::with(|_| Chat::answer("proxied"));
    let names = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    for name in names {
        let answer = call_with(&[(name, proxy.url())], "http://model.example/v1");
        assert_eq!(answer.as_deref(), Ok("proxied"), "{name}");
    }
    let seen = proxy.seen();
    assert_eq!(seen.len(), 2 * names.len());
    for pair in seen.chunks(2) {
        assert_eq!(
            (pair[0].method.as_str(), pair[0].path.as_str()),
            ("CONNECT", "model.example:80")
        );
        assert_eq!(pair[0].header("authorization"), None);
        assert_eq!(pair[1].path, "/v1/chat/completions");
    }
    let port = server.address().port();
    for host in ["127.0.0.1", "localhost"] {
        for name in names {
            let answer = call_with(&[(name, proxy.url())], &format!("http://{host}:{port}/v1"));
            assert_eq!(answer.as_deref(), Ok("Hi"), "{name} {host}");
        }
    }
    assert_eq!(proxy.seen().len(), 2 * names.len());
}

#[test]
fn hosts_that_the_environment_names_are_called_without_the_proxy() {
    let proxy = Server::with(|_| Chat::answer("proxied"));
    for (list, proxied) in [
        ("*", false),
        (" localhost , .invalid ", false),
        ("no-such-host.invalid:80", false),
        ("no-such-host.invalid:81", true),
        ("fd00::/8, ///, 10.0.0.0/99", true),
        ("", true),
    ] {
        let vars = [("HTTP_PROXY", proxy.url()), ("no_proxy", list.to_owned())];
        let answer = call_with(&vars, "http://no-such-host.invalid/v1");
        assert_eq!(answer.as_deref() == Ok("proxied"), proxied, "{list}: {answer:?}");
    }
}

#[test]
fn a_failing_proxy_is_named() {
    let refusing = Server::start_refusing_connect([Reply::new(502, "text/plain", "no")]);
    let login = refusing.url().replace("http://", "http://joe:hunter2@");
    let error = call_with(&[("HTTP_PROXY", login)], "http://model.example/v1").unwrap_err();
    let shown = refusing.url();
    assert!(error.contains(&shown) && error.contains("model.example"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    let seen = &refusing.seen()[0];
    assert!(seen.header("proxy-authorization").is_some_and(|v| v.starts_with("Basic ")));
    let gone = Server::start([]).url();
    let error = call_with(&[("ALL_PROXY", gone.clone())], "https://model.example/v1").unwrap_err();
    assert!(error.contains(&gone) && error.contains("NO_PROXY"), "{error}");
    let socks = [("ALL_PROXY", "socks5://127.0.0.1:1".to_owned())];
    let error = call_with(&socks, "http://model.example/v1").unwrap_err();
    assert!(error.contains("ALL_PROXY") && error.contains("socks5"), "{error}");
}

/// The settings and the host for a TLS server whose authority is trusted.
fn trusting() -> Host {
    Host::fixed().with_var("SSL_CERT_FILE", tls::authority_file())
}

#[test]
fn tls_streams_may_close_without_their_alert_only_where_they_are_complete() {
    let whole = Chat::new().text("Hello").finish("stop").done();
    let server = Server::start_tls(
        tls::server_config(),
        [
            whole.clone().reply().then_close(),
            whole.reply().framing(Framing::UntilClose),
            Chat::new().text("Hel").reply().then_cut(),
            Chat::answer("Hello"),
            Chat::answer("again"),
        ],
    );
    let port = server.address().port();
    let model = model(&settings(&format!("https://localhost:{port}/v1")), trusting());
    for _ in 0..2 {
        let outcome = ask(&*model, &[user("go")]);
        assert_eq!((outcome.text().as_str(), outcome.retries().len()), ("Hello", 0));
    }
    let cut = ask(&*model, &[user("go")]);
    assert_eq!((cut.text().as_str(), cut.retries().len()), ("HelHello", 1));
    let said = &cut.retries()[0].error.message;
    assert!(!said.contains("close_notify") && !said.contains("://"), "{said}");
    assert_eq!(ask(&*model, &[user("go")]).text(), "again");
    assert_eq!(server.connections(), 4);
}

#[test]
fn tls_goes_through_the_tunnel_of_a_proxy() {
    let server =
        Server::start_tls(tls::server_config(), [Chat::answer("Hi"), Chat::answer("again")]);
    let relay = Relay::start(server.address());
    let host = trusting().with_var("https_proxy", relay.url()).with_var("HTTP_PROXY", "http://x:1");
    let model = model(&settings("https://model.example/v1"), host);
    assert_eq!(ask(&*model, &[user("go")]).text(), "Hi");
    assert_eq!(ask(&*model, &[user("go")]).text(), "again");
    assert_eq!((relay.targets(), server.connections()), (vec!["model.example:443".into()], 1));
}

#[test]
fn trust_in_a_server_is_decided_by_the_roots_that_are_set() {
    let server = Server::start_tls(tls::server_config(), [Chat::answer("Hi")]);
    let base = server.base_url();
    let dir = TempDir::new();
    let error = |host: Host| {
        let outcome = ask(&*model(&settings(&base), host), &[user("go")]);
        assert_eq!(outcome.retries().len(), 0);
        outcome.error().to_string()
    };
    let unknown = error(Host::fixed());
    assert!(
        unknown.contains("no secure connection") && unknown.contains("SSL_CERT_FILE"),
        "{unknown}"
    );
    let missing = dir.path().join("missing.pem");
    let text = error(Host::fixed().with_var("SSL_CERT_FILE", &missing));
    assert!(text.contains(&format!("SSL_CERT_FILE: cannot read {}", missing.display())), "{text}");
    for junk in ["", "junk", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"] {
        let path = dir.write("bad.pem", junk);
        let text = error(Host::fixed().with_var("SSL_CERT_FILE", &path));
        assert!(text.starts_with("SSL_CERT_FILE: ") && text.contains("bad.pem"), "{text}");
    }
    assert_eq!(ask(&*model(&settings(&base), trusting()), &[user("go")]).text(), "Hi");
}

#[test]
fn what_is_no_tls_is_said_to_be_none() {
    let server = Server::start([]).allow_any_request();
    let base = server.base_url().replace("http://", "https://");
    let outcome = ask(&*model(&settings(&base), Host::fixed()), &[user("go")]);
    let text = outcome.error().to_string();
    assert!(text.contains(&server.address().to_string()) && !text.contains("://"), "{text}");
}
