//! `etch auth`: signing in with a subscription, what is in use, and signing out.
//!
//! Addresses, codes and progress go to standard error; standard output has only what `status`
//! found. No token is printed anywhere. Ctrl-C ends every wait at once and leaves nothing behind.

use std::io::{self, IsTerminal};
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::args::AuthArgs;
use super::exit;
use super::interrupt;
use super::out::say;
use crate::agent::Stop;
use crate::cancel::Cancel;
use crate::config::{self, Config};
use crate::harness::{self, access};
use crate::host::Host;
use crate::model::{ErrorKind, ModelError};
use crate::provider::KEY_VARIABLES;
use crate::provider::openai::auth::file::{self, Place, Stored};
use crate::provider::openai::auth::issuer::Issuer;
use crate::provider::openai::auth::refresh::Fresh;
use crate::provider::openai::auth::{ACCESS_TOKEN, browser, device, import, store};

mod status;

pub fn run(host: Host, args: &AuthArgs) -> u8 {
    let host = Arc::new(host);
    let loaded = match config::load(&host, &harness::access_keys(), &args.overrides) {
        Ok(loaded) => loaded,
        Err(errors) => {
            errors.iter().for_each(|error| say(&error.to_string()));
            let usage = errors.iter().all(config::Error::is_usage);
            return if usage { exit::USAGE } else { exit::CONFIG };
        }
    };
    let cancel = Cancel::new();
    interrupt::watch(&cancel);
    let config = &loaded.config;
    let done = match args.action.as_str() {
        "login" => login(&host, config, args.browser, &cancel),
        "import" => import(&host, config, args, &cancel),
        "logout" => logout(&host, config, &cancel),
        _ => status::run(&host, config, args.json, &cancel),
    };
    done.unwrap_or_else(|error| {
        if let Some(reason) = cancel.reason() {
            say(match args.action.as_str() {
                "login" | "import" => "cancelled; nothing was changed",
                "logout" => {
                    "cancelled; the sign-in is still here, but its issuer may have ended it: run \
                     'etch auth logout' again"
                }
                _ => "cancelled",
            });
            return Stop::Cancelled(reason).exit_code();
        }
        say(&error.to_string());
        exit_code(&error)
    })
}

fn exit_code(error: &ModelError) -> u8 {
    match error.kind {
        ErrorKind::Auth | ErrorKind::InvalidRequest => exit::CONFIG,
        ErrorKind::Network => exit::NETWORK,
        _ => exit::FAILED,
    }
}

/// Where the sign-in is to be kept; without a home it has to be said.
fn place(host: &Host, config: &Config) -> Result<Place, ModelError> {
    let place = access::place(host, config)?;
    if place.path.as_os_str().is_empty() {
        let text = "there is no place to keep a sign-in: HOME is not set";
        return Err(ModelError::new(ErrorKind::Auth, text).with_hint("name one with --auth-file"));
    }
    Ok(place)
}

fn login(
    host: &Arc<Host>,
    config: &Config,
    by_browser: bool,
    cancel: &Cancel,
) -> Result<u8, ModelError> {
    let place = place(host, config)?;
    // Before the person does anything, it must be clear that the result can be kept.
    let lock = store::lock(&place.path, cancel)?;
    drop(store::Slot::reserve(&place.path, 0)?);
    match place.path.exists() {
        true => drop(lock),
        false => lock.remove(),
    }
    let issuer = Issuer::new(host, &place.issuer, &place.client_id)?;
    let stored = match by_browser {
        true => {
            let waiting = browser::begin(&issuer, host, cancel)?;
            say(&format!("open this address in a browser on this machine:\n\n  {}\n", waiting.url));
            open_browser(host, &waiting.url);
            say("waiting for the browser to come back (15 minutes at most; Ctrl-C gives up)");
            let (granted, visitor) = waiting.wait(host, cancel)?;
            let stored = device::exchange(&issuer, &granted, cancel)
                .and_then(|fresh| keep(host, &place, &fresh, cancel));
            match &stored {
                Ok(_) => visitor.tell("Signed in", "You can close this page and go back to etch."),
                Err(error) => visitor.tell("Not signed in", &error.to_string()),
            }
            stored?
        }
        false => {
            let code = device::begin(&issuer, cancel)?;
            say(&format!(
                "open this address in any browser and enter the code:\n\n  {}\n  {}\n",
                code.url, code.user_code
            ));
            say("never give the code to anybody: whoever asks for it wants your account");
            say("waiting for it to be entered (15 minutes at most; Ctrl-C gives up)");
            let granted = device::wait(&issuer, &code, host, &device::pause, cancel)?;
            let fresh = device::exchange(&issuer, &granted, cancel)?;
            keep(host, &place, &fresh, cancel)?
        }
    };
    say(&format!("signed in as {}; kept in {}", who(&stored), stored.path.display()));
    hint_other(host, config);
    Ok(exit::OK)
}

