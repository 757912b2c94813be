//! `etch show --stats`: what the model calls of a session took, as a table and as JSON.

use serde_json::{Value, json};

use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::server::{Reply, Server};

/// A session file of these events; its path.
fn session(place: &Place, events: &[Value]) -> String {
    let started = json!(["session.started", {"cwd": "/w", "version": "0.1.0"}]);
    let lines = std::iter::once(&started).chain(events).enumerate().map(|(idx, event)| {
        let mut line = json!({"type": event[0], "id": format!("{idx:032x}"),
            "time": format!("2026-01-01T00:{:02}:{:02}Z", idx / 60, idx % 60)});
        if idx > 0 {
            line["parentId"] = json!(format!("{:032x}", idx - 1));
        }
        line["data"] = event[1].clone();
        format!("{line}\n")
    });
    let text: String = lines.collect();
    place.file("s.jsonl", text);
    "./s.jsonl".to_owned()
}

fn user(text: &str) -> Value {
    json!(["message.user", {"role": "user", "content": [{"type": "text", "text": text}]}])
}

fn says(model: &str, finish: &str) -> Value {
    json!(["message.assistant", {"role": "assistant", "content": [{"type": "text", "text": "x"}],
        "provider": "openai", "model": model, "finish": finish}])
}

fn result() -> Value {
    json!(["message.tool", {"role": "tool", "content": [], "toolCallId": "c", "name": "ls"}])
}

fn usage(input: u64, cached: u64, output: u64, reasoning: u64) -> Value {
    json!(["model.usage", {"inputTokens": input, "cachedInputTokens": cached,
        "outputTokens": output, "reasoningOutputTokens": reasoning,
        "totalTokens": input + output}])
}

fn metrics(facts: Value) -> Value {
    json!(["model.metrics", facts])
}

/// Three turns with twelve calls over one connection, one of which lost its continuation.
fn over_a_socket() -> Vec<Value> {
    let mut events = Vec::new();
    for call in 0..12_u64 {
        if call % 4 == 0 {
            events.push(user(&format!("question {}", call / 4 + 1)));
        }
        let finish = if call % 4 == 3 { "stop" } else { "tool_calls" };
        let input = 3_000 + 450 * call;
        events.push(says("gpt-5", finish));
        events.push(usage(input, if call > 0 { input - 400 } else { 0 }, 170 + call, 40));
        let mut facts = json!({"transport": "websocket", "requests": 1,
            "requestBytes": 8_000, "responseBytes": 17_900 + call,
            "timeToFirstEventMillis": 640 + 100 * call});
        match call {
            0 => facts["webSocketConnections"] = json!(1),
            7 => {
                facts["requests"] = json!(2);
                facts["webSocketReuses"] = json!(2);
                facts["continuationRequests"] = json!(1);
                facts["continuationFallbacks"] = json!(1);
                facts["continuationFallbackStatus"] = json!(400);
                facts["continuationFallbackError"] = json!("previous_response_not_found");
            }
            _ => {
                facts["webSocketReuses"] = json!(1);
                facts["continuationRequests"] = json!(1);
            }
        }
        events.push(metrics(facts));
        if finish == "tool_calls" {
            events.push(result());
        }
    }
    events
}

#[test]
fn a_table_has_a_row_for_each_call_by_turn_and_fits_a_terminal() {
    let place = Place::new();
    let path = session(&place, &over_a_socket());
    let ran = place.etch(["show", &path, "--stats"]).run().exits(0);
    let want = "\
session s
openai/gpt-5 over websocket

  #    in cached  out think     up    down first req conn reuse cont lost end
turn 1: question 1
  1  3.0k      0  170    40  7.8KB  17.5KB 640ms   1    1     0    0    0 calls
  2  3.5k   3.0k  171    40  7.8KB  17.5KB 740ms   1    0     1    1    0 calls
  3  3.9k   3.5k  172    40  7.8KB  17.5KB 840ms   1    0     1    1    0 calls
  4  4.3k   4.0k  173    40  7.8KB  17.5KB 940ms   1    0     1    1    0 stop
turn 2: question 2
  5  4.8k   4.4k  174    40  7.8KB  17.5KB  1.0s   1    0     1    1    0 calls
  6  5.2k   4.8k  175    40  7.8KB  17.5KB  1.1s   1    0     1    1    0 calls
  7  5.7k   5.3k  176    40  7.8KB  17.5KB  1.2s   1    0     1    1    0 calls
  8  6.2k   5.8k  177    40  7.8KB  17.5KB  1.3s   2    0     2    1    1 stop
turn 3: question 3
  9  6.6k   6.2k  178    40  7.8KB  17.5KB  1.4s   1    0     1    1    0 calls
 10  7.0k   6.7k  179    40  7.8KB  17.5KB  1.5s   1    0     1    1    0 calls
 11  7.5k   7.1k  180    40  7.8KB  17.5KB  1.6s   1    0     1    1    0 calls
 12  8.0k   7.5k  181    40  7.8KB  17.5KB  1.7s   1    0     1    1    0 stop
all 65.7k  58.3k 2.1k   480 93.8KB 209.8KB        13    1    12   11    1

12 calls in 3 turns, 13 requests, 1 connection, 11 continuations, 1 lost continuation, \
65.7k in (58.3k cached, 88%), 2.1k out (480 reasoning), 93.8KB up, 209.8KB down
call 8: the continuation was lost and all was sent again (HTTP 400): previous_response_not_found
";
    assert_eq!(ran.out(), want);
    let table = ran.out().lines().take_while(|line| !line.starts_with("12 calls"));
    assert!(table.map(str::len).max() <= Some(80));
}

