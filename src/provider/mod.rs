//! Model providers: adapters from the neutral [`Model`] to what servers speak.
//!
//! [`build`] makes the one that the settings name, with the retry layer around it. Nothing here
//! reads the environment but through [`Host`], and no credential goes anywhere but into the
//! header of a call to the configured host.

mod classify;
mod echo;
pub mod local;
pub mod openai;
mod overflow;
mod preview;
pub mod retry;
mod retry_after;
pub mod secret;
pub mod window;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Key, Kind, Trust};
use crate::host::Host;
use crate::model::{ErrorKind, Model, ModelError};
use crate::provider::echo::Echo;
use crate::provider::openai::access::Access;
use crate::provider::openai::chat::Chat;
use crate::provider::openai::endpoint::Endpoint;
use crate::provider::openai::exchange::checked_key;
use crate::provider::openai::responses::{Responses, Travel};
use crate::provider::retry::{RetryPolicy, Retrying};
use crate::provider::secret::Secret;
use crate::wire::http::{Http, Timeouts};
use crate::wire::websocket::Sockets;
use crate::wire::{Phase, Recorded, Transport, WireError, WireErrorKind};

/// The names that `provider.name` takes.
pub const NAMES: &[&str] = &["echo", "replay", "openai", "local"];
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
const OPENROUTER_BASE_URL: &str = "https://openrouter.ai/api/v1";
const OPENAI_HOST: &str = "api.openai.com";
const OPENROUTER_HOST: &str = "openrouter.ai";
const OPENAI_KEY: &str = "OPENAI_API_KEY";
const OPENROUTER_KEY: &str = "OPENROUTER_API_KEY";

const SECONDS: Kind = Kind::Int { min: 1, max: 86_400 };

/// The settings that this module is configured by.
pub const KEYS: &[Key] = &[
    key(
        "provider.name",
        Kind::Choice(NAMES),
        None,
        Trust::User,
        "Who answers: openai (any server that speaks its protocol), local (the model server found on this machine), replay (a recording) or echo (your own words).",
    ),
    key(
        "provider.model",
        Kind::Text,
        None,
        Trust::Anyone,
        "The model's name, as the server knows it.",
    ),
    key(
        "provider.recording",
        Kind::Path,
        None,
        Trust::User,
        "For replay: a folder with response-1.sse, response-2.sse and so on, one for each request.",
    ),
    key(
        "provider.connect_timeout_seconds",
        SECONDS,
        Some("10"),
        Trust::User,
        "How long connecting may take, the name lookup and TLS included.",
    ),
    key(
        "provider.headers_timeout_seconds",
        SECONDS,
        Some("600"),
        Trust::User,
        "How long a server may think before it begins to answer.",
    ),
    key(
        "provider.idle_timeout_seconds",
        SECONDS,
        Some("300"),
        Trust::User,
        "How long a server may fall silent in the middle of an answer. Keep-alive comments count as life.",
    ),
    key(
        "provider.attempts_max",
        Kind::Int { min: 1, max: 20 },
        Some("5"),
        Trust::User,
        "How often a call is tried in all where trying again may help.",
    ),
    key(
        "provider.retry_wait_milliseconds",
        Kind::Int { min: 1, max: 60_000 },
        Some("1000"),
        Trust::User,
        "The wait before the second attempt; it doubles from then on. It is three times as long when the server is overloaded, and longer when the server asks for that.",
    ),
    key(
        "openai.base_url",
        Kind::Url,
        Some(OPENAI_BASE_URL),
        Trust::User,
        "Where the server is. A bare host means its /v1.",
    ),
    key(
        "openai.api",
        Kind::Choice(&["chat", "responses"]),
        Some("chat"),
        Trust::User,
        "The protocol: chat (Chat Completions, which every compatible server speaks) or responses.",
    ),
    key(
        "openai.transport",
        Kind::Choice(&["http", "websocket", "auto"]),
        Some("http"),
        Trust::User,
        "How requests travel: http, websocket, or auto (a WebSocket as long as one works). Chat Completions knows http alone.",
    ),
    key(
        "openai.reasoning_effort",
        Kind::Choice(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
        None,
        Trust::User,
        "How much a reasoning model thinks. Sent only when set; a model takes some of these.",
    ),
    key(
        "openai.reasoning_summary",
        Kind::Choice(&["auto", "concise", "detailed"]),
        None,
        Trust::User,
        "What a reasoning model tells of its thoughts (responses only).",
    ),
];

const fn key(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    trust: Trust,
    doc: &'static str,
) -> Key {
    Key { name, kind, default, trust, doc }
}

/// A credential and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub secret: Secret,
    /// `OPENAI_API_KEY`, `--api-key`, a file: for messages.
    pub source: String,
}

