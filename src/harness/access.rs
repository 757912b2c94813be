//! Which credential a run uses, and where it may go.
//!
//! [`choose`] is pure: from what is known to what is used. The order is an explicit key, the stored
//! sign-in, a token from the environment, a key from the environment; and each goes only to the
//! server that it belongs to. A key of the environment goes to its vendor, and to another server
//! only when the person, not a project, set that server's address.

use std::path::PathBuf;
use std::sync::Arc;

use super::Say;
use super::model::API_KEY;
use crate::config::{Config, Key, Origin};
use crate::host::Host;
use crate::model::{ErrorKind, ModelError};
use crate::provider::openai::access::Access;
use crate::provider::openai::auth::file::{self, Place, Stored};
use crate::provider::openai::auth::issuer::Issuer;
use crate::provider::openai::auth::signin::SignIn;
use crate::provider::openai::auth::token::AccessToken;
use crate::provider::openai::auth::vault::Vault;
use crate::provider::openai::auth::{self, ACCESS_TOKEN, checked_url};
use crate::provider::openai::endpoint::Endpoint;
use crate::provider::secret::Secret;
use crate::provider::{self, ApiKey, KEY_VARIABLES};

/// A server's address that somebody set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    pub url: String,
    /// False: a project's file did.
    pub is_own: bool,
    /// Where it is set, for messages.
    pub place: String,
}

