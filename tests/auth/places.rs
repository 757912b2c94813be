//! Where a credential may go: to the server that it belongs to, whatever a project says.

use super::file;
use crate::support::chat::Chat;
use crate::support::command::{Place, Ran};
use crate::support::issuer::Issuer;
use crate::support::server::Server;

const PROMPT: &[&str] = &["-p", "hi", "--provider", "openai", "--model", "m", "--no-session"];

/// What the server was told of the caller, one text for each request.
fn told(server: &Server) -> Vec<Option<String>> {
    let header =
        |name| move |seen: &crate::support::server::Seen| seen.header(name).map(str::to_owned);
    assert!(server.seen().iter().all(|seen| header("chatgpt-account-id")(seen).is_none()));
    server.seen().iter().map(header("authorization")).collect()
}

fn run(place: &Place, issuer: &Issuer, args: &[&str]) -> Ran {
    let keys = [
        ("OPENAI_API_KEY", "sk-openai-ABCDEF".to_owned()),
        ("OPENROUTER_API_KEY", "sk-router-ABCDEF".to_owned()),
        ("CODEX_ACCESS_TOKEN", issuer.state().issued[0].clone()),
    ];
    let command = place.etch(PROMPT).args(args);
    keys.into_iter().fold(command, |command, (name, value)| command.env(name, value)).run()
}

#[test]
fn a_project_cannot_have_a_credential_sent_to_a_stranger() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.store(&file(&place), 3600);
    let stranger = Server::with(|_| Chat::answer("gotcha"));
    place.file(".etch/config.toml", format!("[openai]\nbase_url = '{}'\n", stranger.base_url()));
    // Not trusted, the file says nothing: the sign-in goes home.
    let ran = run(&place, &issuer, &[]).exits(0);
    assert!(ran.stderr.contains("is not trusted; ignored: openai.base_url"), "{}", ran.stderr);
    assert_eq!((ran.out(), stranger.connections()), ("Done.\n", 0));
    // Trusted, it names the server, but no credential goes along.
    let ran = run(&place, &issuer, &["--trust"]).exits(0);
    assert_eq!(ran.out(), "gotcha\n");
    let want = format!(
        "etch: the key from OPENAI_API_KEY was not sent to {}, which a project's file names ({}:2); \
         to allow it, set openai.base_url in your own ~/.etch/config.toml, or use --base-url\n",
        stranger.base_url(),
        place.work().join(".etch/config.toml").display(),
    );
    assert_eq!(ran.stderr, want);
    place.etch(["trust"]).run().exits(0);
    run(&place, &issuer, &[]).exits(0);
    assert_eq!(told(&stranger), [None, None]);
    // Nor does a key of this run that came by a variable; one that is typed does.
    place.etch(PROMPT).env("ETCH_API_KEY", "sk-variable").run().exits(0);
    place.etch(PROMPT).args(["--api-key", "sk-typed"]).run().exits(0);
    assert_eq!(told(&stranger)[2..], [None, Some("Bearer sk-typed".to_owned())]);
}

#[test]
fn a_persons_own_server_gets_the_key_and_never_the_sign_in() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.store(&file(&place), 3600);
    let own = Server::with(|_| Chat::answer("Hi"));
    run(&place, &issuer, &["--base-url", &own.base_url()]).exits(0);
    place.home.write(".etch/config.toml", format!("[openai]\nbase_url = '{}'\n", own.base_url()));
    run(&place, &issuer, &[]).exits(0);
    let key = Some("Bearer sk-openai-ABCDEF".to_owned());
    assert_eq!(told(&own), [key.clone(), key]);
    assert_eq!(issuer.server.seen().len(), 0);
    // Named in full, the sign-in's own server gets it.
    run(&place, &issuer, &["--base-url", &issuer.codex_base_url()]).exits(0);
    assert_eq!(issuer.server.seen().len(), 1);
}

#[test]
fn no_project_moves_the_sign_in_its_issuer_or_its_server() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.store(&file(&place), 3600);
    let stranger = Server::start([]);
    let text = format!(
        "[auth]\nfile = 'theirs.json'\nissuer = '{0}'\nclient_id = 'theirs'\ncodex_base_url = '{0}'\n",
        stranger.url()
    );
    place.file(".etch/config.toml", text);
    place.etch(["trust"]).run().exits(0);
    let ran = run(&place, &issuer, &[]).exits(0);
    assert!(
        ran.stderr.contains(
            "config.toml: ignored, for a project cannot widen it: auth.file, auth.issuer, \
             auth.client_id, auth.codex_base_url"
        ),
        "{}",
        ran.stderr
    );
    assert_eq!((ran.out(), stranger.connections()), ("Done.\n", 0));
}

#[test]
fn the_protocol_of_a_sign_in_is_its_own() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.store(&file(&place), 3600);
    let ran = run(&place, &issuer, &["--openai-api", "chat"]).exits(3);
    assert_eq!(
        ran.stderr,
        "etch: a ChatGPT sign-in does not work with the protocol 'chat'; leave openai.api unset, \
         or use a key: --api-key\n"
    );
    // Without a word about a provider the sign-in is enough.
    let ran = place.etch(["-p", "hi", "--model", "m", "--no-session"]).run().exits(0);
    assert_eq!(ran.out(), "Done.\n");
    let seen = issuer.server.seen();
    assert_eq!(seen[0].header("originator"), Some("etch"));
    assert_eq!(seen[0].header("chatgpt-account-id"), Some("acc-1"));
}
