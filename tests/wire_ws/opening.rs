//! The way to a WebSocket: proxies, trust, the upgrade and its refusals.

use std::net::TcpListener;
use std::time::Duration;

use etch::cancel::Cancel;
use etch::host::Host;
use etch::wire::websocket::OpenError;
use etch::wire::{Phase, Reply as WireReply, WireErrorKind};
use serde_json::json;

use super::{error_of, hasty, open, receive, sockets};
use crate::support::command::TempDir;
use crate::support::relay::Relay;
use crate::support::server::{Framing, Reply, Server, Ws};
use crate::support::tls;

fn greeting() -> Reply {
    Reply::websocket(Ws::new().text("hi").expect_close(Some(1000)))
}

#[track_caller]
fn greeted(host: &Host, url: &str) {
    let mut socket = open(&sockets(host), url).unwrap().socket;
    assert_eq!(receive(&mut socket).unwrap(), "hi");
    assert!(socket.is_alive());
    socket.close();
}

fn trusting() -> Host {
    Host::fixed().with_var("SSL_CERT_FILE", tls::authority_file())
}

#[test]
fn another_host_is_reached_through_a_proxy_and_this_machine_is_not() {
    let server = Server::with(|_| greeting());
    let proxy = Server::with(|_| greeting());
    let login = proxy.url().replace("http://", "http://joe:h%40nter2@");
    for (url, login) in [(proxy.url(), None), (login, Some("Basic am9lOmhAbnRlcjI="))] {
        let before = proxy.seen().len();
        let host = Host::fixed().with_var("http_proxy", &url).with_var("HTTPS_PROXY", "http://x:1");
        greeted(&host, "http://model.example/v1");
        let seen = &proxy.seen()[before..];
        assert_eq!(seen[0].path, "model.example:80");
        assert_eq!(seen[0].header("proxy-authorization"), login);
        assert_eq!(seen[1].header("proxy-authorization"), None);
        assert_eq!((seen[1].path.as_str(), seen[1].header("host")), ("/v1", Some("model.example")));
        greeted(&host, &format!("http://localhost:{}/v1", server.address().port()));
        greeted(&host.with_var("NO_PROXY", "x"), &server.url());
        assert_eq!(proxy.seen().len(), before + 2);
    }
    for list in ["*", ".invalid", "no-such-host.invalid"] {
        let host = Host::fixed().with_var("ALL_PROXY", proxy.url()).with_var("NO_PROXY", list);
        let error = error_of(open(&sockets(&host), "http://no-such-host.invalid/"));
        assert!(matches!(error.kind, WireErrorKind::NoHost | WireErrorKind::Unreachable));
        assert!(error.message.starts_with("no address found for no-such-host.invalid"), "{error}");
    }
    assert_eq!(proxy.seen().len(), 4);
}

#[test]
fn tls_goes_through_tunnels_and_tls_proxies() {
    let server = Server::start_tls(tls::server_config(), [greeting()]);
    let relay = Relay::start(server.address());
    greeted(&trusting().with_var("https_proxy", relay.url()), "https://model.example/v1");
    assert_eq!(relay.targets(), ["model.example:443"]);
    // A proxy that is spoken to by TLS, for both schemes.
    let proxy = Server::start_tls(tls::server_config(), [greeting(), greeting()]);
    for (url, target) in [
        ("http://model.example/v1", "model.example:80"),
        ("https://model.example/v1", "model.example:443"),
    ] {
        greeted(&trusting().with_var("ALL_PROXY", proxy.url()), url);
        let seen = proxy.seen();
        assert_eq!(seen[seen.len() - 2].path, target);
        assert_eq!(seen[seen.len() - 1].path, "/v1");
    }
    let host = Host::fixed().with_var("ALL_PROXY", proxy.url());
    let error = error_of(open(&sockets(&host), "http://model.example/v1"));
    assert_eq!(error.kind, WireErrorKind::Tls);
    let want = format!("no secure connection to proxy {} (for model.example): ", proxy.url());
    assert!(error.message.starts_with(&want), "{error}");
}

