//! The stored sign-in: what its file holds, and how new tokens are put into it.
//!
//! The form is the Go etch's, whose tokens in turn have the Codex CLI's form; so one reader serves
//! etch's own file and a Codex file that is used in place. What nobody here knows is kept.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::claims::Claims;
use super::refresh::Fresh;
use super::store::{self, Lock, Slot};
use super::{file_error, refused};
use crate::host::{Host, Timestamp};
use crate::model::ModelError;
use crate::provider::secret::Secret;

/// A token that says nothing of its end is renewed when it is older than this.
const UNDATED_SECONDS_MAX: u64 = 8 * 24 * 3600;
/// How long before its end a token is renewed.
const EARLY_SECONDS: u64 = 5 * 60;

/// A stored sign-in as it was read.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Etch's own file.
    pub path: PathBuf,
    /// The file of another program that holds the tokens, when they are not in etch's own.
    pub source: Option<PathBuf>,
    pub access: Secret,
    pub refresh: Option<Secret>,
    pub id: Option<Secret>,
    pub account_id: String,
    /// Of the access token, in unix seconds.
    pub expires_at: Option<u64>,
    /// Unix seconds.
    pub last_refresh: Option<u64>,
    pub email: Option<String>,
    pub plan: Option<String>,
    pub fedramp: bool,
    pub issuer: Option<String>,
    pub client_id: Option<String>,
    pub codex_base_url: Option<String>,
    /// What the person should know of the file.
    pub warning: Option<String>,
    /// The file with the tokens, as it stands.
    document: Map<String, Value>,
}

/// What a new sign-in is for.
#[derive(Debug, Clone, Default)]
pub struct Place {
    pub path: PathBuf,
    pub issuer: String,
    pub client_id: String,
    pub codex_base_url: String,
}

impl Stored {
    /// The file that holds the tokens.
    pub fn tokens_path(&self) -> &Path {
        self.source.as_deref().unwrap_or(&self.path)
    }

    /// Whether the access token ends soon, or may have.
    pub fn is_due(&self, now: u64) -> bool {
        match (self.expires_at, self.last_refresh) {
            (Some(at), _) => at <= now + EARLY_SECONDS,
            (None, Some(last)) => last + UNDATED_SECONDS_MAX <= now,
            (None, None) => false,
        }
    }

    /// Whether the access token has ended for certain.
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        [Some(&self.access), self.refresh.as_ref(), self.id.as_ref()].into_iter().flatten()
    }

    /// Takes room on the disk for new tokens. The file is locked by the caller.
    pub fn reserve(&self) -> Result<Slot<'_>, ModelError> {
        let length = Value::Object(self.document.clone()).to_string().len();
        Slot::reserve(self.tokens_path(), 2 * length)
    }

    /// Writes new tokens into the file with everything else as it was; what is stored now.
    pub fn renew(&self, slot: Slot<'_>, fresh: &Fresh, host: &Host) -> Result<Stored, ModelError> {
        let mut document = self.document.clone();
        let tokens = document.entry("tokens").or_insert_with(|| json!({}));
        put_tokens(tokens, fresh);
        document.insert("last_refresh".to_owned(), host.now().to_rfc3339().into());
        slot.fill(&text(&document))?;
        let read = parse_tokens(self.tokens_path(), document, self.source.is_some())?;
        Ok(Stored {
            path: self.path.clone(),
            source: self.source.clone(),
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            codex_base_url: self.codex_base_url.clone(),
            ..read
        })
    }
}

fn put_tokens(tokens: &mut Value, fresh: &Fresh) {
    let fields = [
        ("id_token", &fresh.id),
        ("access_token", &fresh.access),
        ("refresh_token", &fresh.refresh),
    ];
    for (name, token) in fields {
        if let Some(token) = token {
            tokens[name] = token.reveal().into();
        }
    }
}

fn text(document: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(document).unwrap_or_default() + "\n"
}