/// The variables that hold keys, each of one vendor.
pub const KEY_VARIABLES: &[&str] = &[OPENAI_KEY, OPENROUTER_KEY];

/// Which of the variables that are `set` holds the key for the server at `base_url`. A key of one
/// hosted service is never sent to the other; a server of the person's own choice gets
/// `OPENAI_API_KEY`, as every client of this protocol does it.
pub fn key_variable(base_url: &str, set: &[&'static str]) -> Option<&'static str> {
    let router = Endpoint::parse(base_url).is_ok_and(|endpoint| endpoint.is_at(OPENROUTER_HOST));
    let name = if router { OPENROUTER_KEY } else { OPENAI_KEY };
    set.contains(&name).then_some(name)
}

/// Whether the server is that of the vendor whose key the variable holds.
pub fn is_vendor(variable: &str, base_url: &str) -> bool {
    let host = if variable == OPENROUTER_KEY { OPENROUTER_HOST } else { OPENAI_HOST };
    Endpoint::parse(base_url).is_ok_and(|endpoint| endpoint.is_at(host) && endpoint.base().https)
}

/// Where requests go when no address is set: to the service whose key is in the environment.
pub fn default_base_url(host: &Host) -> &'static str {
    match (host.var(OPENAI_KEY), host.var(OPENROUTER_KEY)) {
        (None, Some(_)) => OPENROUTER_BASE_URL,
        _ => OPENAI_BASE_URL,
    }
}

/// All that [`build`] needs to know.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// One of [`NAMES`].
    pub name: String,
    pub model: String,
    pub base_url: String,
    /// `chat` or `responses`.
    pub api: String,
    /// `http`, `websocket` or `auto`; the last two only for `responses`.
    pub transport: String,
    pub access: Access,
    pub timeouts: Timeouts,
    pub retry: RetryPolicy,
    /// `replay`: a folder with `response-1.sse`, `response-2.sse`, …
    pub recording_dir: Option<PathBuf>,
    /// `replay`: the responses themselves; they win over the folder.
    pub recording: Vec<Vec<u8>>,
}

impl ProviderSettings {
    pub fn new(name: &str, model: &str) -> ProviderSettings {
        ProviderSettings {
            name: name.to_owned(),
            model: model.to_owned(),
            base_url: OPENAI_BASE_URL.to_owned(),
            api: "chat".to_owned(),
            transport: "http".to_owned(),
            access: Access::None,
            timeouts: Timeouts::default(),
            retry: RetryPolicy::default(),
            recording_dir: None,
            recording: Vec::new(),
        }
    }
}

/// Timeouts from whole seconds, as configured.
pub fn timeouts_from_seconds(connect: u64, headers: u64, idle: u64) -> Timeouts {
    Timeouts {
        connect: Duration::from_secs(connect),
        headers: Duration::from_secs(headers),
        idle: Duration::from_secs(idle),
    }
}

/// The model that the settings name. Opens no connection; fails where no call could succeed.
pub fn build(settings: &ProviderSettings, host: Arc<Host>) -> Result<Box<dyn Model>, ModelError> {
    let wrong = |text: String| ModelError::new(ErrorKind::InvalidRequest, text);
    match settings.name.as_str() {
        "echo" => Ok(Box::new(Echo)),
        "replay" => {
            let bodies = recording(settings).map_err(wrong)?;
            let endpoint = Endpoint::parse("http://localhost").map_err(wrong)?;
            let transport = Box::new(Recorded::new(bodies));
            Ok(Box::new(Chat::new("replay", &endpoint, Access::None, transport, host)))
        }
        "openai" | "local" => openai(settings, host),
        other => Err(wrong(format!("there is no provider '{other}'"))
            .with_hint(format!("use one of {}", NAMES.join(", ")))),
    }
}

