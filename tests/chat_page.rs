//! The first session of `docs/chat.md`: what the page shows is what the program shows.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::server::{Gate, Reply, Server};
use crate::support::talk::{COLUMNS, Talk, coloured, usual};

const PRICE: &str = "\
# total PRICE COUNT: ten items and more are a tenth cheaper
total() {
  if [ \"$2\" -gt 10 ]; then
    echo $(($1 * $2 * 9 / 10))
  else
    echo $(($1 * $2))
  fi
}
";
const TEST: &str = "\
. lib/price.sh
got=$(total 100 10)
[ \"$got\" = 900 ] || { echo \"FAIL  ten items: got $got, want 900\"; exit 1; }
";

fn call(id: &str, name: &str, arguments: &serde_json::Value) -> Reply {
    let said = Chat::new().call(0, id, name, &arguments.to_string());
    said.finish("tool_calls").usage(2100, 60).done().reply()
}

/// A screen in the middle, and everything in the end.
fn play() -> (String, String) {
    let (place, gate) = (Place::new(), Gate::new());
    place.home.write("shop/lib/price.sh", PRICE);
    place.home.write("shop/test.sh", TEST);
    let last = TEST.lines().last().unwrap();
    let more = format!("{last}\n[ \"$(total 100 9)\" = 900 ] || exit 1");
    let edit = |path: &str, old: &str, new: &str| json!({"path": path, "edits": [{"old": old, "new": new}]});
    let look = Chat::new()
        .text("I look first, and run it.")
        .call(0, "c1", "read", r#"{"path":"lib/price.sh"}"#)
        .call(1, "c2", "read", r#"{"path":"test.sh"}"#)
        .call(2, "c3", "bash", r#"{"command":"sh test.sh"}"#);
    let server = Server::start([
        look.finish("tool_calls").usage(2100, 60).done().reply(),
        call("c4", "edit", &edit("lib/price.sh", "-gt 10", "-ge 10")).wait_before(&gate),
        call("c5", "edit", &edit("test.sh", last, &more)),
        call("c6", "bash", &json!({"command": "sh test.sh"})),
        Chat::answer("Both pass: ten items are **ten and more** now."),
        Chat::new().text("The first line reads").reply().then_stall(),
        Chat::answer("You have one file to commit: `lib/price.sh`, and its test."),
    ]);
    let script = "echo '$ etch'; $ETCH; echo; echo '$ etch resume'; $ETCH resume";
    let command = coloured(place.sh(script).dir("../shop"), &server).env("ETCH_MODEL", "gpt-5.2");
    let mut talk = Talk::spawn(command, COLUMNS, 40);
    talk.sees("gpt-5.2 · ");
    talk.keys("make the failing test pass\r");
    server.wait_for(2);
    talk.keys("and add one for nine\r");
    let middle = talk.sees("waits: ");
    gate.open();
    talk.sees("Worked for");
    talk.keys("explain test.sh\r");
    talk.sees("line reads");
    talk.keys("\u{1b}");
    talk.sees("Cancelled");
    talk.keys("\u{4}");
    talk.sees("$ etch resume");
    talk.sees("make the failing test pass  ");
    talk.keys("\r");
    talk.sees("prompts so far");
    talk.keys("what is left to do?\r");
    talk.sees("to commit");
    talk.sees_when("the end of the turn", |shown| 2 < shown.matches("Worked for").count());
    talk.keys("\u{4}");
    let (status, output, rows) = talk.end();
    assert!(status.success(), "{output}");
    (middle, rows.join("\n"))
}

#[test]
fn the_page_shows_a_session_as_it_is() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/chat.md");
    let page = fs::read_to_string(page).unwrap();
    let mut blocks = page.split("\n```\n").skip(1).step_by(2);
    let (middle, end) = play();
    for got in [middle, end] {
        let want = blocks.next().expect("a block of the page");
        assert_eq!(usual(want.trim_end()), usual(&got), "now it is:\n{got}\n");
    }
}