#[test]
fn a_failing_proxy_is_named_and_its_password_is_not() {
    let refusal = |reply: Reply, want: &str| {
        let proxy = Server::start_refusing_connect([reply]);
        let login = proxy.url().replace("http://", "http://joe:hunter2@");
        let host = Host::fixed().with_var("HTTP_PROXY", login);
        let error = error_of(open(&sockets(&host), "http://model.example/v1"));
        assert_eq!(error.kind, WireErrorKind::Proxy);
        let want = format!("proxy {} (for model.example) refused the tunnel: {want}", proxy.url());
        assert_eq!(error.message, want);
    };
    refusal(Reply::new(502, "text/plain", "no"), "502 Bad Gateway");
    refusal(
        Reply::raw("HTTP/1.1 407 Who\x1b[31m?\r\n\r\n"),
        "it does not answer as an HTTP proxy should",
    );
    refusal(Reply::raw("HTTP/1.1 407\r\n\r\n"), "407");
    refusal(Reply::raw("SSH-2.0-x\r\n\r\n"), "it does not answer as an HTTP proxy should");
    refusal(Reply::raw(""), "it closed the connection");
    refusal(Reply::raw("a".repeat(20_000)), "it does not answer as an HTTP proxy should");
    let gone = Server::start([]).url();
    for url in ["http://model.example", "https://model.example"] {
        let host = Host::fixed().with_var("ALL_PROXY", &gone);
        let error = error_of(open(&sockets(&host), url));
        let want = format!("proxy {gone} (for model.example): connection refused");
        assert_eq!((error.kind, error.message), (WireErrorKind::Proxy, want));
    }
    let host = Host::fixed().with_var("ALL_PROXY", "socks5://joe:hunter2@h:1");
    let error = error_of(open(&sockets(&host), "http://model.example"));
    assert_eq!(error.kind, WireErrorKind::Setup);
    assert!(error.message.contains("ALL_PROXY") && !error.message.contains("hunter2"), "{error}");
}

#[test]
fn trust_is_decided_by_the_roots_that_are_set() {
    let server = Server::start_tls(tls::server_config(), [greeting(), greeting()]);
    let failure = |host: Host| error_of(open(&sockets(&host), &server.base_url()));
    let unknown = failure(Host::fixed());
    assert_eq!(unknown.kind, WireErrorKind::Tls);
    let address = server.address();
    assert!(
        unknown.message.starts_with(&format!("no secure connection to {address}: "))
            && unknown.message.contains("certificate"),
        "{unknown}"
    );
    let dir = TempDir::new();
    let missing = dir.path().join("missing.pem");
    let error = failure(Host::fixed().with_var("SSL_CERT_FILE", &missing));
    assert_eq!(error.kind, WireErrorKind::Setup);
    assert!(error.message.contains(&format!("cannot read {}", missing.display())), "{error}");
    for junk in ["", "junk", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"] {
        let path = dir.write("bad.pem", junk);
        let error = failure(Host::fixed().with_var("SSL_CERT_FILE", &path));
        assert!(error.message.starts_with("SSL_CERT_FILE: "), "{error}");
    }
    greeted(&trusting(), &server.base_url());
    greeted(&trusting(), &format!("https://localhost:{}/", address.port()));
    // A certificate for another name.
    let relay = Relay::start(address);
    let host = trusting().with_var("HTTPS_PROXY", relay.url());
    let error = error_of(open(&sockets(&host), "https://elsewhere.example/"));
    assert_eq!(error.kind, WireErrorKind::Tls);
    assert!(error.message.starts_with("no secure connection to elsewhere.example: "), "{error}");
}

fn refused(result: Result<super::Opened, OpenError>) -> (u16, String, WireReply) {
    let Err(OpenError::Refused(mut reply)) = result else { panic!("{result:?}") };
    let mut body = Vec::new();
    while let Some(chunk) = reply.body.chunk().unwrap() {
        body.extend_from_slice(chunk);
    }
    (reply.status, String::from_utf8(body).unwrap(), reply)
}

#[test]
fn a_refused_upgrade_is_an_answer_with_its_headers_and_body() {
    for status in [200, 401, 403, 426, 429, 500] {
        for framing in [Framing::Length, Framing::Chunked, Framing::UntilClose] {
            let body = json!({"error": {"message": "nö", "code": "c"}});
            let reply = Reply::json(status, &body).header("Retry-After", "3").framing(framing);
            // In one piece and in many.
            for reply in [reply.clone(), reply.bytewise()] {
                let server = Server::start([reply]);
                let answer = refused(open(&sockets(&Host::fixed()), &server.base_url()));
                assert_eq!((answer.0, answer.1), (status, body.to_string()));
                assert_eq!(answer.2.header("retry-after"), Some("3"));
            }
        }
    }
}

#[test]
fn the_body_of_a_refusal_is_bounded_in_size_and_time() {
    let long = "x".repeat(1 << 20);
    for framing in [Framing::Length, Framing::Chunked, Framing::UntilClose] {
        let server = Server::start([Reply::new(500, "text/plain", long.clone()).framing(framing)]);
        let (status, body, _) = refused(open(&sockets(&Host::fixed()), &server.base_url()));
        assert_eq!((status, body.len()), (500, 64 << 10));
    }
    let server = Server::start([Reply::new(401, "text/plain", "half").then_stall()]);
    let (status, body, _) = refused(open(&sockets(&Host::fixed()), &server.base_url()));
    assert_eq!((status, body.as_str()), (401, "half"));
    let server = Server::start([Reply::new(401, "text/plain", "half").then_reset()]);
    assert_eq!(refused(open(&sockets(&Host::fixed()), &server.base_url())).0, 401);
}

