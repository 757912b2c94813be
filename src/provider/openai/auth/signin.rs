//! A stored sign-in in use: the token of now, renewed in time and once after a refusal.
//!
//! One etch refreshes, all others pick up its result: the exchange happens under the file's lock,
//! after the file was read again. New tokens are on the disk before any is used. An exchange that
//! has begun is never cut, because its answer holds the only token that works from then on: it
//! runs on a thread of its own, and dropping a [`SignIn`] waits for it, within a bound.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::file::{self, Stored};
use super::issuer::Issuer;
use super::refresh::{Failure, refresh};
use super::store::{self, Lock, cancelled};
use super::{refused, seconds_now};
use crate::cancel::{Cancel, Never};
use crate::host::Host;
use crate::model::{ErrorKind, ModelError};
use crate::provider::openai::access::{Bearer, Tokens};
use crate::provider::secret::{Secret, redact_all};

/// How long the end of the program waits for an exchange whose answer must be kept.
const KEEP_WITHIN: Duration = Duration::from_secs(3);

pub struct SignIn {
    inner: Arc<Inner>,
    /// Clones of the sender live in the exchanges; the receiver closes with the last.
    exchanges: Option<Sender<Never>>,
    ended: Receiver<Never>,
}

struct Inner {
    path: PathBuf,
    host: Arc<Host>,
    issuer: Issuer,
    state: Mutex<State>,
}

struct State {
    stored: Stored,
    /// A refresh token that is worth nothing any more, and what was said of it.
    dead: Option<(Secret, ModelError)>,
    /// Every token that was in use, for [`Tokens::redact`].
    seen: Vec<Secret>,
}

impl SignIn {
    /// `stored` as it was read; `issuer` is its issuer.
    pub fn new(stored: Stored, issuer: Issuer, host: Arc<Host>) -> SignIn {
        let (exchanges, ended) = bounded(0);
        let path = stored.path.clone();
        let seen = stored.secrets().cloned().collect();
        let state = Mutex::new(State { stored, dead: None, seen });
        let inner = Arc::new(Inner { path, host, issuer, state });
        SignIn { inner, exchanges: Some(exchanges), ended }
    }

    /// What is stored now.
    pub fn stored(&self) -> Stored {
        self.inner.state().stored.clone()
    }

    /// Other tokens than those with `old`; `is_refused` when a server did not take it.
    fn renew(&self, old: &Secret, is_refused: bool, cancel: &Cancel) -> Result<Bearer, ModelError> {
        let inner = &self.inner;
        let known = inner.state().stored.clone();
        let now = seconds_now(&inner.host);
        let lock = match store::lock(known.tokens_path(), cancel) {
            Ok(lock) => lock,
            // In a place that cannot be written the old token serves to its end.
            Err(error) if error.kind != ErrorKind::Auth || is_refused || known.is_expired(now) => {
                return Err(error);
            }
            Err(_) => return Ok(inner.adopt(known)),
        };
        let stored = inner.read_again(&known)?;
        if stored.tokens_path() != known.tokens_path() {
            // It was imported or made anew meanwhile: another file, another lock.
            drop(lock);
            inner.adopt(stored);
            return self.renew(old, is_refused, cancel);
        }
        let now = seconds_now(&inner.host);
        if stored.access != *old && !stored.is_due(now) {
            return Ok(inner.adopt(stored));
        }
        let usable = !is_refused && !stored.is_expired(now);
        let result = match inner.verdict(&stored) {
            Some(error) => Err(error),
            None => self.exchange(stored.clone(), lock, cancel),
        };
        match result {
            Ok(bearer) => Ok(bearer),
            Err(error) if error.kind == ErrorKind::Cancelled => Err(error),
            // The old token still serves; the next request tries again.
            Err(_) if usable => Ok(inner.adopt(stored)),
            Err(error) => Err(error),
        }
    }

    /// Trades the refresh token on a thread of its own. Cancelling returns at once; the thread
    /// goes on until the new tokens are kept.
    fn exchange(&self, stored: Stored, lock: Lock, cancel: &Cancel) -> Result<Bearer, ModelError> {
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let (sender, result) = bounded(1);
        let (inner, alive) = (Arc::clone(&self.inner), self.exchanges.clone());
        let work = move || {
            let _ = sender.send(inner.exchange(&stored));
            drop((lock, alive));
        };
        let thread = std::thread::Builder::new().name("auth-refresh".to_owned()).spawn(work);
        thread.map_err(|error| {
            ModelError::new(ErrorKind::Network, format!("cannot start a thread: {error}"))
        })?;
        select! {
            recv(result) -> result => result.unwrap_or_else(|_| {
                Err(ModelError::new(ErrorKind::Protocol, "the renewal of the sign-in failed inside"))
            }),
            recv(cancel.channel()) -> _ => Err(cancelled()),
        }
    }
}

