//! `etch auth login`, `import`, `status` and `logout`, as a person types them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::file;
use crate::support::command::Place;
use crate::support::issuer::{Issuer, read, token};
use crate::support::server::Gate;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_code_signs_in_and_status_shows_whose_it_is_and_what_is_left() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.state().polls.extend([(403, json!({})), (404, json!({"error": "pending"}))]);
    let ran = issuer.etch(&place, &["auth", "login"]).run().exits(0);
    let (path, url) = (file(&place), issuer.server.url());
    assert_eq!(
        ran.stderr,
        format!(
            "etch: open this address in any browser and enter the code:\n\n  {url}/codex/device\n  \
             ABCD-12345\n\n\
             etch: never give the code to anybody: whoever asks for it wants your account\n\
             etch: waiting for it to be entered (15 minutes at most; Ctrl-C gives up)\n\
             etch: signed in as user@example.com (plus); kept in {}\n",
            path.display()
        )
    );
    assert_eq!(ran.out(), "");
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let issued = issuer.state().issued.clone();
    let kept = read(&path);
    let want = json!({
        "auth_mode": "chatgpt",
        "tokens": {"access_token": issued[0], "id_token": issued[1], "refresh_token": issued[2],
            "account_id": "acc-1"},
        "issuer": url, "client_id": "app_EMoamEEZ73f0CkXaXp7hrann",
        "codex_base_url": issuer.codex_base_url(), "last_refresh": kept["last_refresh"],
    });
    assert_eq!(kept, want);
    let form =
        issuer.server.seen().iter().find(|seen| seen.path == "/oauth/token").unwrap().clone();
    let form = String::from_utf8(form.body).unwrap();
    assert!(form.contains("&code=ac_SECRETCODE%2B%2F1&"), "{form}");
    // The file says who the issuer is: no variable is needed any more.
    let ran = place.etch(["auth", "status"]).run().exits(0);
    let lines: Vec<&str> = ran.out().lines().collect();
    assert_eq!(lines[0], "auth: ChatGPT sign-in (user@example.com, plus)");
    assert_eq!(lines[1], format!("server: {}", issuer.codex_base_url()));
    assert_eq!(lines[2], "account: acc-1");
    assert_eq!(lines[3], format!("file: {}", path.display()));
    assert!(lines[4].starts_with("token: until 2") && lines[4].ends_with(", then renewed"));
    assert_eq!(
        lines[5],
        "limits: 5 h window: 63 % used, resets in 2 h 10 min; week: 20 % used, resets in 2 d 2 h"
    );
    let ran = place.etch(["auth", "status", "--json"]).run().exits(0);
    let value: Value = serde_json::from_str(ran.out()).unwrap();
    assert_eq!((&value["mode"], &value["email"]), (&json!("chatgpt"), &json!("user@example.com")));
    assert_eq!(value["limits"]["primary"]["usedPercent"], 63.0);
    let ran = place.etch(["auth", "logout"]).run().exits(0);
    assert_eq!(ran.stderr, format!("etch: removed {}: the sign-in is ended\n", path.display()));
    let revoked = issuer.state().revoked.concat();
    assert!(revoked.starts_with(&format!("token={}&token_type_hint=refresh_token", issued[2])));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
    place.etch(["auth", "logout"]).run().exits(0);
    place.etch(["auth", "status"]).run().exits(3);
}

#[test]
fn a_refusal_an_absent_issuer_and_an_interrupt_leave_nothing_behind() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.state().polls.push_back((400, json!({"error": "access_denied"})));
    let ran = issuer.etch(&place, &["auth", "login"]).run().exits(3);
    assert!(ran.stderr.contains("the sign-in was refused: HTTP 400 from"), "{}", ran.stderr);
    let ran = place.etch(["auth", "login", "--issuer", "http://127.0.0.1:1"]).run().exits(8);
    assert!(ran.stderr.contains("connection to 127.0.0.1:1 refused"), "{}", ran.stderr);
    let ran = place.etch(["auth", "login", "--issuer", "http://issuer.example"]).run().exits(3);
    assert!(ran.stderr.contains("would carry tokens in the clear"), "{}", ran.stderr);
    issuer.state().polls.extend(std::iter::repeat_n((403, json!({})), 1000));
    for args in [&["auth", "login"][..], &["auth", "login", "--browser"]] {
        let mut running = issuer.etch(&place, args).spawn();
        running.wait_for_stderr("Ctrl-C gives up");
        running.signal("INT");
        running.wait().exits(130);
    }
    assert!(!file(&place).exists());
    let folder = place.home.path().join(".etch/auth");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
}

#[test]
fn an_address_that_the_file_holds_is_refused_as_the_files() {
    let (place, issuer) = (Place::new(), Issuer::start());
    let path = file(&place);
    issuer.store(&path, 3600);
    let mut document = read(&path);
    document["issuer"] = json!("http://issuer.example");
    fs::write(&path, document.to_string()).unwrap();
    let ran = place.etch(["auth", "status", "--issuer", &issuer.server.url()]).run().exits(3);
    let want = format!("etch: {}: issuer: 'http://issuer.example/' would carry", path.display());
    assert!(ran.stderr.starts_with(&want), "{}", ran.stderr);
}