fn openai(settings: &ProviderSettings, host: Arc<Host>) -> Result<Box<dyn Model>, ModelError> {
    let wrong = |text: &str| ModelError::new(ErrorKind::InvalidRequest, text);
    let endpoint = Endpoint::parse(&settings.base_url)
        .map_err(|why| wrong(&format!("openai.base_url: {why}")))?;
    if settings.model.trim().is_empty() {
        let list = endpoint.url("models");
        let hint = format!("use --model, or provider.model; the server's are listed at {list}");
        return Err(wrong("no model is set").with_hint(&hint));
    }
    let access = match &settings.access {
        Access::Key(key) => checked_key(Some(key.clone()))?.map_or(Access::None, Access::Key),
        Access::Tokens(_) if settings.api == "chat" => {
            return Err(wrong("a sign-in does not work with the protocol 'chat'")
                .with_hint("set openai.api to responses"));
        }
        access => access.clone(),
    };
    let hosted = ["api.openai.com", "openrouter.ai"].iter().find(|name| endpoint.is_at(name));
    if let (Access::None, Some(name)) = (&access, hosted) {
        let variable =
            if *name == "openrouter.ai" { "OPENROUTER_API_KEY" } else { "OPENAI_API_KEY" };
        let text = format!("{name} needs a key, and none is set");
        let hint = format!("export {variable}, or use a local server with --provider local");
        return Err(ModelError::new(ErrorKind::Auth, text).with_hint(hint));
    }
    if settings.api == "chat" && settings.transport == "websocket" {
        return Err(wrong("the protocol 'chat' does not travel over a WebSocket")
            .with_hint("set openai.transport to http, or openai.api to responses"));
    }
    let (name, retry) = (&settings.name, settings.retry);
    let transport: Box<dyn Transport> = Box::new(Http::new(&host, settings.timeouts));
    Ok(match settings.api.as_str() {
        "chat" => {
            let chat = Chat::new(name, &endpoint, access, transport, Arc::clone(&host));
            Box::new(Retrying::new(chat, retry, host))
        }
        _ => {
            let travel = match settings.transport.as_str() {
                "websocket" => Travel::WebSocket,
                "auto" => Travel::Auto,
                _ => Travel::Http,
            };
            let sockets = Sockets::new(&host, settings.timeouts);
            let shared = Arc::clone(&host);
            let responses =
                Responses::new(name, &endpoint, access, travel, transport, sockets, shared);
            Box::new(Retrying::new(responses, retry, host))
        }
    })
}

/// The recorded responses in order.
fn recording(settings: &ProviderSettings) -> Result<Vec<Vec<u8>>, String> {
    if !settings.recording.is_empty() {
        return Ok(settings.recording.clone());
    }
    let dir = settings.recording_dir.as_deref().ok_or(
        "the provider 'replay' needs a recording: set provider.recording to a folder with \
         response-1.sse, response-2.sse and so on",
    )?;
    read_recording(dir)
}