#[test]
fn json_is_exact_and_its_sums_are_those_of_its_calls() {
    let place = Place::new();
    let path = session(&place, &over_a_socket());
    let ran = place.etch(["show", &path, "--stats", "--json"]).run().exits(0);
    let stats: Value = serde_json::from_str(ran.out()).unwrap();
    let calls = stats["calls"].as_array().unwrap();
    let want = json!({"turn": 2, "call": 8, "time": "2026-01-01T00:00:32Z", "provider": "openai",
        "model": "gpt-5", "finish": "stop", "attempts": 1,
        "usage": {"inputTokens": 6150, "cachedInputTokens": 5750, "outputTokens": 177,
            "reasoningOutputTokens": 40, "totalTokens": 6327},
        "metrics": {"transport": "websocket", "requests": 2, "webSocketReuses": 2,
            "continuationRequests": 1, "continuationFallbacks": 1,
            "continuationFallbackStatus": 400,
            "continuationFallbackError": "previous_response_not_found", "requestBytes": 8000,
            "responseBytes": 17907, "timeToFirstEventMillis": 1340}});
    assert_eq!(calls[7], want);
    let total = json!({"turns": 3, "calls": 12, "attempts": 12,
        "usage": {"inputTokens": 65700, "cachedInputTokens": 58300, "outputTokens": 2106,
            "reasoningOutputTokens": 480, "totalTokens": 67806},
        "metrics": {"requests": 13, "webSocketConnections": 1, "webSocketReuses": 12,
            "continuationRequests": 11, "continuationFallbacks": 1, "requestBytes": 96000,
            "responseBytes": 214_866}});
    assert_eq!((stats["sessionId"].as_str(), &stats["total"]), (Some("s"), &total));
    for field in ["inputTokens", "outputTokens", "totalTokens"] {
        let sum: u64 = calls.iter().map(|call| call["usage"][field].as_u64().unwrap()).sum();
        assert_eq!(json!(sum), total["usage"][field], "{field}");
    }
}