/// All that the choice depends on.
#[derive(Debug, Clone, Default)]
pub struct Known {
    pub base_url: Option<BaseUrl>,
    /// Where requests go when no address is set and no sign-in is used.
    pub default_base_url: String,
    /// `openai.api`, when somebody set it.
    pub api: Option<String>,
    /// A key was given for this run: `Some(true)` typed, `Some(false)` by `ETCH_API_KEY`.
    pub explicit: Option<bool>,
    /// The address that the stored sign-in is for.
    pub sign_in: Option<String>,
    /// The address that `CODEX_ACCESS_TOKEN` is for, when that is set.
    pub access_token: Option<String>,
    /// Which keys the environment holds.
    pub variables: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    None,
    Explicit,
    SignIn,
    AccessToken,
    Variable(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub credential: Credential,
    pub base_url: String,
    /// `chat` or `responses`.
    pub api: String,
    /// What the person should know.
    pub notice: Option<String>,
}

/// The choice; an error where what is set contradicts itself.
pub fn choose(known: &Known) -> Result<Choice, ModelError> {
    let url = known.base_url.as_ref().map_or(&known.default_base_url, |set| &set.url);
    let choice = |credential| Choice {
        credential,
        base_url: url.clone(),
        api: known.api.clone().unwrap_or_else(|| "chat".to_owned()),
        notice: None,
    };
    if let Some(is_typed) = known.explicit {
        return Ok(match withheld(known, "the key from ETCH_API_KEY").filter(|_| !is_typed) {
            Some(notice) => Choice { notice: Some(notice), ..choice(Credential::None) },
            None => choice(Credential::Explicit),
        });
    }
    for (credential, home) in
        [(Credential::SignIn, &known.sign_in), (Credential::AccessToken, &known.access_token)]
    {
        let Some(home) = home else { continue };
        if known.base_url.as_ref().is_some_and(|set| !is_same_server(&set.url, home)) {
            continue;
        }
        if known.api.as_deref() == Some("chat") {
            let text = "a ChatGPT sign-in does not work with the protocol 'chat'";
            return Err(ModelError::new(ErrorKind::InvalidRequest, text)
                .with_hint("leave openai.api unset, or use a key: --api-key"));
        }
        let api = "responses".to_owned();
        return Ok(Choice { base_url: home.clone(), api, ..choice(credential) });
    }
    let Some(name) = provider::key_variable(url, &known.variables) else {
        return Ok(choice(Credential::None));
    };
    let is_vendor = provider::is_vendor(name, url);
    Ok(match withheld(known, &format!("the key from {name}")).filter(|_| !is_vendor) {
        Some(notice) => Choice { notice: Some(notice), ..choice(Credential::None) },
        None => choice(Credential::Variable(name)),
    })
}

/// Why a credential does not go to the address that is set, if a project set it.
fn withheld(known: &Known, what: &str) -> Option<String> {
    let BaseUrl { url, place, .. } = known.base_url.as_ref().filter(|set| !set.is_own)?;
    Some(format!(
        "{what} was not sent to {url}, which a project's file names ({place}); to allow it, set \
         openai.base_url in your own ~/.etch/config.toml, or use --base-url"
    ))
}

fn is_same_server(one: &str, other: &str) -> bool {
    matches!((Endpoint::parse(one), Endpoint::parse(other)), (Ok(one), Ok(other)) if one == other)
}

/// What a run uses, ready to send.
pub struct Chosen {
    pub access: Access,
    pub base_url: String,
    pub api: String,
    /// The sign-in, when that is what is used.
    pub sign_in: Option<Arc<SignIn>>,
}

/// Looks at everything and chooses. Reads the sign-in's file when no key is given for the run.
pub fn resolve(host: &Arc<Host>, config: &Config, say: Say<'_>) -> Result<Chosen, ModelError> {
    let explicit = match (config.secret(&API_KEY), config.origin(&API_KEY)) {
        (Some(secret), Some(origin)) => {
            let source = origin.to_string();
            let is_typed = matches!(origin, Origin::Flag(_));
            Some((ApiKey { secret: Secret::new(secret.reveal()), source }, is_typed))
        }
        _ => None,
    };
    let base_url = base_url(host, config);
    let stored = match explicit {
        Some(_) => None,
        None => stored(host, config, base_url.as_ref())?,
    };
    let codex = stored.is_some() || host.var(ACCESS_TOKEN).is_some();
    let place = codex.then(|| place(host, config)).transpose()?.unwrap_or_default();
    let known = Known {
        default_base_url: provider::default_base_url(host).to_owned(),
        api: set_text(config, provider_key("openai.api")).map(str::to_owned),
        explicit: explicit.as_ref().map(|(_, is_typed)| *is_typed),
        sign_in: stored.as_ref().map(|stored| home_of(stored, config, &place)).transpose()?,
        access_token: host.var(ACCESS_TOKEN).map(|_| place.codex_base_url.clone()),
        variables: KEY_VARIABLES.iter().copied().filter(|name| host.var(name).is_some()).collect(),
        base_url,
    };
    let Choice { credential, base_url, api, notice } = choose(&known)?;
    if let Some(notice) = notice {
        say(&notice);
    }
    let mut sign_in = None;
    let access = match (credential, explicit, stored) {
        (Credential::Explicit, Some((key, _)), _) => Access::Key(key),
        (Credential::SignIn, _, Some(stored)) => {
            if let Some(warning) = &stored.warning {
                say(warning);
            }
            let issuer = issuer(host, &stored, &place)?;
            let signed_in = Arc::new(SignIn::new(stored, issuer, Arc::clone(host)));
            sign_in = Some(Arc::clone(&signed_in));
            Access::Tokens(signed_in)
        }
        (Credential::AccessToken, ..) => {
            let text = host.var(ACCESS_TOKEN).unwrap_or_default();
            Access::Tokens(Arc::new(AccessToken::new(text, Arc::clone(host))?))
        }
        (Credential::Variable(name), ..) => {
            let secret = Secret::new(host.var(name).unwrap_or_default());
            Access::Key(ApiKey { secret, source: name.to_owned() })
        }
        _ => Access::None,
    };
    Ok(Chosen { access, base_url, api, sign_in })
}

/// The stored sign-in. Of a file that cannot be used it is an error, unless the run goes to
/// another server anyway.
fn stored(
    host: &Host,
    config: &Config,
    base_url: Option<&BaseUrl>,
) -> Result<Option<Stored>, ModelError> {
    let Some(path) = file_path(host, config) else { return Ok(None) };
    match (file::read(&path), base_url) {
        (Err(error), Some(set)) => {
            let codex = config.text(&auth::CODEX_BASE_URL_KEY).unwrap_or(auth::CODEX_BASE_URL);
            if is_same_server(&set.url, codex) { Err(error) } else { Ok(None) }
        }
        (stored, _) => stored,
    }
}

/// The address that a sign-in is for: what the person sets now, else what it was made for.
fn home_of(stored: &Stored, config: &Config, place: &Place) -> Result<String, ModelError> {
    match (&stored.codex_base_url, set_text(config, Some(&auth::CODEX_BASE_URL_KEY))) {
        (Some(url), None) => {
            checked_url(&format!("{}: codex_base_url", stored.path.display()), url)
        }
        _ => Ok(place.codex_base_url.clone()),
    }
}

/// The issuer of a sign-in: the one that it was made at.
pub fn issuer(host: &Host, stored: &Stored, place: &Place) -> Result<Issuer, ModelError> {
    let base = match &stored.issuer {
        Some(url) => checked_url(&format!("{}: issuer", stored.path.display()), url)?,
        None => place.issuer.clone(),
    };
    Issuer::new(host, &base, stored.client_id.as_deref().unwrap_or(&place.client_id))
}

/// Where the sign-in is kept; `None` without a home.
pub fn file_path(host: &Host, config: &Config) -> Option<PathBuf> {
    config.path(&auth::FILE).map(PathBuf::from).or_else(|| auth::default_file(host))
}

/// What a new sign-in would be for, and where it is kept.
pub fn place(host: &Host, config: &Config) -> Result<Place, ModelError> {
    let text = |key: &Key| config.text(key).or(key.default).unwrap_or_default().to_owned();
    Ok(Place {
        path: file_path(host, config).unwrap_or_default(),
        issuer: checked_url("auth.issuer", &text(&auth::ISSUER_KEY))?,
        client_id: text(&auth::CLIENT_ID_KEY),
        codex_base_url: checked_url("auth.codex_base_url", &text(&auth::CODEX_BASE_URL_KEY))?,
    })
}

/// Every secret that tools must not give to the model.
pub fn vault(host: &Host, config: &Config, access: &Access) -> Vault {
    let names = KEY_VARIABLES.iter().copied().chain([ACCESS_TOKEN, "ETCH_API_KEY"]);
    let secrets = names.filter_map(|name| host.var(name)).map(Secret::new).collect();
    Vault::new(access.clone(), secrets, file_path(host, config))
}

fn base_url(host: &Host, config: &Config) -> Option<BaseUrl> {
    let key = provider_key("openai.base_url")?;
    let url = set_text(config, Some(key))?.to_owned();
    let origin = config.origin(key)?;
    let own_file = host.home().map(|home| home.join(".etch/config.toml"));
    let is_own = match origin {
        Origin::File { path, .. } => Some(path) == own_file.as_ref(),
        Origin::Default | Origin::Environment(_) | Origin::Flag(_) => true,
    };
    Some(BaseUrl { url, is_own, place: origin.to_string() })
}

fn provider_key(name: &str) -> Option<&'static Key> {
    provider::KEYS.iter().find(|key| key.name == name)
}