#[test]
fn what_is_no_upgrade_is_said_to_be_none() {
    let says = |reply: Reply, kind: WireErrorKind, want: &str| {
        let server = Server::start([reply]);
        let error = error_of(open(&sockets(&Host::fixed()), &server.base_url()));
        assert_eq!(error.kind, kind, "{error}");
        let text = error.message.replace(&server.address().to_string(), "HOST");
        assert!(text.starts_with(want), "{text}\nis not\n{want}");
    };
    let protocol = |reply: Reply, want: &str| says(reply, WireErrorKind::Protocol, want);
    let ws = || Ws::new().text("hi");
    protocol(
        Reply::websocket(ws().accept("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")),
        "HOST took the WebSocket upgrade wrongly: Sec-WebSocket-Accept is not the answer to the key",
    );
    protocol(
        Reply::websocket(ws().without_header("Upgrade")),
        "HOST took the WebSocket upgrade wrongly: its answer has no 'Upgrade: websocket'",
    );
    protocol(
        Reply::websocket(ws().without_header("Connection")),
        "HOST took the WebSocket upgrade wrongly: its answer has no 'Connection: Upgrade'",
    );
    protocol(
        Reply::websocket(ws().without_header("Sec-WebSocket-Accept")),
        "HOST took the WebSocket upgrade wrongly: Sec-WebSocket-Accept is not",
    );
    protocol(
        Reply::websocket(ws().header("Sec-WebSocket-Extensions", "permessage-deflate")),
        "HOST took the WebSocket upgrade wrongly: it uses an extension that was not asked for",
    );
    protocol(
        Reply::websocket(ws().header("Sec-WebSocket-Protocol", "chat")),
        "HOST took the WebSocket upgrade wrongly: it speaks a subprotocol that was not asked for",
    );
    protocol(Reply::raw("SSH-2.0-OpenSSH\r\n"), "HOST does not answer as an HTTP server should (");
    protocol(Reply::raw(vec![0; 100]), "HOST does not answer as an HTTP server should (");
    let endless = format!("HTTP/1.1 101 S\r\nX: {}", "a".repeat(70_000));
    protocol(Reply::raw(endless), "HOST sent headers that are too large");
    let many = format!("HTTP/1.1 101 S\r\n{}\r\n", "X: a\r\n".repeat(200));
    protocol(Reply::raw(many), "HOST sent headers that are too large");
    for cut in ["", "HTTP/1.1 101 Swi", "HTTP/1.1 101 S\r\nUpgrade: websocket\r\n"] {
        let want = "HOST closed the connection before the answer was complete";
        says(Reply::raw(cut), WireErrorKind::Cut, want);
    }
}

#[test]
fn interim_answers_and_a_first_message_beside_the_answer_are_read() {
    let server = Server::start([Reply::websocket(
        Ws::new().interim("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n").beside("hi").expect(),
    )]);
    let mut socket = open(&sockets(&Host::fixed()), &server.base_url()).unwrap().socket;
    assert_eq!(receive(&mut socket).unwrap(), "hi");
    socket.send(b"ho", &Cancel::new()).unwrap();
    assert_eq!(server.wait_for_messages(1)[0].text, "ho");
}

#[test]
fn who_does_not_answer_is_named_with_the_phase() {
    let limit = Duration::from_millis(200);
    let server = Server::start([Reply::silence()]);
    let error = error_of(open(&hasty(limit), &server.url()));
    assert_eq!(error.kind, WireErrorKind::Timeout(Phase::Headers));
    let host = server.address();
    let want = format!("timed out after 0.2 s waiting for response headers from {host}");
    assert_eq!(error.message, want);
    // Taken by the kernel alone: nothing is ever said.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = silent.local_addr().unwrap();
    let error = error_of(open(&hasty(limit), &format!("https://{host}/")));
    assert_eq!(error.kind, WireErrorKind::Timeout(Phase::Connect), "{error}");
    assert_eq!(error.message, format!("timed out after 0.2 s connecting to {host}"));
    let gone = Server::start([]).address();
    let error = error_of(open(&sockets(&Host::fixed()), &format!("http://{gone}/")));
    let want = format!("connection to {gone} refused");
    assert_eq!((error.kind, error.message), (WireErrorKind::Refused, want));
    // Every address of a name is tried: this one listens on one of two.
    let server = Server::start([greeting()]);
    greeted(&Host::fixed(), &format!("http://localhost:{}/", server.address().port()));
    for bad in ["ws://h/", "http://", "h"] {
        let error = error_of(open(&sockets(&Host::fixed()), bad));
        assert_eq!(error.kind, WireErrorKind::Setup, "{error}");
    }
}