/// Reads the sign-in that is kept at `path`; `None` when there is none.
pub fn read(path: &Path) -> Result<Option<Stored>, ModelError> {
    let Some((content, is_open)) = store::read(path)? else { return Ok(None) };
    let mut warning = None;
    if is_open && store::close_to_others(path).is_err() {
        warning = Some(open_to_others(path));
    }
    let document = parse(path, &content, false)?;
    let own = |name: &str| document.get(name)?.as_str().map(str::to_owned);
    let (issuer, client_id, codex_base_url) =
        (own("issuer"), own("client_id"), own("codex_base_url"));
    let source = own("source").map(PathBuf::from);
    let read = match &source {
        None => parse_tokens(path, document, false)?,
        Some(source) => {
            let read = read_foreign(source)?;
            read.ok_or_else(|| {
                let name = source.display();
                file_error(
                    path,
                    &format!("the sign-in is that of {name}, which is gone"),
                    "sign in there, or on your own: etch auth login",
                )
            })?
        }
    };
    let warning = warning.or(read.warning);
    let path = path.to_owned();
    Ok(Some(Stored { path, source, issuer, client_id, codex_base_url, warning, ..read }))
}

/// Reads the tokens that another program keeps; `None` when there is no such file.
pub fn read_foreign(path: &Path) -> Result<Option<Stored>, ModelError> {
    let Some((content, is_open)) = store::read(path)? else { return Ok(None) };
    let mut read = parse_tokens(path, parse(path, &content, true)?, true)?;
    read.warning = is_open.then(|| open_to_others(path));
    Ok(Some(read))
}

fn open_to_others(path: &Path) -> String {
    format!("{0}: others can read it; run: chmod 600 {0}", path.display())
}

fn wrong(path: &Path, is_foreign: bool, why: &str) -> ModelError {
    let hint = match is_foreign {
        true => "sign in with the program that it belongs to, or on your own: etch auth login",
        false => "a new sign-in replaces it: etch auth login",
    };
    file_error(path, &format!("no usable sign-in: {why}"), hint)
}

fn parse(path: &Path, content: &str, is_foreign: bool) -> Result<Map<String, Value>, ModelError> {
    match serde_json::from_str(content) {
        Ok(Value::Object(document)) => Ok(document),
        Ok(_) => Err(wrong(path, is_foreign, "it holds no JSON object")),
        Err(error) => {
            let why = format!("it is no JSON (line {}, column {})", error.line(), error.column());
            Err(wrong(path, is_foreign, &why))
        }
    }
}

/// The tokens of a document in the common form.
fn parse_tokens(
    path: &Path,
    document: Map<String, Value>,
    is_foreign: bool,
) -> Result<Stored, ModelError> {
    let wrong = |why: &str| wrong(path, is_foreign, why);
    let has_key = document.get("OPENAI_API_KEY").is_some_and(Value::is_string);
    let mode = document.get("auth_mode").and_then(Value::as_str);
    match mode {
        Some("chatgpt" | "chatgptAuthTokens") => {}
        None if !has_key => {}
        Some("apikey" | "api_key") | None => {
            return Err(file_error(
                path,
                "it holds an API key, not a sign-in",
                "put the key into OPENAI_API_KEY, or sign in: etch auth login",
            ));
        }
        Some(other) => {
            let other = super::issuer::without_tokens(other);
            return Err(wrong(&format!("its mode '{other}' is not supported")));
        }
    }
    let tokens = document.get("tokens").unwrap_or(&Value::Null);
    let token = |name: &str| {
        let token = tokens[name].as_str().map(str::trim).filter(|token| !token.is_empty());
        token.map(Secret::new)
    };
    let access = token("access_token").ok_or_else(|| wrong("it holds no access token"))?;
    let access = access.checked().map_err(|why| wrong(&format!("its access token {why}")))?;
    let id = token("id_token");
    let of_access = Claims::of(access.reveal());
    let expires_at = of_access.expires_at;
    let claims = id.as_ref().map_or_else(Claims::default, |id| Claims::of(id.reveal()));
    let claims = claims.or(of_access);
    let written = tokens["account_id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
    let account_id = written.or(claims.account_id).ok_or_else(|| wrong("it names no account"))?;
    if !account_id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong("its account id is none"));
    }
    let last_refresh = document.get("last_refresh").and_then(Value::as_str);
    Ok(Stored {
        path: path.to_owned(),
        source: None,
        refresh: token("refresh_token"),
        access,
        id,
        account_id,
        expires_at,
        last_refresh: last_refresh.and_then(Timestamp::parse).map(|time| time.0 / 1_000_000_000),
        email: claims.email,
        plan: claims.plan,
        fedramp: claims.fedramp,
        issuer: None,
        client_id: None,
        codex_base_url: None,
        warning: None,
        document,
    })
}