/// The text of a key that somebody set, rather than the default.
fn set_text<'c>(config: &'c Config, key: Option<&Key>) -> Option<&'c str> {
    let key = key?;
    config.origin(key).filter(|origin| **origin != Origin::Default)?;
    config.text(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODEX: &str = "https://chatgpt.com/backend-api/codex";
    const OPENAI: &str = "https://api.openai.com/v1";

    fn own(url: &str) -> Option<BaseUrl> {
        Some(BaseUrl { url: url.into(), is_own: true, place: "~/.etch/config.toml:2".into() })
    }

    fn of_project(url: &str) -> Option<BaseUrl> {
        Some(BaseUrl { url: url.into(), is_own: false, place: "/p/.etch/config.toml:2".into() })
    }

    /// Everything at once: what is left out of it makes the cases.
    fn all() -> Known {
        Known {
            base_url: None,
            default_base_url: OPENAI.into(),
            api: None,
            explicit: Some(true),
            sign_in: Some(CODEX.into()),
            access_token: Some(CODEX.into()),
            variables: KEY_VARIABLES.to_vec(),
        }
    }

    #[track_caller]
    fn check(known: &Known, want: Credential, base_url: &str, api: &str, has_notice: bool) {
        let got = choose(known).unwrap();
        let got = (got.credential, got.base_url.as_str(), &*got.api, got.notice.is_some());
        assert_eq!(got, (want, base_url, api, has_notice));
    }

    #[test]
    fn the_order_is_key_sign_in_token_environment() {
        let mut known = all();
        check(&known, Credential::Explicit, OPENAI, "chat", false);
        known.explicit = None;
        check(&known, Credential::SignIn, CODEX, "responses", false);
        known.sign_in = None;
        check(&known, Credential::AccessToken, CODEX, "responses", false);
        known.access_token = None;
        check(&known, Credential::Variable("OPENAI_API_KEY"), OPENAI, "chat", false);
        known.variables.clear();
        check(&known, Credential::None, OPENAI, "chat", false);
    }

    #[test]
    fn a_sign_in_goes_to_its_own_server_alone() {
        let mut known = Known { explicit: None, ..all() };
        known.base_url = own("https://chatgpt.com/backend-api/codex/responses/");
        check(&known, Credential::SignIn, CODEX, "responses", false);
        // Even a project may name the server that it belongs to.
        known.base_url = of_project(CODEX);
        check(&known, Credential::SignIn, CODEX, "responses", false);
        for url in [
            "https://chatgpt.com/backend-api/other",
            "https://chatgpt.com.example/backend-api/codex",
            "http://chatgpt.com/backend-api/codex",
            "https://chatgpt.com:444/backend-api/codex",
        ] {
            known.base_url = own(url);
            check(&known, Credential::Variable("OPENAI_API_KEY"), url, "chat", false);
            known.base_url = of_project(url);
            check(&known, Credential::None, url, "chat", true);
        }
        known.base_url = None;
        known.api = Some("responses".into());
        check(&known, Credential::SignIn, CODEX, "responses", false);
        known.api = Some("chat".into());
        assert_eq!(
            choose(&known).unwrap_err().to_string(),
            "a ChatGPT sign-in does not work with the protocol 'chat'; leave openai.api unset, or \
             use a key: --api-key"
        );
        known.base_url = own("http://localhost:8000/v1");
        let url = "http://localhost:8000/v1";
        check(&known, Credential::Variable("OPENAI_API_KEY"), url, "chat", false);
    }

    #[test]
    fn a_key_of_the_environment_goes_to_its_vendor_or_where_the_person_says() {
        let bare = Known { explicit: None, sign_in: None, access_token: None, ..all() };
        let router = "https://openrouter.ai/api/v1";
        for (url, want) in [
            (OPENAI, Credential::Variable("OPENAI_API_KEY")),
            (router, Credential::Variable("OPENROUTER_API_KEY")),
        ] {
            for base_url in [own(url), of_project(url)] {
                check(&Known { base_url, ..bare.clone() }, want, url, "chat", false);
            }
        }
        let stranger = "https://stranger.example/v1";
        let mut known = Known { base_url: of_project(stranger), ..bare.clone() };
        check(&known, Credential::None, stranger, "chat", true);
        assert_eq!(
            choose(&known).unwrap().notice.unwrap(),
            "the key from OPENAI_API_KEY was not sent to https://stranger.example/v1, which a \
             project's file names (/p/.etch/config.toml:2); to allow it, set openai.base_url in \
             your own ~/.etch/config.toml, or use --base-url"
        );
        known.variables = vec!["OPENROUTER_API_KEY"];
        check(&known, Credential::None, stranger, "chat", false);
        known.variables.clear();
        check(&known, Credential::None, stranger, "chat", false);
        // A key for this run: typed it goes where the run goes, from the environment not.
        known.explicit = Some(true);
        check(&known, Credential::Explicit, stranger, "chat", false);
        known.explicit = Some(false);
        check(&known, Credential::None, stranger, "chat", true);
        known.base_url = own(stranger);
        check(&known, Credential::Explicit, stranger, "chat", false);
        // A plain connection to the vendor is not the vendor.
        let plain = "http://api.openai.com/v1";
        known = Known { base_url: of_project(plain), ..bare };
        check(&known, Credential::None, plain, "chat", true);
    }
}
