//! The Responses protocol in trouble, by the real program over both transports: servers that fall
//! silent or cut, interrupts and kills, and how often and when it is tried again.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::requests_of;
use crate::support::command::{Place, Ran, TestCommand};
use crate::support::responses::{Responses, error_message};
use crate::support::server::{Gate, Reply, Server, Ws};

/// Longer than what a busy machine needs, shorter than any wait that must be broken off.
const AT_ONCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Http,
    WebSocket,
}
use Way::{Http, WebSocket};

/// What happens behind the events of an answer.
#[derive(Clone, Copy)]
enum End {
    Whole,
    /// The connection is gone.
    Reset,
    /// Nothing more comes.
    Stall,
    /// What says nothing comes again and again.
    Chatter,
}

impl Way {
    fn name(self) -> &'static str {
        if self == Http { "http" } else { "websocket" }
    }

    fn reply(self, stream: Responses, end: End) -> Reply {
        if self == Http {
            let reply = stream.reply();
            return match end {
                End::Whole => reply,
                End::Reset => reply.then_reset(),
                End::Stall => reply.then_stall(),
                End::Chatter => reply.then_flood(b": still here\n\n".repeat(100)),
            };
        }
        let ws = stream.frames().iter().fold(Ws::new().expect(), |ws, frame| ws.text(frame));
        Reply::websocket(match end {
            End::Whole => ws,
            End::Reset => ws.reset(),
            End::Stall => ws.stall(),
            // An empty pong, a hundred times.
            End::Chatter => ws.flood(b"\x8a\x00".repeat(100)),
        })
    }

    fn answer(self, text: &str) -> Reply {
        self.reply(Responses::answer(text), End::Whole)
    }

    /// The bodies of all requests.
    fn bodies(self, server: &Server) -> Vec<Value> {
        match self {
            Http => server.seen().iter().map(|seen| seen.json()).collect(),
            WebSocket => server.messages().iter().map(|message| message.json()).collect(),
        }
    }

    fn wait_for(self, server: &Server, count: usize) {
        match self {
            Http => drop(server.wait_for(count)),
            WebSocket => drop(server.wait_for_messages(count)),
        }
    }
}

/// `etch -p`, with three attempts whose waits are short.
fn ask(place: &Place, server: &Server, way: Way, args: &[&str]) -> TestCommand {
    place
        .etch(["-p", "go", "--no-config", "--stdin", "never", "--openai-api", "responses"])
        .args(["--openai-transport", way.name(), "-c", "provider.attempts_max=3"])
        .args(["-c", "provider.retry_wait_milliseconds=20"])
        .args(args)
        .env("ETCH_PROVIDER", "openai")
        .env("ETCH_MODEL", "m")
        .env("ETCH_BASE_URL", server.base_url())
        .env("ETCH_SESSION_DIR", place.home.path().join("sessions"))
}

