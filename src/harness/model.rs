//! Which model answers: the configured one, a recording, or what is found on this machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Error, Options, Say, access};
use crate::cancel::Cancel;
use crate::config::{Config, Key, Kind, Origin, Trust};
use crate::host::Host;
use crate::model::Model;
use crate::provider::local::{self, Found};
use crate::provider::openai::access::Access;
use crate::provider::retry::RetryPolicy;
use crate::provider::{self, ProviderSettings};

/// A key for one run. It is no setting of a file: see [`Kind::Secret`].
pub const API_KEY: Key = Key {
    name: "openai.api_key",
    kind: Kind::Secret,
    default: None,
    trust: Trust::User,
    doc: "The key for the server. Other users of the machine can see a command line: prefer \
          OPENAI_API_KEY.",
};

/// Who answers.
pub struct Chosen {
    pub model: Box<dyn Model>,
    pub name: String,
    /// How the server is told who calls.
    pub access: Access,
}

/// The model, its name, and what it is asked with.
pub fn choose(
    host: &Arc<Host>,
    config: &Config,
    options: Options,
    cancel: &Cancel,
    say: Say<'_>,
) -> Result<Chosen, Error> {
    let mut settings = ProviderSettings::new("", text(config, "provider.model").unwrap_or(""));
    text(config, "openai.transport").unwrap_or("http").clone_into(&mut settings.transport);
    settings.timeouts = provider::timeouts_from_seconds(
        number(config, "provider.connect_timeout_seconds"),
        number(config, "provider.headers_timeout_seconds"),
        number(config, "provider.idle_timeout_seconds"),
    );
    settings.retry = RetryPolicy::new(
        u32::try_from(number(config, "provider.attempts_max")).unwrap_or(1),
        Duration::from_millis(number(config, "provider.retry_wait_milliseconds")),
    );
    // Who answers without a wire needs no credential, and none is looked for.
    let is_offline = options.recording.is_some()
        || matches!(text(config, "provider.name"), Some("echo" | "replay"));
    if !is_offline {
        let chosen = access::resolve(host, config, say).map_err(Error::Provider)?;
        (settings.access, settings.base_url, settings.api) =
            (chosen.access, chosen.base_url, chosen.api);
    }
    settings.name = name(config, &settings, options.recording.is_some()).to_owned();
    match settings.name.as_str() {
        "replay" => {
            settings.recording_dir = path(config, "provider.recording");
            settings.recording = options.recording.unwrap_or_default();
        }
        "local" if !is_set(config, "openai.base_url") => {
            find_local(host, cancel, &mut settings, say)?
        }
        "" => {
            let found =
                if options.probe_local { local::probe(host, cancel) } else { Found::default() };
            let Some((url, model)) = found.only() else { return Err(no_provider(found)) };
            use_local(&mut settings, url, model, say);
        }
        _ => {}
    }
    let model = provider::build(&settings, Arc::clone(host)).map_err(Error::Provider)?;
    let fallback = if settings.model.is_empty() { &settings.name } else { &settings.model };
    Ok(Chosen { name: fallback.clone(), access: settings.access.clone(), model })
}

/// The provider's name: the configured one; `openai` where the settings can mean nothing else;
/// empty when nothing is configured.
fn name<'c>(config: &'c Config, settings: &ProviderSettings, recorded: bool) -> &'c str {
    if recorded {
        return "replay";
    }
    if let Some(name) = text(config, "provider.name") {
        return name;
    }
    let named = is_set(config, "openai.base_url") || !matches!(settings.access, Access::None);
    if named { "openai" } else { "" }
}

fn no_provider(found: Found) -> Error {
    let several = found.servers.len() > 1;
    let urls = found.servers.into_iter().map(|server| server.base_url);
    Error::NoProvider(if several { urls.collect() } else { Vec::new() })
}

/// `provider = local`: exactly one server on this machine, with the model that is set or its
/// first.
fn find_local(
    host: &Host,
    cancel: &Cancel,
    settings: &mut ProviderSettings,
    say: Say<'_>,
) -> Result<(), Error> {
    let found = local::probe(host, cancel);
    let by_name = match found.servers.as_slice() {
        [server] if !settings.model.is_empty() => Some(server.base_url.as_str()),
        _ => None,
    };
    let chosen = match by_name {
        Some(url) => Some((url, settings.model.clone())),
        None => found.only().map(|(url, model)| (url, model.to_owned())),
    };
    let Some((url, model)) = chosen else {
        return Err(Error::Provider(local::none_to_use(&found)));
    };
    use_local(settings, url, &model, say);
    Ok(())
}

fn use_local(settings: &mut ProviderSettings, url: &str, model: &str, say: Say<'_>) {
    say(&format!("using the model server at {url} with {model}"));
    "local".clone_into(&mut settings.name);
    url.clone_into(&mut settings.base_url);
    model.clone_into(&mut settings.model);
    // A key of a hosted server has no business on another one.
    settings.access = Access::None;
}

fn key(name: &str) -> Option<&'static Key> {
    provider::KEYS.iter().find(|key| key.name == name)
}

fn text<'c>(config: &'c Config, name: &str) -> Option<&'c str> {
    config.text(key(name)?)
}

fn path(config: &Config, name: &str) -> Option<PathBuf> {
    config.path(key(name)?).map(PathBuf::from)
}

fn number(config: &Config, name: &str) -> u64 {
    let set = key(name).and_then(|key| config.int(key));
    set.and_then(|number| u64::try_from(number).ok()).unwrap_or(60)
}

/// Whether somebody set it, rather than the default.
fn is_set(config: &Config, name: &str) -> bool {
    let origin = key(name).and_then(|key| config.origin(key));
    origin.is_some_and(|origin| *origin != Origin::Default)
}

/// The reasoning effort to ask for, if any is set.
pub fn reasoning_effort(config: &Config) -> Option<&str> {
    text(config, "openai.reasoning_effort")
}

/// What to tell of the reasoning, if anything is set.
pub fn reasoning_summary(config: &Config) -> Option<&str> {
    text(config, "openai.reasoning_summary")
}