#[test]
fn an_interrupted_logout_says_what_is_left_to_do() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.store(&file(&place), 3600);
    let gate = Gate::new();
    issuer.state().hold = Some(gate.clone());
    let running = place.etch(["auth", "logout"]).spawn();
    issuer.server.wait_for(1);
    running.signal("INT");
    let ran = running.wait().exits(130);
    gate.open();
    let want = "etch: cancelled; the sign-in is still here, but its issuer may have ended it: run \
                'etch auth logout' again\n";
    assert_eq!(ran.stderr, want);
    assert!(file(&place).exists() && issuer.state().refresh.is_none());
    issuer.state().hold = None;
    place.etch(["auth", "logout"]).run().exits(0);
    assert!(!file(&place).exists());
}

/// One request to the port that waits for the browser.
fn visit(url: &str, request: &str) -> String {
    let port = url.split_once("localhost%3A").unwrap().1.split('%').next().unwrap();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.write_all(format!("{request}\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
    let mut page = String::new();
    let _ = stream.read_to_string(&mut page);
    page
}

fn field(url: &str, name: &str) -> String {
    let query = url.split_once('?').unwrap().1;
    let value = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    value.unwrap().to_owned()
}

#[test]
fn a_browser_signs_in_with_the_right_state_alone() {
    let (place, issuer) = (Place::new(), Issuer::start());
    let begin = || {
        let mut running = issuer.etch(&place, &["auth", "login", "--browser"]).spawn();
        let said = running.wait_for_stderr("Ctrl-C gives up");
        let url = said.lines().find_map(|line| line.trim().strip_prefix("http")).unwrap();
        (running, format!("http{url}"))
    };
    let (running, url) = begin();
    assert!(url.starts_with(&format!("{}/oauth/authorize?", issuer.server.url())), "{url}");
    assert_eq!(field(&url, "code_challenge_method"), "S256");
    assert_eq!(field(&url, "code_challenge").len(), 43);
    let state = field(&url, "state");
    let callback = "GET /auth/callback";
    assert!(visit(&url, "GET / HTTP/1.1").starts_with("HTTP/1.1 404"));
    assert!(visit(&url, "\u{1}garbage").starts_with("HTTP/1.1 405"));
    let wrong = visit(&url, &format!("{callback}?code=stolen&state=guess HTTP/1.1"));
    assert!(wrong.starts_with("HTTP/1.1 400"), "{wrong}");
    let page = visit(&url, &format!("{callback}?code=c%2B1&state={state} HTTP/1.1"));
    assert!(page.contains("Signed in"), "{page}");
    running.wait().exits(0);
    let form = issuer.server.seen().pop().unwrap();
    let form = String::from_utf8(form.body).unwrap();
    assert!(form.contains("&code=c%2B1&") && form.contains("redirect_uri=http%3A%2F%2Flocalhost"));
    let before = read(&file(&place));
    // Refused on the page: what was there stays.
    let (running, url) = begin();
    let query =
        format!("error=access_denied&error_description=No+%3Cb%3E&state={}", field(&url, "state"));
    let page = visit(&url, &format!("{callback}?{query} HTTP/1.1"));
    assert!(page.contains("No &lt;b&gt; (access_denied)"), "{page}");
    let ran = running.wait().exits(3);
    assert!(
        ran.stderr.contains("the sign-in was refused: No <b> (access_denied)"),
        "{}",
        ran.stderr
    );
    assert_eq!(read(&file(&place)), before);
}

#[test]
fn the_sign_in_of_another_program_is_used_where_it_is() {
    let (place, issuer) = (Place::new(), Issuer::start());
    let codex = place.home.path().join(".codex/auth.json");
    let mut document = issuer.store(&codex, -10);
    document["other"] = json!({"kept": [1, "two"]});
    fs::write(&codex, document.to_string()).unwrap();
    let ran = issuer.etch(&place, &["auth", "import"]).run().exits(0);
    assert!(ran.stderr.contains("using the sign-in of user@example.com (plus)"), "{}", ran.stderr);
    assert!(ran.stderr.contains("run: chmod 600"), "{}", ran.stderr);
    let own = fs::read_to_string(file(&place)).unwrap();
    assert!(!own.contains("rt_") && !own.contains("eyJ"), "{own}");
    // The renewal goes back into that program's file, with all else as it was.
    let ran = issuer.etch(&place, &["auth", "status"]).run().exits(0);
    assert!(ran.out().contains(&format!("shared with: {}", codex.display())), "{}", ran.out());
    let state = issuer.state();
    let (kept, issued) = (read(&codex), &state.issued);
    assert_eq!(kept["tokens"]["refresh_token"], issued[5].as_str());
    assert_eq!(kept["tokens"]["access_token"], issued[3].as_str());
    assert_eq!(kept["other"], document["other"]);
    assert_eq!((state.refreshes, mode(&codex)), (1, 0o600));
    drop(state);
    let ran = issuer.etch(&place, &["auth", "logout"]).run().exits(0);
    assert!(ran.stderr.contains("the sign-in itself stays in"), "{}", ran.stderr);
    assert_eq!((read(&codex), issuer.state().revoked.len()), (kept, 0));
}

#[test]
fn files_that_cannot_be_used_are_named_and_never_passed_over() {
    let place = Place::new();
    let path = file(&place);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for (content, why) in [
        ("{\"tokens\":{\"access_token\":\"eyJSECRET", "it is no JSON (line 1, column"),
        ("{\"OPENAI_API_KEY\":\"sk-SECRET\"}", "it holds an API key, not a sign-in"),
        ("{\"auth_mode\":\"agent\"}", "its mode 'agent' is not supported"),
        ("\u{0}\u{1}", "it is no JSON"),
    ] {
        fs::write(&path, content).unwrap();
        for args in [&["auth", "status"][..], &["-p", "x", "--provider", "openai", "--model", "m"]]
        {
            let ran = place.etch(args).env("OPENAI_API_KEY", "sk-other").run().exits(3);
            assert!(ran.stderr.contains(why), "{}", ran.stderr);
            assert!(ran.stderr.contains(&path.display().to_string()), "{}", ran.stderr);
            assert!(ran.stderr.contains("etch auth login"), "{}", ran.stderr);
            assert!(!ran.stderr.contains("SECRET"), "{}", ran.stderr);
        }
    }
    // A run that goes elsewhere, or has its own key, does not need it.
    place.etch(["auth", "status", "--base-url", "http://127.0.0.1:1/v1"]).run().exits(3);
    let ran = place.etch(["auth", "status", "--api-key", "sk-typed"]).run().exits(0);
    assert!(ran.out().starts_with("auth: the key from --api-key\n"), "{}", ran.out());
    // Too open: closed. A link: refused.
    fs::write(&path, json!({"tokens": {"access_token": token("a", 9, "x")}}).to_string()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    place.etch(["auth", "status"]).run().exits(3);
    assert_eq!(mode(&path), 0o600);
    let elsewhere = place.home.path().join("elsewhere.json");
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    let ran = place.etch(["auth", "status"]).run().exits(3);
    assert!(ran.stderr.contains("is a link"), "{}", ran.stderr);
}

#[test]
fn status_names_each_way_and_says_when_the_limits_cannot_be_asked_for() {
    let (place, issuer) = (Place::new(), Issuer::start());
    let status = |variables: &[(&str, &str)]| {
        let command = issuer.etch(&place, &["auth", "status", "--json"]);
        let ran = variables.iter().fold(command, |command, (name, value)| command.env(name, value));
        let ran = ran.run();
        let value: Value = serde_json::from_str(ran.out()).unwrap_or_default();
        (
            ran.code.unwrap(),
            value["mode"].as_str().unwrap_or_default().to_owned(),
            value,
            ran.stderr,
        )
    };
    assert_eq!(status(&[]).0, 3);
    let key = ("OPENAI_API_KEY", "sk-test-ABCDEF");
    let (code, mode, value, _) = status(&[key]);
    assert_eq!((code, mode.as_str()), (0, "api_key"));
    assert_eq!(value["baseUrl"], "https://api.openai.com/v1");
    let good = {
        issuer.store(&place.home.path().join("unused.json"), 3600);
        issuer.state().issued[0].clone()
    };
    let (code, mode, value, _) = status(&[key, ("CODEX_ACCESS_TOKEN", &format!("{good}\n"))]);
    assert_eq!((code, mode.as_str()), (0, "access_token"));
    assert_eq!(
        (&value["plan"], &value["limits"]["secondary"]["usedPercent"]),
        (&json!("plus"), &json!(20.0))
    );
    let (code, _, value, said) = status(&[("CODEX_ACCESS_TOKEN", &token("acc-1", 9, "old"))]);
    assert_eq!(code, 3);
    assert!(said.contains("the token from CODEX_ACCESS_TOKEN has expired"), "{said}");
    assert!(value["error"].as_str().unwrap().contains("has expired"));
    let (code, _, _, said) = status(&[("CODEX_ACCESS_TOKEN", "SECRET\nX")]);
    assert_eq!(code, 3);
    assert!(said.contains("CODEX_ACCESS_TOKEN has a line break") && !said.contains("SECRET"));
    // The stored one wins, and an absent server is not waited for.
    issuer.store(&file(&place), 3600);
    let ran = place
        .etch(["auth", "status", "--codex-base-url", "http://127.0.0.1:1/backend-api/codex"])
        .run()
        .exits(0);
    let want = "limits: could not be asked for: connection to 127.0.0.1:1 refused\n";
    assert!(ran.out().ends_with(want), "{}", ran.out());
}