/// The lines of `--json`, and of these the data of one kind of event.
fn lines(ran: &Ran) -> Vec<Value> {
    ran.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind(lines: &[Value], kind: &str) -> Vec<Value> {
    let wanted = lines.iter().filter(|line| line["type"] == kind);
    wanted.map(|line| line["data"].clone()).collect()
}

/// The beginning of an answer: its head and half of a text.
fn half() -> Responses {
    let item = json!({"id": "msg_1_0", "type": "message", "role": "assistant", "content": []});
    Responses::new().added(0, &item).event(&json!({"type": "response.output_text.delta",
        "item_id": "msg_1_0", "output_index": 0, "content_index": 0, "delta": "Hel"}))
}

#[test]
fn a_silent_server_is_given_up_after_its_limit_named_in_every_attempt() {
    let limits = ["provider.idle_timeout_seconds=1", "provider.headers_timeout_seconds=1"];
    let limits = ["-c", limits[0], "-c", limits[1], "-c", "provider.attempts_max=2"];
    let silent = "sent nothing for 1 s in the middle of an answer";
    let in_text = format!("{silent}, after response.output_text.delta");
    let created = format!("{silent}, after response.in_progress");
    let run = |way: Way, reply: Reply, want: &str| {
        let (place, server) = (Place::new(), Server::with(move |_| reply.clone()));
        let ran = ask(&place, &server, way, &limits).run().exits(8);
        // What the last attempt said is not lost, and that of the others not added to it.
        let said = if want.contains("text") { "Hel\n" } else { "" };
        assert_eq!(ran.out(), said, "{way:?}: {want}");
        assert_eq!(ran.stderr.matches(want).count(), 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("attempt 1 of 2 failed: timed out"), "{}", ran.stderr);
        assert!(ran.stderr.contains("(gave up after 2 attempts)"), "{}", ran.stderr);
        assert!(ran.stderr.contains(&server.address().to_string()), "{}", ran.stderr);
        assert_eq!(requests_of(&server), 2, "{way:?}: {want}");
    };
    let to_headers = "waiting for response headers";
    std::thread::scope(|scope| {
        for (way, reply, want) in [
            (Http, Reply::silence(), to_headers),
            (WebSocket, Reply::silence(), to_headers),
            (Http, Http.reply(Responses::bare(1), End::Stall), silent),
            (WebSocket, WebSocket.reply(Responses::bare(1), End::Stall), silent),
            (Http, Http.reply(Responses::new(), End::Stall), &created),
            (WebSocket, WebSocket.reply(Responses::new(), End::Stall), &created),
            (Http, Http.reply(half(), End::Stall), &in_text),
            (WebSocket, WebSocket.reply(half(), End::Stall), &in_text),
        ] {
            scope.spawn(move || run(way, reply, want));
        }
    });
}

#[test]
fn comments_and_pings_are_signs_of_life() {
    // Each pause is shorter than the limit, all of them together are longer.
    let comment = b": still here\n\n";
    let gates: Vec<Gate> = (0..3).map(|_| Gate::new()).collect();
    let mut http = Responses::bare(1).bytes(&comment.repeat(4)).message("Hi").completed().reply();
    for (number, gate) in gates.iter().enumerate() {
        http = http.wait_at(comment.len() * (number + 1), gate);
    }
    let pings = (0..3).fold(Ws::new().expect(), |ws, _| ws.ping("p").pause(800));
    let frames = Responses::answer("Hi").frames();
    let websocket = Reply::websocket(frames.iter().fold(pings, |ws, frame| ws.text(frame)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for gate in &gates {
                let _ = crossbeam_channel::after(Duration::from_millis(800)).recv();
                gate.open();
            }
        });
        for (way, reply) in [(Http, http), (WebSocket, websocket)] {
            scope.spawn(move || {
                let (place, server) = (Place::new(), Server::start([reply]));
                let limit = ["-c", "provider.idle_timeout_seconds=2"];
                ask(&place, &server, way, &limit).run().is(0, "Hi\n", "");
            });
        }
    });
}

#[test]
fn an_interrupt_ends_any_silence_and_the_session_goes_on() {
    let long = ["-c", "provider.retry_wait_milliseconds=60000"];
    for way in [Http, WebSocket] {
        for (what, reply) in [
            ("nothing", way.reply(Responses::bare(1), End::Stall)),
            ("no head", Reply::silence()),
            ("half a text", way.reply(half(), End::Stall)),
            ("what says nothing", way.reply(Responses::bare(1), End::Chatter)),
            ("the same behind a text", way.reply(half(), End::Chatter)),
            ("the next attempt", way.reply(Responses::new(), End::Reset)),
        ] {
            let (place, server) = (Place::new(), Server::start([reply, way.answer("again")]));
            let mut running = ask(&place, &server, way, &long).spawn();
            match what {
                "no head" => drop(server.wait_for(1)),
                "the next attempt" => drop(running.wait_for_stderr("again in")),
                _ => way.wait_for(&server, 1),
            }
            let start = Instant::now();
            running.signal("INT");
            running.wait().exits(130);
            assert!(start.elapsed() < AT_ONCE, "{way:?}: {what}: {:?}", start.elapsed());
            assert_eq!(server.seen().len(), 1, "{way:?}: {what}");
            ask(&place, &server, way, &["--continue"]).run().is(0, "again\n", "");
        }
    }
}

