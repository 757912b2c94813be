//! Renewal: one etch does it, nobody loses anything, whatever happens in the middle.

use std::fs;

use super::file;
use crate::support::command::Place;
use crate::support::issuer::{Issuer, expire, read};
use crate::support::server::{Gate, Reply};

#[test]
fn two_processes_renew_one_sign_in_and_never_lose_a_token() {
    let (place, issuer) = (Place::new(), Issuer::start());
    let path = file(&place);
    issuer.store(&path, -5);
    for round in 1..=50 {
        expire(&path);
        let both = [0, 1].map(|_| place.etch(["auth", "status"]).spawn());
        for running in both {
            running.wait().exits(0);
        }
        let state = issuer.state();
        assert_eq!((state.refreshes, state.reused), (round, 0), "one asks, the other takes it");
        assert_eq!(read(&path)["tokens"]["refresh_token"].as_str(), state.refresh.as_deref());
    }
    let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(names, 2, "the file and its lock");
}

#[test]
fn killed_in_the_middle_it_leaves_a_usable_file_or_a_clear_answer() {
    let (place, issuer) = (Place::new(), Issuer::start());
    let path = file(&place);
    issuer.store(&path, -5);
    let before = read(&path);
    let killed = |issuer: &Issuer, count: usize| {
        let running = place.etch(["auth", "status"]).spawn();
        issuer.server.wait_for(count);
        running.signal("KILL");
        assert_eq!(running.wait().signal, Some(9));
        assert_eq!(read(&path), before);
    };
    // The request was lost on its way: the file is as good as before.
    issuer.state().refusals.push_back(Reply::silence());
    killed(&issuer, 1);
    place.etch(["auth", "status"]).run().exits(0);
    assert_eq!(issuer.state().refreshes, 1);
    // The answer was lost: nothing can bring it back, and that is said.
    let before = issuer.store(&path, -5);
    let gate = Gate::new();
    issuer.state().hold = Some(gate.clone());
    let count = issuer.server.seen().len() + 1;
    let running = place.etch(["auth", "status"]).spawn();
    issuer.server.wait_for(count);
    running.signal("KILL");
    assert_eq!(running.wait().signal, Some(9));
    gate.open();
    assert_eq!(read(&path), before);
    let ran = place.etch(["auth", "status"]).run().exits(3);
    assert_eq!(
        ran.stderr,
        "etch: the sign-in cannot be renewed: its refresh token was used before, by another \
         program; sign in again: etch auth login\n"
    );
}

#[test]
fn an_interrupt_in_the_middle_keeps_what_the_issuer_gave() {
    for args in [&["auth", "status"][..], &["-p", "hi", "--model", "m", "--no-session"]] {
        let (place, issuer) = (Place::new(), Issuer::start());
        let path = file(&place);
        issuer.store(&path, -5);
        let gate = Gate::new();
        issuer.state().hold = Some(gate.clone());
        let running = place.etch(args).spawn();
        issuer.server.wait_for(1);
        running.signal("INT");
        gate.open();
        let ran = running.wait().exits(130);
        assert!(!ran.stderr.contains("nothing was changed"), "{}", ran.stderr);
        let kept = read(&path)["tokens"]["refresh_token"].as_str().unwrap().to_owned();
        assert_eq!(Some(kept), issuer.state().refresh);
        issuer.state().hold = None;
        place.etch(["auth", "status"]).run().exits(0);
    }
}

#[test]
fn a_run_renews_before_and_once_after_a_refusal() {
    let (place, issuer) = (Place::new(), Issuer::start());
    let path = file(&place);
    let run = |args: &[&str]| {
        place.etch(["-p", "hi", "--model", "gpt-5", "--json-result", "-v"]).args(args).run()
    };
    issuer.store(&path, 60);
    let ran = run(&[]).exits(0);
    let result: serde_json::Value = serde_json::from_str(ran.out()).unwrap();
    assert_eq!((&result["answer"], &result["auth"]), (&"Done.".into(), &"chatgpt".into()));
    assert!(ran.stderr.contains("etch: auth: ChatGPT sign-in (user@example.com, plus)\n"));
    let paths = |issuer: &Issuer| -> Vec<String> {
        issuer.server.seen().into_iter().map(|seen| seen.path).collect()
    };
    assert_eq!(paths(&issuer), ["/oauth/token", "/backend-api/codex/responses"]);
    // Revoked on the other side: one renewal, then the same request again.
    issuer.state().accepted.clear();
    run(&[]).exits(0);
    let responses = "/backend-api/codex/responses";
    assert_eq!(paths(&issuer)[2..], [responses, "/oauth/token", responses]);
    // And not for good.
    issuer.state().accepted.clear();
    issuer.state().refresh = None;
    let ran = run(&[]).exits(3);
    assert!(ran.stderr.contains("sign in again: etch auth login"), "{}", ran.stderr);
    assert_eq!(paths(&issuer)[5..], [responses, "/oauth/token"]);
}

#[test]
fn a_failure_for_now_does_not_stop_a_token_that_still_serves() {
    let (place, issuer) = (Place::new(), Issuer::start());
    let path = file(&place);
    let before = issuer.store(&path, 120);
    issuer.state().refusals.push_back(Reply::json(503, &serde_json::json!({"error": "busy"})));
    place.etch(["auth", "status"]).run().exits(0);
    assert_eq!(read(&path), before);
    // One that is over cannot wait.
    expire(&path);
    issuer.state().refusals.push_back(Reply::json(503, &serde_json::json!({"message": "busy"})));
    let ran = place.etch(["auth", "status"]).run().exits(3);
    let want = format!(
        "etch: the sign-in cannot be renewed: HTTP 503 from {}/oauth/token: busy\n",
        issuer.server.url()
    );
    assert_eq!(ran.stderr, want);
    // Nothing was given away.
    place.etch(["auth", "status"]).run().exits(0);
    assert_eq!(issuer.state().reused, 0);
}

#[test]
fn where_new_tokens_cannot_be_kept_the_old_one_is_not_given_away() {
    let (place, issuer) = (Place::new(), Issuer::start());
    let path = file(&place);
    issuer.store(&path, -5);
    // A folder in the way, since a test may run as one who may write anywhere.
    fs::create_dir(path.with_extension("json.new")).unwrap();
    let ran = place.etch(["auth", "status"]).run().exits(3);
    assert!(ran.stderr.contains("openai.json: cannot be written"), "{}", ran.stderr);
    assert_eq!(issuer.state().refreshes, 0);
}