/// What etch's own file holds of where a sign-in is for; fields that it does not know stay.
fn base(place: &Place) -> Map<String, Value> {
    let old = store::read(&place.path).ok().flatten();
    let old = old.and_then(|(text, _)| serde_json::from_str::<Map<String, Value>>(&text).ok());
    let mut document = old.unwrap_or_default();
    for gone in ["source", "tokens", "last_refresh", "OPENAI_API_KEY"] {
        document.remove(gone);
    }
    document.insert("auth_mode".to_owned(), "chatgpt".into());
    document.insert("issuer".to_owned(), place.issuer.as_str().into());
    document.insert("client_id".to_owned(), place.client_id.as_str().into());
    document.insert("codex_base_url".to_owned(), place.codex_base_url.as_str().into());
    document
}

/// Keeps a new sign-in, in place of whatever stands there. The file is locked by the caller.
pub fn save(place: &Place, fresh: &Fresh, _lock: &Lock, host: &Host) -> Result<Stored, ModelError> {
    let mut document = base(place);
    let mut tokens = json!({});
    put_tokens(&mut tokens, fresh);
    let ids = [&fresh.id, &fresh.access].into_iter().flatten();
    let claims = ids.map(|token| Claims::of(token.reveal())).reduce(Claims::or).unwrap_or_default();
    let account = claims
        .account_id
        .ok_or_else(|| refused("the sign-in names no account: etch cannot use it"))?;
    tokens["account_id"] = account.into();
    document.insert("tokens".to_owned(), tokens);
    document.insert("last_refresh".to_owned(), host.now().to_rfc3339().into());
    write(place, document)
}

/// Notes that the tokens are to be taken from another program's file.
pub fn save_source(place: &Place, source: &Path, _lock: &Lock) -> Result<Stored, ModelError> {
    let mut document = base(place);
    let name = source.to_str();
    let name = name.ok_or_else(|| file_error(source, "its name is not UTF-8", "move it"))?;
    document.insert("source".to_owned(), name.into());
    write(place, document)
}