/// Each call in the last input once, and the text of its one output.
fn outputs(body: &Value) -> Vec<(String, String)> {
    let items = body["input"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |kind: &'static str| items.iter().filter(move |item| item["type"] == kind);
    let output = |call: &Value| {
        let mut all = of("function_call_output").filter(|it| it["call_id"] == call["call_id"]);
        let output = text(&all.next().unwrap_or_else(|| panic!("{call}: no output"))["output"]);
        assert!(all.next().is_none(), "{call}: several outputs");
        (text(&call["call_id"]), output)
    };
    of("function_call").map(output).collect()
}

/// Ends a run in the middle of parallel calls and goes on; what the model is then told.
fn ended_in_calls(way: Way, signal: &str, code: Option<i32>) -> Vec<(String, String)> {
    let place = Place::new();
    let calls = Responses::new().reasoning("both").calls_in_turns(&[
        ("c1", "bash", r#"{"command":"touch ready; sleep 60"}"#),
        ("c2", "read", r#"{"path":"ready"}"#),
        ("c3", "bash", r#"{"command":"touch never"}"#),
    ]);
    let calls = way.reply(calls.completed(), End::Whole);
    let server = Server::start([calls, way.answer("I see."), way.answer("Yes.")]);
    let running = ask(&place, &server, way, &[]).spawn();
    running.wait_for_file(&place.work().join("ready"));
    running.signal(signal);
    assert_eq!(running.wait().code, code);
    for (number, want) in [(1, "I see.\n"), (2, "Yes.\n")] {
        let ran = ask(&place, &server, way, &["--continue"]).run().exits(0);
        assert_eq!(ran.out(), want);
        // In the order of the calls, before what the person says next.
        let body = &way.bodies(&server)[number];
        let kinds: Vec<_> = body["input"].as_array().unwrap()[1..9]
            .iter()
            .map(|item| item["type"].as_str().unwrap_or_default().trim_start_matches("function_"))
            .collect();
        let want = [&["reasoning"][..], &["call"; 3], &["call_output"; 3], &["message"]].concat();
        assert_eq!(kinds, want, "{body}");
    }
    assert!(!place.work().join("never").exists());
    outputs(&way.bodies(&server)[2])
}

#[test]
fn after_an_interrupt_in_parallel_calls_each_has_exactly_one_output() {
    for way in [Http, WebSocket] {
        let told = ended_in_calls(way, "INT", Some(130));
        let ids: Vec<&str> = told.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["c1", "c2", "c3"]);
        for (id, output) in &told {
            assert!(output.contains("interrupted"), "{id}: {output}");
        }
    }
}

#[test]
fn after_a_kill_in_parallel_calls_each_has_exactly_one_output() {
    for way in [Http, WebSocket] {
        let told = ended_in_calls(way, "KILL", None);
        let gone = "tool error: interrupted before it finished; its effects are unknown";
        let want = ["c1", "c2", "c3"].map(|id| (id.to_owned(), gone.to_owned()));
        assert_eq!(told, want);
    }
}

#[test]
fn a_call_whose_answer_was_never_complete_does_not_run_and_is_not_sent_back_alone() {
    for way in [Http, WebSocket] {
        for signal in ["INT", "KILL"] {
            let place = Place::new();
            let call = Responses::new().reasoning("hm").message("So.");
            let call = call.call("c1", "bash", r#"{"command":"touch ran"}"#);
            let replies = [way.reply(call, End::Stall), way.answer("again")];
            let server = Server::start(replies);
            let mut running = ask(&place, &server, way, &["--json", "--deltas"]).spawn();
            way.wait_for(&server, 1);
            running.wait_for_stdout("\"o.\"");
            running.signal(signal);
            running.wait();
            ask(&place, &server, way, &["--continue"]).run().is(0, "again\n", "");
            assert!(!place.work().join("ran").exists());
            let told = outputs(&way.bodies(&server)[1]);
            assert!(told.iter().all(|(_, output)| output.contains("interrupted")), "{told:?}");
        }
    }
}

#[test]
fn a_relay_that_always_cuts_is_given_up_and_the_error_says_where() {
    for way in [Http, WebSocket] {
        let server = Server::with(move |_| way.reply(Responses::new(), End::Reset));
        let ran = ask(&Place::new(), &server, way, &["--json"]).run().exits(8);
        let lines = lines(&ran);
        let error = lines.last().unwrap()["error"]["message"].as_str().unwrap();
        let host = server.address().to_string();
        for want in [&host, "after response.in_progress", "(gave up after 3 attempts)"] {
            assert!(error.contains(want), "{way:?}: {error}");
        }
        assert_eq!(requests_of(&server), 3, "{way:?}");
        let retries = of_kind(&lines, "model.retry");
        let attempts: Vec<_> = retries.iter().map(|retry| retry["attempt"].as_u64()).collect();
        assert_eq!(attempts, [Some(1), Some(2)], "{way:?}: each is shown");
        let waits = retries.iter().map(|retry| retry["delayMillis"].as_u64().unwrap());
        assert!(waits.is_sorted_by(|one, two| one < two), "{way:?}: {retries:?}");
        assert!(of_kind(&lines, "message.assistant").is_empty());
    }
}

#[test]
fn one_that_cuts_twice_leaves_one_clean_answer() {
    for way in [Http, WebSocket] {
        for cut in [Responses::new, half] {
            let replies = [cut(), cut()].map(|stream| way.reply(stream, End::Reset));
            let server = Server::start(replies.into_iter().chain([way.answer("Hello")]));
            let place = Place::new();
            let ran = ask(&place, &server, way, &["--json"]).run().exits(0);
            let lines = lines(&ran);
            assert_eq!(lines.last().unwrap()["answer"], "Hello", "{way:?}");
            assert_eq!(of_kind(&lines, "message.assistant").len(), 1, "{way:?}");
            assert_eq!(of_kind(&lines, "model.retry").len(), 2, "{way:?}");
            assert_eq!(requests_of(&server), 3, "{way:?}");
            // Nothing of what was cut is in the conversation that goes on.
            server.push(way.answer("More"));
            ask(&place, &server, way, &["--continue"]).run().is(0, "More\n", "");
            let body = way.bodies(&server).pop().unwrap();
            let texts = body["input"].as_array().unwrap().iter();
            let texts = texts.map(|item| item["content"][0]["text"].as_str().unwrap_or_default());
            assert_eq!(texts.collect::<Vec<_>>(), ["go", "Hello", "go"], "{way:?}");
        }
    }
}

/// A refusal with this wait, in place of an answer.
fn refusal(way: Way, status: u16, code: &str, wait: Option<(&str, &str)>) -> Reply {
    let headers: Vec<(&str, &str)> = wait.into_iter().collect();
    match way {
        Http => {
            let reply = Reply::error(status, code, "not now");
            headers.iter().fold(reply, |reply, (name, value)| reply.header(name, value))
        }
        WebSocket => {
            let message = error_message(status, code, "not now", &headers);
            let answer = Responses::answer("Hi").frames();
            let again = move |_: &_| answer.iter().fold(Ws::new(), |ws, frame| ws.text(frame));
            Reply::websocket(Ws::new().expect().text(&message).then_each(again))
        }
    }
}

#[test]
fn a_wait_that_the_server_asks_for_is_the_least_and_what_makes_no_sense_is_none() {
    let after = |value| Some(("Retry-After", value));
    for way in [Http, WebSocket] {
        for (status, code, wait, millis) in [
            (429, "rate_limit_exceeded", after("0.4"), 400..=400),
            (429, "rate_limit_exceeded", Some(("retry-after-ms", "300")), 300..=300),
            (503, "server_is_overloaded", after("0.2"), 200..=200),
            (503, "server_is_overloaded", None, 45..=75),
            (429, "rate_limit_exceeded", None, 15..=25),
            (429, "rate_limit_exceeded", after("-5"), 15..=25),
            (429, "rate_limit_exceeded", after("soon"), 15..=25),
        ] {
            // Over a socket the connection serves the second attempt too.
            let server = Server::start([refusal(way, status, code, wait), way.answer("Hi")]);
            let ran = ask(&Place::new(), &server, way, &["--json"]).run().exits(0);
            let retries = of_kind(&lines(&ran), "model.retry");
            let delay = retries[0]["delayMillis"].as_u64().unwrap();
            assert!(millis.contains(&delay), "{way:?}: {status} {wait:?}: {delay}");
            assert_eq!((retries.len(), requests_of(&server)), (1, 2), "{way:?}: {wait:?}");
        }
    }
}

#[test]
fn a_wait_that_is_too_long_and_a_used_up_quota_end_the_call_at_once() {
    for way in [Http, WebSocket] {
        for (code, wait, want) in [
            ("rate_limit_exceeded", Some(("retry-after", "99999")), "to wait 27 hours"),
            ("insufficient_quota", Some(("retry-after", "1")), "quota or balance is used up"),
        ] {
            let server = Server::start([refusal(way, 429, code, wait)]);
            let ran = ask(&Place::new(), &server, way, &[]).run().exits(1);
            assert!(ran.stderr.contains(want), "{way:?}: {}", ran.stderr);
            assert!(!ran.stderr.contains("again in"), "{way:?}: {}", ran.stderr);
            assert_eq!(requests_of(&server), 1, "{way:?}: {code}");
        }
        // A wait that is taken can be broken off.
        let (place, slow) = (Place::new(), refusal(way, 429, "x", Some(("retry-after", "100"))));
        let server = Server::start([slow]);
        let mut running = ask(&place, &server, way, &[]).spawn();
        running.wait_for_stderr("again in 100.0 s");
        let start = Instant::now();
        running.signal("INT");
        running.wait().exits(130);
        assert!(start.elapsed() < AT_ONCE, "{way:?}: {:?}", start.elapsed());
    }
}
