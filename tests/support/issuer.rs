//! A fake issuer and the backend behind it: rotating refresh tokens, codes, a usage page.
//!
//! A refresh token is good for one use. One that is used again answers `refresh_token_reused` and
//! ends the whole sign-in, as the real one does.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::command::{Place, TestCommand};
use crate::support::responses::Responses;
use crate::support::server::{Gate, Reply, Seen, Server};

const HOUR: i64 = 3600;

/// What the issuer knows; a test changes it as it likes.
pub struct State {
    /// Every token that was ever given out, for a test that looks for them.
    pub issued: Vec<String>,
    /// The refresh token that is good now; `None` once the sign-in is dead.
    pub refresh: Option<String>,
    /// The access tokens that the backend takes.
    pub accepted: Vec<String>,
    /// From now; negative: over before it began.
    pub lifetime_seconds: i64,
    pub refreshes: u32,
    /// Refresh tokens that came a second time.
    pub reused: u32,
    /// Answers to polls for a code, before the good one.
    pub polls: VecDeque<(u16, Value)>,
    /// In place of the next answers to a refresh; nothing is rotated.
    pub refusals: VecDeque<Reply>,
    /// Holds the answers to refreshes and revocations back, after the tokens were changed.
    pub hold: Option<Gate>,
    /// What the backend answers, in order.
    pub answers: VecDeque<Reply>,
    pub revoked: Vec<String>,
    count: u32,
    account: String,
}