fn read_recording(dir: &Path) -> Result<Vec<Vec<u8>>, String> {
    let mut bodies = Vec::new();
    loop {
        let path = dir.join(format!("response-{}.sse", bodies.len() + 1));
        match std::fs::read(&path) {
            Ok(bytes) => bodies.push(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !bodies.is_empty() => {
                return Ok(bodies);
            }
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        }
    }
}

/// A failure of the wire in the terms of the taxonomy.
pub(crate) fn wire_error(error: WireError, url: &str) -> ModelError {
    let local = crate::wire::url::Url::parse(url).is_ok_and(|url| url.is_loopback());
    let network = |message: String| ModelError::new(ErrorKind::Network, message);
    match error.kind {
        WireErrorKind::Cancelled => ModelError::new(ErrorKind::Cancelled, error.message),
        WireErrorKind::Setup => network(error.message).not_retryable(),
        WireErrorKind::Refused if local => {
            network(error.message).not_retryable().with_hint("is the server running?")
        }
        WireErrorKind::NoHost => network(error.message)
            .not_retryable()
            .with_hint("check the base URL and the network"),
        WireErrorKind::Tls => network(error.message)
            .not_retryable()
            .with_hint("set SSL_CERT_FILE when the server's certificate has an authority of its own"),
        WireErrorKind::Proxy => network(error.message)
            .not_retryable()
            .with_hint("check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY"),
        WireErrorKind::Timeout(Phase::Headers | Phase::Idle) if local => network(error.message)
            .with_hint("a slow local model may need provider.headers_timeout_seconds or provider.idle_timeout_seconds"),
        WireErrorKind::Refused
        | WireErrorKind::Unreachable
        | WireErrorKind::Timeout(_)
        | WireErrorKind::Cut
        | WireErrorKind::Closed(_) => network(error.message),
        WireErrorKind::Protocol => ModelError::new(ErrorKind::Protocol, error.message),
        WireErrorKind::TooLarge => {
            ModelError::new(ErrorKind::Protocol, error.message).not_retryable()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused_before_any_call() {
        let fails = |settings: &ProviderSettings| {
            let error = build(settings, Arc::new(Host::fixed())).err().unwrap();
            (error.kind, error.to_string())
        };
        let (kind, text) = fails(&ProviderSettings::new("openai", "m"));
        assert_eq!(kind, ErrorKind::Auth);
        assert_eq!(
            text,
            "api.openai.com needs a key, and none is set; export OPENAI_API_KEY, or use a local \
             server with --provider local"
        );
        let mut settings = ProviderSettings::new("openai", "");
        assert_eq!(
            fails(&settings).1,
            "no model is set; use --model, or provider.model; the server's are listed at \
             https://api.openai.com/v1/models"
        );
        settings.model = "m".into();
        settings.base_url = "ftp://h".into();
        assert!(fails(&settings).1.starts_with("openai.base_url: 'ftp://h' is no usable URL"));
        settings.api = "responses".into();
        assert_eq!(fails(&settings).0, ErrorKind::InvalidRequest);
        assert!(
            fails(&ProviderSettings::new("gpt", "m")).1.contains("echo, replay, openai, local")
        );
        assert!(fails(&ProviderSettings::new("replay", "m")).1.contains("needs a recording"));
    }

    #[test]
    fn a_broken_key_is_named_by_its_source_and_never_shown() {
        for (key, why) in [
            ("sk-test-\nABCDEF", "has a line break in the middle"),
            ("", "is empty"),
            ("sk-ÄABCDEF", "has a character that is no ASCII"),
        ] {
            let mut settings = ProviderSettings::new("openai", "m");
            let source = "OPENAI_API_KEY".to_owned();
            settings.access = Access::Key(ApiKey { secret: Secret::new(key), source });
            let error = build(&settings, Arc::new(Host::fixed())).err().unwrap();
            assert_eq!(error.kind, ErrorKind::Auth);
            assert_eq!(
                error.to_string(),
                format!("the key from OPENAI_API_KEY {why}; set it again")
            );
            assert!(!format!("{settings:?}").contains("ABCDEF"));
        }
    }

    #[test]
    fn each_server_gets_its_own_key() {
        let host =
            Host::fixed().with_var("OPENAI_API_KEY", "a").with_var("OPENROUTER_API_KEY", "b");
        let key = |url| key_variable(url, KEY_VARIABLES);
        assert_eq!(key("https://api.openai.com/v1"), Some("OPENAI_API_KEY"));
        assert_eq!(key("https://openrouter.ai/api/v1"), Some("OPENROUTER_API_KEY"));
        assert_eq!(key("http://localhost:8000/v1"), Some("OPENAI_API_KEY"));
        assert_eq!(key_variable("https://h", &[]), None);
        assert_eq!(default_base_url(&host), OPENAI_BASE_URL);
        assert_eq!(default_base_url(&Host::fixed()), OPENAI_BASE_URL);
        let other = Host::fixed().with_var("OPENROUTER_API_KEY", "b");
        assert_eq!(default_base_url(&other), "https://openrouter.ai/api/v1");
        assert_eq!(key_variable("https://api.openai.com/v1", &["OPENROUTER_API_KEY"]), None);
        assert_eq!(key_variable("http://localhost:8000/v1", &["OPENROUTER_API_KEY"]), None);
    }

    #[test]
    fn defaults_of_the_table_are_allowed_values() {
        for key in KEYS {
            match (key.kind, key.default) {
                (Kind::Choice(all), Some(default)) => {
                    assert!(all.contains(&default), "{}", key.name)
                }
                (Kind::Int { min, max }, Some(default)) => {
                    assert!((min..=max).contains(&default.parse().unwrap()), "{}", key.name);
                }
                _ => {}
            }
        }
        assert_eq!(timeouts_from_seconds(10, 600, 300), Timeouts::default());
    }
}