fn write(place: &Place, document: Map<String, Value>) -> Result<Stored, ModelError> {
    let content = text(&document);
    Slot::reserve(&place.path, content.len())?.fill(&content)?;
    let stored = read(&place.path)?;
    stored.ok_or_else(|| file_error(&place.path, "it is gone again", "try once more"))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use std::fs;

    /// A token of the account `acc` that ends at `exp`.
    pub fn token(account: &str, exp: u64, mark: &str) -> String {
        let claims = json!({"exp": exp, "jti": mark, "email": "user@example.com",
            "https://api.openai.com/auth": {
                "chatgpt_account_id": account, "chatgpt_plan_type": "plus"}});
        format!("eyJhbGciOiJub25lIn0.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    pub struct Dir(pub PathBuf);

    impl Dir {
        pub fn new(name: &str) -> Dir {
            let name = format!("etch-auth-{name}-{}", std::process::id());
            let path = std::env::temp_dir().canonicalize().unwrap().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Dir(path)
        }

        pub fn write(&self, name: &str, value: &Value) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, value.to_string()).unwrap();
            path
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn place(path: PathBuf) -> Place {
        Place {
            path,
            issuer: "https://i".into(),
            client_id: "app".into(),
            codex_base_url: "https://c".into(),
        }
    }

    #[test]
    fn a_sign_in_is_kept_in_the_common_form_and_renewed_without_loss() {
        let dir = Dir::new("file");
        let host = Host::fixed();
        let place = place(dir.0.join("openai.json"));
        let lock = store::lock(&place.path, &crate::cancel::Cancel::new()).unwrap();
        dir.write("openai.json", &json!({"mine": 1.5, "tokens": 3, "source": "/x"}));
        let (id, access) = (token("acc", 1, "id"), token("acc", 99, "a1"));
        let secret = |text: &str| Some(Secret::new(text));
        let fresh = Fresh { id: secret(&id), access: secret(&access), refresh: secret("rt_1") };
        let stored = save(&place, &fresh, &lock, &host).unwrap();
        let want = format!(
            "{{\n  \"auth_mode\": \"chatgpt\",\n  \"client_id\": \"app\",\n  \"codex_base_url\": \
             \"https://c\",\n  \"issuer\": \"https://i\",\n  \"last_refresh\": \
             \"2026-01-01T00:00:00Z\",\n  \"mine\": 1.5,\n  \"tokens\": {{\n    \"access_token\": \
             \"{access}\",\n    \"account_id\": \"acc\",\n    \"id_token\": \"{id}\",\n    \
             \"refresh_token\": \"rt_1\"\n  }}\n}}\n"
        );
        assert_eq!(fs::read_to_string(&place.path).unwrap(), want);
        assert_eq!((stored.expires_at, stored.plan.as_deref()), (Some(99), Some("plus")));
        // Without a new refresh token the old one stays.
        let next = token("acc", 100, "a2");
        let fresh = Fresh { access: secret(&next), ..Fresh::default() };
        let slot = stored.reserve().unwrap();
        let renewed = stored.renew(slot, &fresh, &host).unwrap();
        assert_eq!(renewed.access.reveal(), next);
        assert_eq!(renewed.refresh, secret("rt_1"));
        let want = want.replace(&access, &next).replace("00:00:00Z", "00:00:01Z");
        assert_eq!(fs::read_to_string(&place.path).unwrap(), want);
        assert_eq!(read(&place.path).unwrap().unwrap().issuer.as_deref(), Some("https://i"));
    }

    #[test]
    fn another_programs_file_is_used_where_it_is() {
        let dir = Dir::new("source");
        let access = token("acc", 50, "a1");
        let codex = json!({"auth_mode": "chatgpt", "OPENAI_API_KEY": null, "agent": {"x": [1]},
            "tokens": {"id_token": token("acc", 1, "i"), "access_token": access,
                "refresh_token": "rt_1", "account_id": null, "more": true},
            "last_refresh": "2026-01-02T03:04:05.678901Z"});
        let source = dir.write("auth.json", &codex);
        let place = place(dir.0.join("openai.json"));
        let lock = store::lock(&place.path, &crate::cancel::Cancel::new()).unwrap();
        let stored = save_source(&place, &source, &lock).unwrap();
        assert_eq!(stored.tokens_path(), source);
        assert_eq!((stored.account_id.as_str(), stored.last_refresh), ("acc", Some(1_767_323_045)));
        assert!(!fs::read_to_string(&place.path).unwrap().contains("rt_1"));
        assert!(stored.warning.as_deref().unwrap_or_default().contains("chmod 600"));
        let fresh = Fresh { refresh: Some(Secret::new("rt_2")), ..Fresh::default() };
        let renewed = stored.renew(stored.reserve().unwrap(), &fresh, &Host::fixed()).unwrap();
        assert_eq!(renewed.refresh, Some(Secret::new("rt_2")));
        let mut want = codex;
        want["tokens"]["refresh_token"] = "rt_2".into();
        want["last_refresh"] = "2026-01-01T00:00:00Z".into();
        let got: Value = serde_json::from_str(&fs::read_to_string(&source).unwrap()).unwrap();
        assert_eq!(got, want);
        fs::write(&source, "{\"tok").unwrap();
        assert!(
            read(&place.path).unwrap_err().hint.contains("with the program that it belongs to")
        );
        fs::remove_file(&source).unwrap();
        assert!(read(&place.path).unwrap_err().message.contains("auth.json, which is gone"));
    }

    #[test]
    fn files_that_hold_no_sign_in_say_what_they_are() {
        let dir = Dir::new("bad");
        let good = token("acc", 50, "a");
        for (content, want) in [
            ("", "no usable sign-in: it is no JSON (line 1, column 0)"),
            ("[]", "no usable sign-in: it holds no JSON object"),
            ("{\"tokens\":\"rt_SECRET", "no usable sign-in: it is no JSON (line 1, column 20)"),
            ("{}", "no usable sign-in: it holds no access token"),
            (r#"{"tokens":null}"#, "no usable sign-in: it holds no access token"),
            (r#"{"OPENAI_API_KEY":"sk-x"}"#, "it holds an API key, not a sign-in"),
            (
                r#"{"auth_mode":"apikey","OPENAI_API_KEY":"x"}"#,
                "it holds an API key, not a sign-in",
            ),
            (
                r#"{"auth_mode":"agentIdentity"}"#,
                "no usable sign-in: its mode 'agentIdentity' is not supported",
            ),
            (r#"{"tokens":{"access_token":"a"}}"#, "no usable sign-in: it names no account"),
            (
                r#"{"tokens":{"access_token":"a\nb","account_id":"x"}}"#,
                "no usable sign-in: its access token has a line break in the middle",
            ),
            (
                r#"{"tokens":{"access_token":"a","account_id":"x y\n"}}"#,
                "no usable sign-in: its account id is none",
            ),
        ] {
            let path = dir.0.join("openai.json");
            fs::write(&path, content).unwrap();
            let error = read(&path).unwrap_err();
            assert_eq!(error.message, format!("{}: {want}", path.display()), "{content}");
            assert!(error.hint.contains("etch auth login"), "{}", error.hint);
        }
        // Older files name no mode; a key beside tokens is a key's file only without a mode.
        let plain = json!({"tokens": {"access_token": good}});
        assert_eq!(read(&dir.write("p", &plain)).unwrap().unwrap().account_id, "acc");
        let both = json!({"auth_mode": "chatgpt", "OPENAI_API_KEY": "sk", "tokens": {"access_token": good}});
        assert!(read(&dir.write("b", &both)).unwrap().is_some());
    }

    #[test]
    fn a_token_is_due_shortly_before_its_end_or_after_days() {
        let dir = Dir::new("due");
        let check = |exp: Option<u64>, last: Option<&str>, now: u64| {
            let access = exp.map_or_else(|| "opaque".to_owned(), |exp| token("acc", exp, "a"));
            let document = json!({"tokens": {"access_token": access, "account_id": "acc"},
                "last_refresh": last});
            let stored = read(&dir.write("x", &document)).unwrap().unwrap();
            (stored.is_due(now), stored.is_expired(now))
        };
        assert_eq!(check(Some(1000), None, 699), (false, false));
        assert_eq!(check(Some(1000), None, 700), (true, false));
        assert_eq!(check(Some(1000), None, 1000), (true, true));
        let last = Some("1970-01-01T00:00:10Z");
        assert_eq!(check(None, last, 10 + UNDATED_SECONDS_MAX - 1), (false, false));
        assert_eq!(check(None, last, 10 + UNDATED_SECONDS_MAX), (true, false));
        assert_eq!(check(None, None, u64::MAX / 2), (false, false));
    }
}