#[test]
fn attempts_that_failed_are_part_of_their_call_and_told_in_words() {
    let place = Place::new();
    let cut = Chat::new().text("Hel").usage(100, 2).reply().then_cut();
    let done = Chat::new().text("Hello").finish("stop").usage(100, 5).done().reply();
    let refused = Reply::error(401, "invalid_api_key", "who are you");
    let server = Server::start([cut, done, refused]);
    let run = |args: &[&str], code: i32| {
        let ran = place.etch(args).arg("--no-config").env("ETCH_PROVIDER", "openai");
        let ran = ran.env("ETCH_MODEL", "m").env("ETCH_BASE_URL", server.base_url());
        ran.env("ETCH_SESSION_DIR", place.work().join("sessions")).run().exits(code)
    };
    run(&["-p", "hi"], 0);
    run(&["-p", "again", "--continue"], 3);
    let dir = ["--session-dir", "sessions"];
    let ran = place.etch(["show", "--stats", "--json"]).args(dir).run().exits(0);
    let stats: Value = serde_json::from_str(ran.out()).unwrap();
    let (one, two) = (&stats["calls"][0], &stats["calls"][1]);
    let short = |call: &Value| {
        json!([
            call["turn"],
            call["attempts"],
            call["finish"],
            call["usage"]["inputTokens"],
            call["usage"]["outputTokens"],
            call["metrics"]["requests"]
        ])
    };
    assert_eq!(short(one), json!([1, 2, "stop", 200, 7, 2]));
    assert_eq!(short(two), json!([2, 1, null, 0, 0, 1]));
    let sent: Vec<_> = server.seen().iter().map(|seen| seen.body.len()).collect();
    assert_eq!(one["metrics"]["requestBytes"], sent[..2].iter().sum::<usize>());
    let kinds = one["retries"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds.map(|retry| json!([retry["kind"], retry["status"]])).collect();
    assert_eq!(kinds, [json!(["network", null])]);
    assert_eq!((&two["stopped"]["kind"], &two["model"]), (&json!("auth"), &json!("m")));

    let ran = place.etch(["show", "--stats"]).args(dir).run().exits(0);
    let text = ran.out();
    assert!(text.contains("\n2 calls in 2 turns, 1 retry, 3 requests, 200 in, 7 out, "), "{text}");
    assert!(text.contains("call 1: attempt 1 failed (network) and was repeated after "), "{text}");
    assert!(text.contains("call 2: ended its turn without an answer, error (auth): "), "{text}");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let ends = rows.iter().filter(|row| row.len() > 4 && row[0].parse::<u8>().is_ok());
    let ends: Vec<_> = ends.take(2).map(|row| row.last().copied().unwrap()).collect();
    assert_eq!(ends, ["stop", "auth"]);
}

#[test]
fn what_went_wrong_stands_below_the_table_on_one_line_each() {
    let place = Place::new();
    let retry = json!(["model.retry", {"attempt": 1, "attemptsMax": 5, "delayMillis": 1500,
        "kind": "overloaded", "message": "bo\u{1b}[2J\nom", "status": 529,
        "outputDiscarded": false}]);
    let facts = |more: Value| {
        let mut facts = json!({"transport": "http", "requests": 2, "requestBytes": 10});
        facts.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        metrics(facts)
    };
    let stopped = json!(["turn.stopped", {"stop": "cancelled", "kind": "cancelled",
        "message": "interrupted"}]);
    let events = [
        user("a"),
        metrics(json!({"transport": "http", "requests": 1, "requestBytes": 5})),
        retry,
        says("m", "tool_calls"),
        facts(json!({"transportFallbacks": 1, "transportFallbackError": "HTTP 426"})),
        result(),
        facts(json!({})),
        stopped,
    ];
    let path = session(&place, &events);
    let want = "\
session s
openai/m over http

  #   up  tries  req  lost  end
turn 1: a
  1  15B      2    3     1  calls
  2  10B      1    2     0  cancelled
all  25B      3    5     1

2 calls in 1 turn, 1 retry, 5 requests, 1 change to HTTP, 25B up, 0B down
call 1: attempt 1 failed (overloaded, HTTP 529) and was repeated after 1.5s: bo^[[2J\\nom
call 1: went on over HTTP in place of a WebSocket: HTTP 426
call 2: ended its turn without an answer, cancelled: interrupted
";
    let ran = place.etch(["show", &path, "--stats"]).run().exits(0);
    assert_eq!(ran.out(), want);
}

#[test]
fn remarks_without_end_are_counted_and_not_printed() {
    let place = Place::new();
    let lost = metrics(json!({"transport": "websocket", "continuationFallbacks": 1}));
    let events: Vec<Value> = std::iter::once(user("a"))
        .chain((0..60).flat_map(|_| [says("m", "tool_calls"), lost.clone(), result()]))
        .collect();
    let path = session(&place, &events);
    let ran = place.etch(["show", &path, "--stats"]).run().exits(0);
    assert_eq!(ran.out().lines().filter(|line| line.starts_with("call ")).count(), 50);
    assert!(ran.out().ends_with("(10 more remarks; --json tells everything)\n"), "{}", ran.out());
}

#[test]
fn a_session_without_calls_says_so() {
    let place = Place::new();
    let path = session(&place, &[user("hi")]);
    place.etch(["show", &path, "--stats"]).run().is(0, "session s\nno model calls\n", "");
    let ran = place.etch(["show", &path, "--stats", "--json"]).run().exits(0);
    let want = json!({"sessionId": "s", "calls": [], "total": {"turns": 0, "calls": 0,
        "attempts": 0, "usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
        "metrics": {}}});
    assert_eq!(serde_json::from_str::<Value>(ran.out()).unwrap(), want);
}

#[test]
fn calls_of_several_models_say_whose_they_are_and_stay_in_line() {
    let place = Place::new();
    let echo = metrics(json!({"transport": "echo", "requests": 1}));
    let wire = metrics(json!({"transport": "http", "requests": 1}));
    let events = [
        user("a\u{1b}]0;x\u{7}b"),
        says("模型", "stop"),
        usage(1, 0, u64::MAX / 2, 0),
        echo,
        user("b"),
        says("m\u{7}", "length"),
        usage(2, 0, u64::MAX / 2, 0),
        wire,
    ];
    let path = session(&place, &events);
    let want = "\
session s

  #  in             out  via   model        end
turn 1: a ]0;x b
  1   1   9223372036.9G  echo  openai/模型  stop
turn 2: b
  2   2   9223372036.9G  http  openai/m^G   length
all   3  18446744073.7G

2 calls in 2 turns, 3 in, 18446744073.7G out
";
    let ran = place.etch(["show", &path, "--stats"]).run().exits(0);
    assert_eq!(ran.out(), want);
}

#[test]
fn what_a_fork_inherits_is_not_its_own() {
    let place = Place::new();
    let etch = |args: &[&str]| {
        place.etch(args).args(["--session-dir", "s"]).run().exits(0).out().to_owned()
    };
    etch(&["-p", "one", "--provider", "echo"]);
    etch(&["-p", "two", "--provider", "echo", "--continue", "--fork"]);
    let stats: Value = serde_json::from_str(&etch(&["show", "--stats", "--json"])).unwrap();
    assert_eq!((&stats["total"]["calls"], &stats["calls"][0]["turn"]), (&json!(1), &json!(1)));
}
