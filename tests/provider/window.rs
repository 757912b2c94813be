//! How much a model takes: learned from the server before it matters, and never in the way.

use std::time::{Duration, Instant};

use etch::cancel::{Cancel, Reason};
use etch::host::Host;
use etch::model::{Window, WindowSource};
use etch::provider::ProviderSettings;
use serde_json::json;

use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::model::{ask, model, model_at, user};
use crate::support::server::{Reply, Seen, Server};

fn list() -> Reply {
    let entry = json!({"id": "m", "object": "model", "owned_by": "vllm", "max_model_len": 16384});
    Reply::json(200, &json!({"object": "list", "data": [entry]}))
}

/// Answers prompts, and questions about itself by `told`.
fn server(told: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Server {
    Server::with(move |seen| match seen.path.as_str() {
        "/v1/chat/completions" => Chat::answer("Hi"),
        _ => told(seen),
    })
}

fn paths(server: &Server) -> Vec<String> {
    server.seen().into_iter().map(|seen| seen.path).collect()
}

#[test]
fn it_is_learned_before_the_first_prompt_once_and_as_who_asks_for_answers() {
    let server = server(|_| list());
    let model = model_at(&server.base_url());
    assert_eq!(model.known_window("m"), None);
    assert_eq!(paths(&server), [""; 0], "nobody is asked before it matters");
    let want = Some(Window::new(16_384, WindowSource::Server));
    assert_eq!(model.window("m", &Cancel::new()), want);
    assert_eq!(ask(&*model, &[user("go")]).text(), "Hi");
    assert_eq!(model.window("m", &Cancel::new()), want);
    assert_eq!(model.known_window("m"), want);
    assert_eq!(paths(&server), ["/v1/models", "/v1/chat/completions"]);
    let seen = server.seen();
    assert_eq!((seen[0].method.as_str(), seen[0].body.len()), ("GET", 0));
    assert_eq!(seen[0].header("authorization"), Some("Bearer sk-test-ABCDEF"));
    assert_eq!(server.connections(), 1, "the connection serves the prompt, too");
}

#[test]
fn a_server_that_tells_nothing_is_asked_once_and_answers_all_the_same() {
    type Tell = fn(&Seen) -> Reply;
    let told: [(&str, Tell); 5] = [
        ("404", |_| Reply::error(404, "not_found", "no such route")),
        ("500", |_| Reply::new(500, "text/html", "<html>")),
        ("a page", |_| Reply::new(200, "text/html", "<!doctype html><title>Hello</title>")),
        ("a cut list", |_| Reply::json(200, &json!({"data": [{"id": "m"}]})).cut_at(60)),
        ("another list", |_| Reply::json(200, &json!({"data": "m"}))),
    ];
    for (what, told) in told {
        let server = server(told);
        let model = model_at(&server.base_url());
        assert_eq!(model.window("m", &Cancel::new()), None, "{what}");
        let asked = paths(&server).len();
        assert!((1..=4).contains(&asked), "{what}: {asked}");
        assert_eq!(ask(&*model, &[user("go")]).text(), "Hi", "{what}");
        assert_eq!(model.window("m", &Cancel::new()), None, "{what}");
        assert_eq!(paths(&server).len(), asked + 1, "{what}: asked again");
    }
}

#[test]
fn a_server_that_hangs_costs_two_seconds_once() {
    let server = server(|_| Reply::silence());
    let model = model_at(&server.base_url());
    let start = Instant::now();
    assert_eq!(model.window("m", &Cancel::new()), None);
    let took = start.elapsed();
    assert!((2..5).contains(&took.as_secs()), "{took:?}");
    let start = Instant::now();
    assert_eq!(model.window("m", &Cancel::new()), None);
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(ask(&*model, &[user("go")]).text(), "Hi");
    assert_eq!(paths(&server), ["/v1/models", "/v1/chat/completions"]);
}

#[test]
fn cancelling_ends_the_question_at_once() {
    let server = server(|_| Reply::silence());
    let model = model_at(&server.base_url());
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            server.wait_for(1);
            cancel.cancel(Reason::User);
        });
        let start = Instant::now();
        assert_eq!(model.window("m", &cancel), None);
        assert!(start.elapsed() < Duration::from_millis(1500), "{:?}", start.elapsed());
    });
    server.wait_until_gone();
}

#[test]
fn what_is_played_or_echoed_asks_nobody() {
    let mut replay = ProviderSettings::new("replay", "gpt-5");
    replay.recording = vec![b"data: [DONE]\n\n".to_vec()];
    for settings in [replay, ProviderSettings::new("echo", "gpt-5")] {
        let model = model(&settings, Host::fixed());
        assert_eq!(model.window("gpt-5", &Cancel::new()), None);
        assert_eq!(model.known_window("gpt-5"), None);
    }
}

#[test]
fn a_prompt_that_the_server_cuts_is_told_once() {
    let place = Place::new();
    let long = place.file("long.txt", "some words of a file\n".repeat(3000));
    let call = Chat::new().call(0, "c1", "ls", "{}").finish("tool_calls").usage(2050, 5).done();
    let answer = Chat::new().text("done").finish("stop").usage(2050, 5).done();
    let server = Server::for_prompts([call.reply(), answer.reply()]);
    let args = ["-p", "what is it", "-f", long.to_str().unwrap(), "--model", "m"];
    let ran = place.etch(args).args(["--base-url", &server.base_url()]).run().exits(0);
    assert_eq!(ran.out(), "done\n");
    let told = format!("{} read 2050 of about ", server.address());
    assert_eq!(ran.stderr.matches(&told).count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("OLLAMA_CONTEXT_LENGTH"), "{}", ran.stderr);
    // The same prompt, read whole.
    let answer = Chat::new().text("done").finish("stop").usage(15_500, 5).done();
    let server = Server::for_prompts([answer.reply()]);
    let ran = place.etch(args).args(["--base-url", &server.base_url()]).run().exits(0);
    assert!(!ran.stderr.contains(" of about "), "{}", ran.stderr);
}