impl Drop for SignIn {
    fn drop(&mut self) {
        self.exchanges = None;
        let _ = self.ended.recv_timeout(KEEP_WITHIN);
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file as it is now. Another account in it is never switched to silently.
    fn read_again(&self, known: &Stored) -> Result<Stored, ModelError> {
        let place = self.path.display();
        let stored = file::read(&self.path)?
            .ok_or_else(|| refused(format!("{place}: the sign-in was removed meanwhile")))?;
        if stored.account_id != known.account_id {
            let text = format!("{place}: the sign-in is of another account now");
            return Err(ModelError::new(ErrorKind::Auth, text)
                .with_hint("start etch again to go on with that account"));
        }
        Ok(stored)
    }

    /// Why these tokens cannot be renewed at all, if so.
    fn verdict(&self, stored: &Stored) -> Option<ModelError> {
        let Some(token) = &stored.refresh else {
            return Some(refused("the sign-in has ended and holds no token to renew it with"));
        };
        let state = self.state();
        let (dead, error) = state.dead.as_ref()?;
        (dead == token).then(|| error.clone())
    }

    /// Under the lock: asks the issuer and keeps what it gives.
    fn exchange(&self, stored: &Stored) -> Result<Bearer, ModelError> {
        let Some(token) = &stored.refresh else { return Err(cancelled()) };
        // Before the old token is given away there must be a place for the new one.
        let slot = stored.reserve()?;
        let fresh = match refresh(&self.issuer, token, &Cancel::new()) {
            Ok(fresh) => fresh,
            Err(Failure::ForNow(error)) => return Err(self.named(error)),
            Err(Failure::ForGood(error)) => {
                drop(slot);
                // A program that shares the file, but not its lock, may have been first.
                let again = self.read_again(stored)?;
                let now = seconds_now(&self.host);
                if again.refresh.as_ref() != Some(token) && !again.is_expired(now) {
                    return Ok(self.adopt(again));
                }
                let error = self.named(error);
                self.state().dead = Some((token.clone(), error.clone()));
                return Err(error);
            }
        };
        let renewed = stored.renew(slot, &fresh, &self.host)?;
        let is_expired = renewed.is_expired(seconds_now(&self.host));
        let bearer = self.adopt(renewed);
        if is_expired {
            let text = "the sign-in was renewed, but its new token has ended already";
            return Err(ModelError::new(ErrorKind::Protocol, text)
                .not_retryable()
                .with_hint("check this machine's clock"));
        }
        Ok(bearer)
    }

    fn named(&self, mut error: ModelError) -> ModelError {
        error.message = redact_all(self.state().seen.iter(), &error.message);
        error
    }

    /// Takes tokens into use.
    fn adopt(&self, stored: Stored) -> Bearer {
        let bearer = bearer(&stored);
        let mut state = self.state();
        for secret in stored.secrets() {
            if !state.seen.contains(secret) {
                state.seen.push(secret.clone());
            }
        }
        state.stored = stored;
        bearer
    }
}

fn bearer(stored: &Stored) -> Bearer {
    Bearer {
        token: stored.access.clone(),
        account_id: Some(stored.account_id.clone()),
        fedramp: stored.fedramp,
    }
}

impl Tokens for SignIn {
    fn mode(&self) -> &'static str {
        "chatgpt"
    }

    fn source(&self) -> String {
        let state = self.inner.state();
        let Stored { email, plan, account_id, .. } = &state.stored;
        let who = email.as_deref().unwrap_or(account_id);
        match plan {
            Some(plan) => format!("ChatGPT sign-in ({who}, {plan})"),
            None => format!("ChatGPT sign-in ({who})"),
        }
    }

    fn known(&self) -> Bearer {
        bearer(&self.inner.state().stored)
    }

    fn current(&self, cancel: &Cancel) -> Result<Bearer, ModelError> {
        let stored = self.inner.state().stored.clone();
        match stored.is_due(seconds_now(&self.inner.host)) {
            false => Ok(bearer(&stored)),
            true => self.renew(&stored.access, false, cancel),
        }
    }

    fn renewed(&self, old: &Bearer, cancel: &Cancel) -> Result<Bearer, ModelError> {
        self.renew(&old.token, true, cancel)
    }