pub struct Issuer {
    pub server: Server,
    state: Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

/// A token that ends at `exp`.
pub fn token(account: &str, exp: i64, mark: &str) -> String {
    let claims = json!({"exp": exp, "jti": mark, "email": "user@example.com",
        "https://api.openai.com/auth": {
            "chatgpt_account_id": account, "chatgpt_plan_type": "plus"}});
    format!("eyJhbGciOiJub25lIn0.{}.{mark}sig", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

impl State {
    /// New tokens, in the form of an answer.
    fn issue(&mut self) -> Value {
        self.count += 1;
        let mark = format!("SECRET{}", self.count);
        let access = token(&self.account, now() + self.lifetime_seconds, &mark);
        let id = token(&self.account, now() + HOUR, &format!("ID{mark}"));
        let refresh = format!("rt_{mark}_{}", "x".repeat(24));
        self.issued.extend([access.clone(), id.clone(), refresh.clone()]);
        self.accepted.push(access.clone());
        self.refresh = Some(refresh.clone());
        json!({"id_token": id, "access_token": access, "refresh_token": refresh, "expires_in": 9})
    }

    fn held(&self, reply: Reply) -> Reply {
        match &self.hold {
            Some(gate) => reply.wait_before(gate),
            None => reply,
        }
    }

    fn refresh(&mut self, given: &str) -> Reply {
        if let Some(refusal) = self.refusals.pop_front() {
            return refusal;
        }
        if self.refresh.as_deref() == Some(given) {
            self.refreshes += 1;
            let reply = Reply::json(200, &self.issue());
            return self.held(reply);
        }
        self.reused += 1;
        self.refresh = None;
        self.accepted.clear();
        Reply::error(401, "refresh_token_reused", &format!("used before: {given}"))
    }

    fn is_accepted(&self, seen: &Seen) -> bool {
        let bearer = seen.header("authorization").and_then(|text| text.strip_prefix("Bearer "));
        bearer.is_some_and(|bearer| self.accepted.iter().any(|token| token == bearer))
            && seen.header("chatgpt-account-id") == Some(&self.account)
    }

    fn answer(&mut self, seen: &Seen) -> Reply {
        let text = String::from_utf8_lossy(&seen.body).into_owned();
        let body: Value = serde_json::from_slice(&seen.body).unwrap_or(Value::Null);
        match seen.path.as_str() {
            "/api/accounts/deviceauth/usercode" => Reply::json(
                200,
                &json!({"device_auth_id": "deviceauth_1", "user_code": "ABCD-12345",
                    "interval": "1"}),
            ),
            "/api/accounts/deviceauth/token" => match self.polls.pop_front() {
                Some((status, value)) => Reply::json(status, &value),
                None => Reply::json(
                    200,
                    &json!({"authorization_code": "ac_SECRETCODE+/1", "code_challenge": "c",
                        "code_verifier": "SECRETVERIFIER"}),
                ),
            },
            "/oauth/token" if text.starts_with("grant_type=authorization_code&") => {
                Reply::json(200, &self.issue())
            }
            "/oauth/token" => self.refresh(body["refresh_token"].as_str().unwrap_or_default()),
            "/oauth/revoke" => {
                self.revoked.push(text);
                self.refresh = None;
                self.held(Reply::json(200, &json!({})))
            }
            _ if !self.is_accepted(seen) => {
                let sent = seen.header("authorization").unwrap_or("nothing");
                Reply::error(401, "token_expired", &format!("not good: {sent}"))
            }
            "/backend-api/wham/usage" => Reply::json(
                200,
                &json!({"plan_type": "plus", "rate_limit": {
                    "primary_window": {"used_percent": 63, "limit_window_seconds": 18_000,
                        "reset_after_seconds": 7800},
                    "secondary_window": {"used_percent": 20, "limit_window_seconds": 604_800,
                        "reset_after_seconds": 180_000}}}),
            ),
            "/backend-api/codex/responses" => match self.answers.pop_front() {
                Some(reply) => reply,
                None => Responses::answer("Done.").reply(),
            },
            other => Reply::error(404, "not_found", other),
        }
    }
}

impl Issuer {
    pub fn start() -> Issuer {
        let state = Arc::new(Mutex::new(State {
            issued: Vec::new(),
            refresh: None,
            accepted: Vec::new(),
            lifetime_seconds: HOUR,
            refreshes: 0,
            reused: 0,
            polls: VecDeque::new(),
            refusals: VecDeque::new(),
            hold: None,
            answers: VecDeque::new(),
            revoked: Vec::new(),
            count: 0,
            account: "acc-1".to_owned(),
        }));
        let known = Arc::clone(&state);
        let server = Server::with(move |seen| lock(&known).answer(seen));
        Issuer { server, state }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub fn codex_base_url(&self) -> String {
        format!("{}/backend-api/codex", self.server.url())
    }

    /// `etch ARGS` with this issuer and its backend as the ones to use.
    pub fn etch(&self, place: &Place, args: &[&str]) -> TestCommand {
        let command = place.etch(args).env("ETCH_ISSUER", self.server.url());
        command.env("ETCH_CODEX_BASE_URL", self.codex_base_url())
    }

    /// A stored sign-in whose access token ends so many seconds from now.
    pub fn store(&self, path: &Path, seconds: i64) -> Value {
        let tokens = {
            let mut state = self.state();
            let usual = std::mem::replace(&mut state.lifetime_seconds, seconds);
            let tokens = state.issue();
            state.lifetime_seconds = usual;
            tokens
        };
        let document = json!({
            "auth_mode": "chatgpt",
            "tokens": {"id_token": tokens["id_token"], "access_token": tokens["access_token"],
                "refresh_token": tokens["refresh_token"], "account_id": "acc-1"},
            "last_refresh": "2026-01-01T00:00:00Z",
            "issuer": self.server.url(),
            "client_id": "app_test",
            "codex_base_url": self.codex_base_url(),
        });
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, serde_json::to_string_pretty(&document).unwrap()).unwrap();
        document
    }

    /// Waits until a request to that path is there.
    pub fn wait_for(&self, path: &str) {
        let mut count = 1;
        while !self.server.wait_for(count).iter().any(|seen| seen.path == path) {
            count += 1;
        }
    }
}

/// Makes the stored access token one that is over.
pub fn expire(path: &Path) {
    let mut document = read(path);
    document["tokens"]["access_token"] = token("acc-1", now() - 5, "old").into();
    std::fs::write(path, document.to_string()).unwrap();
}

pub fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
