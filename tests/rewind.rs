//! Going back in a session and on from what was left: in the chat on a terminal, by lines, and as
//! other commands show it.

use crate::support::command::Place;

const POINTERS: &str = include_str!("../fixtures/sessions/pointer.jsonl");

/// A project with the session `pointer`; its lines.
fn place_with_session() -> (Place, Vec<&'static str>) {
    let place = Place::new();
    std::fs::create_dir(place.work().join(".git")).unwrap();
    place.file(".etch/sessions/pointer.jsonl", POINTERS);
    (place, POINTERS.lines().collect())
}

#[test]
fn a_session_is_shown_along_its_chain_and_says_where_something_was_left() {
    let (place, lines) = place_with_session();
    let shown = place.etch(["show", "pointer"]).run().exits(0);
    let out = shown.out();
    let edit = out.find("── result  edit ok").unwrap();
    let pointer =
        out.find("── fork  2026-07-01 09:16:00  what followed here, up to event p15, was left\n");
    let next = out.find("is it beta?").unwrap();
    assert!(edit < pointer.unwrap() && pointer.unwrap() < next, "{out}");
    assert!(!out.contains("gamma") && !out.contains("rewind"), "{out}");
    assert!(out.contains("3 prompts, 4 answers, 1 tool call"), "{out}");
    // As JSON: the same events, the pointer among them, byte for byte.
    let json = place.etch(["show", "pointer", "--json"]).run().exits(0);
    let chain: Vec<&str> = [0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17].map(|at| lines[at]).to_vec();
    assert_eq!(json.out(), format!("[\n{}\n]\n", chain.join(",\n")));
    let listed = place.etch(["sessions"]).run().exits(0);
    assert_eq!(listed.out(), "2026-07-01 09:01  pointer  what is in a.txt?\n");
}