    fn redact(&self, text: &str) -> String {
        redact_all(self.inner.state().seen.iter(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::openai::auth::file::tests::{Dir, token};
    use crate::provider::openai::auth::issuer::tests::Script;
    use serde_json::{Value, json};

    /// 2026-01-01T00:00:00Z, where the fixed clock starts.
    const NOW: u64 = 1_767_225_600;

    fn document(access: &str, refresh: &str) -> Value {
        json!({"tokens": {"access_token": access, "refresh_token": refresh}})
    }

    fn sign_in(dir: &Dir, access: &str, replies: &[(u16, &str)]) -> SignIn {
        let path = dir.write("openai.json", &document(access, "rt_first_token"));
        let stored = file::read(&path).unwrap().unwrap();
        SignIn::new(stored, Script::issuer(replies).0, Arc::new(Host::fixed()))
    }

    fn answer(access: &str, refresh: &str) -> String {
        json!({"access_token": access, "refresh_token": refresh}).to_string()
    }

    #[test]
    fn a_token_is_renewed_when_due_and_kept_before_it_is_used() {
        let dir = Dir::new("due-renewed");
        let (old, new) = (token("acc", NOW + 200, "1"), token("acc", NOW + 9000, "2"));
        let tokens = sign_in(&dir, &old, &[(200, &answer(&new, "rt_second"))]);
        let cancel = Cancel::new();
        let got = tokens.current(&cancel).unwrap();
        assert_eq!((got.token.reveal(), got.account_id.as_deref()), (new.as_str(), Some("acc")));
        let kept = file::read(&dir.0.join("openai.json")).unwrap().unwrap();
        assert_eq!(
            (kept.access.reveal(), kept.refresh),
            (new.as_str(), Some(Secret::new("rt_second")))
        );
        // Now it is not due any more.
        assert_eq!(tokens.current(&cancel).unwrap(), got);
        assert_eq!(
            tokens.redact(&format!("{old} {new} rt_first_token rt_second x")),
            "[redacted] [redacted] [redacted] [redacted] x"
        );
        assert_eq!(tokens.source(), "ChatGPT sign-in (user@example.com, plus)");
    }

    #[test]
    fn what_another_process_renewed_is_taken_without_asking() {
        let dir = Dir::new("taken");
        let (old, new) = (token("acc", NOW - 1, "1"), token("acc", NOW + 9000, "2"));
        let tokens = sign_in(&dir, &old, &[]);
        dir.write("openai.json", &document(&new, "rt_second"));
        assert_eq!(tokens.current(&Cancel::new()).unwrap().token.reveal(), new);
        // After a refusal too.
        let newer = token("acc", NOW + 9500, "3");
        dir.write("openai.json", &document(&newer, "rt_third"));
        let refused = Bearer { token: Secret::new(&*new), account_id: None, fedramp: false };
        assert_eq!(tokens.renewed(&refused, &Cancel::new()).unwrap().token.reveal(), newer);
    }

    #[test]
    fn another_account_or_none_is_not_switched_to() {
        let dir = Dir::new("account");
        let tokens = sign_in(&dir, &token("acc", NOW - 1, "1"), &[]);
        dir.write("openai.json", &document(&token("other", NOW + 9000, "2"), "rt_x"));
        let error = tokens.current(&Cancel::new()).unwrap_err();
        assert!(error.message.ends_with("the sign-in is of another account now"), "{error}");
        std::fs::remove_file(dir.0.join("openai.json")).unwrap();
        let error = tokens.current(&Cancel::new()).unwrap_err();
        assert!(error.message.ends_with("was removed meanwhile"), "{error}");
    }

    #[test]
    fn a_failure_for_now_leaves_an_unexpired_token_in_use() {
        let dir = Dir::new("for-now");
        let old = token("acc", NOW + 200, "1");
        let tokens = sign_in(&dir, &old, &[(503, "{}"), (503, "{}"), (0, "refused")]);
        let bearer = tokens.current(&Cancel::new()).unwrap();
        assert_eq!(bearer.token.reveal(), old);
        // But not one that was refused.
        let error = tokens.renewed(&bearer, &Cancel::new()).unwrap_err();
        assert_eq!((error.kind, error.retryable), (ErrorKind::Server, true));
        let error = tokens.renewed(&bearer, &Cancel::new()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Network);
        let kept = file::read(&dir.0.join("openai.json")).unwrap().unwrap();
        assert_eq!(kept.refresh, Some(Secret::new("rt_first_token")));
    }

    #[test]
    fn a_refusal_for_good_is_asked_for_once_and_says_what_to_do() {
        let dir = Dir::new("for-good");
        let reused = r#"{"error":{"code":"refresh_token_reused"}}"#;
        let tokens = sign_in(&dir, &token("acc", NOW - 1, "1"), &[(401, reused)]);
        for _ in 0..3 {
            let error = tokens.current(&Cancel::new()).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the sign-in cannot be renewed: its refresh token was used before, by another \
                 program; sign in again: etch auth login"
            );
        }
        // A new sign-in is taken up.
        let new = token("acc", NOW + 9000, "2");
        dir.write("openai.json", &document(&new, "rt_second"));
        assert_eq!(tokens.current(&Cancel::new()).unwrap().token.reveal(), new);
    }

    #[test]
    fn without_room_for_new_tokens_the_old_one_is_not_given_away() {
        let dir = Dir::new("no-room");
        // No reply in the script: a call would panic.
        let tokens = sign_in(&dir, &token("acc", NOW - 1, "1"), &[]);
        // Not even a lock, but a token that lasts some minutes more.
        let lasting = Dir::new("no-lock");
        let old = token("acc", NOW + 200, "1");
        let tokens_left = sign_in(&lasting, &old, &[]);
        std::fs::create_dir(lasting.0.join("openai.json.lock")).unwrap();
        assert_eq!(tokens_left.current(&Cancel::new()).unwrap().token.reveal(), old);
        std::fs::create_dir(dir.0.join("openai.json.new")).unwrap();
        let error = tokens.current(&Cancel::new()).unwrap_err();
        assert!(error.message.contains("openai.json: cannot be written"), "{error}");
    }
}