fn keep(host: &Host, place: &Place, fresh: &Fresh, cancel: &Cancel) -> Result<Stored, ModelError> {
    let lock = store::lock(&place.path, cancel)?;
    file::save(place, fresh, &lock, host)
}

/// Says so when a run would not use what was just made.
fn hint_other(host: &Arc<Host>, config: &Config) {
    match access::resolve(host, config, &mut |_| {}) {
        Ok(chosen) if chosen.sign_in.is_none() => {
            let used = chosen.access.describe();
            say(&format!("runs here do not use it: they go to {} (auth: {used})", chosen.base_url));
        }
        Ok(_) => {}
        Err(error) => say(&error.to_string()),
    }
}

/// `user@example.com (plus)`.
fn who(stored: &Stored) -> String {
    let name = stored.email.as_deref().unwrap_or(&stored.account_id);
    match &stored.plan {
        Some(plan) => format!("{name} ({plan})"),
        None => name.to_owned(),
    }
}

/// Only where there is a screen to show it on; failing is fine, since the address was printed.
fn open_browser(host: &Host, url: &str) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| host.var(name).is_some());
    if !has_screen || !io::stderr().is_terminal() {
        return;
    }
    // Of several, separated by colons, the first.
    let named = host.var("BROWSER").and_then(|names| names.split(':').next());
    let program = named.filter(|name| !name.is_empty()).unwrap_or("xdg-open");
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    for name in KEY_VARIABLES.iter().chain(&[ACCESS_TOKEN, "ETCH_API_KEY"]) {
        command.env_remove(name);
    }
    use std::os::unix::process::CommandExt;
    // A Ctrl-C at this terminal is not meant for the browser.
    drop(command.process_group(0).spawn());
}

fn import(
    host: &Arc<Host>,
    config: &Config,
    args: &AuthArgs,
    cancel: &Cancel,
) -> Result<u8, ModelError> {
    let place = place(host, config)?;
    let stored = import::import(host, args.path.as_deref(), &place, cancel)?;
    if let Some(warning) = &stored.warning {
        say(warning);
    }
    let source = stored.tokens_path().display();
    say(&format!("using the sign-in of {} in {source}, where it is", who(&stored)));
    say("both programs share it: signing out of one ends it for the other");
    hint_other(host, config);
    Ok(exit::OK)
}

fn logout(host: &Arc<Host>, config: &Config, cancel: &Cancel) -> Result<u8, ModelError> {
    let place = place(host, config)?;
    let name = place.path.display();
    if std::fs::symlink_metadata(&place.path).is_err() {
        say(&format!("not signed in: there is no {name}"));
        return Ok(exit::OK);
    }
    let lock = store::lock(&place.path, cancel)?;
    let ended = match file::read(&place.path) {
        Ok(Some(stored)) if stored.source.is_none() => revoke(host, &stored, &place, cancel),
        Ok(Some(stored)) => {
            let source = stored.tokens_path().display();
            format!("forgotten; the sign-in itself stays in {source}")
        }
        // There is nothing in it that could be ended.
        Ok(None) | Err(_) => "what stood there was no usable sign-in".to_owned(),
    };
    cancel.check().map_err(|_| store::cancelled())?;
    std::fs::remove_file(&place.path).map_err(|error| {
        let text = format!("{name}: cannot be removed: {}", crate::workspace::reason(&error));
        ModelError::new(ErrorKind::Auth, text).with_hint("remove it by hand")
    })?;
    lock.remove();
    say(&format!("removed {name}: {ended}"));
    Ok(exit::OK)
}

/// Ends the sign-in at the issuer, as far as it can be reached; what came of it.
fn revoke(host: &Host, stored: &Stored, place: &Place, cancel: &Cancel) -> String {
    let token = stored.refresh.as_ref().unwrap_or(&stored.access);
    let revoked = access::issuer(host, stored, place).and_then(|issuer| {
        let fields = [
            ("token", token.reveal()),
            ("token_type_hint", "refresh_token"),
            ("client_id", issuer.client_id()),
        ];
        issuer.post_form("/oauth/revoke", &fields, &[token], cancel)
    });
    match revoked {
        Ok(answer) if answer.is_success() => "the sign-in is ended".to_owned(),
        Ok(answer) => format!(
            "the issuer did not end the sign-in (HTTP {}); its tokens run out by themselves",
            answer.status
        ),
        Err(error) => {
            format!("the issuer was not told ({}); its tokens run out by themselves", error.message)
        }
    }
}
