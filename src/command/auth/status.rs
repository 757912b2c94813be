//! `etch auth status`: the credential that a run here would use, and how much of a plan is left.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cancel::Cancel;
use crate::command::exit;
use crate::command::out::{Out, say};
use crate::config::Config;
use crate::harness::access::{self, Chosen};
use crate::host::{Host, Timestamp};
use crate::model::ModelError;
use crate::provider::openai::access::{Access, Bearer};
use crate::provider::openai::auth::claims::Claims;
use crate::provider::openai::auth::limits::{Limits, span};
use crate::provider::openai::auth::{seconds_now, store, usage};
use crate::wire::http::{Http, Timeouts};

/// The usage page is a courtesy: nobody waits long for it.
const USAGE_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(3),
    headers: Duration::from_secs(5),
    idle: Duration::from_secs(5),
};

/// What there is to say.
struct Status {
    mode: &'static str,
    source: String,
    base_url: String,
    file: Option<String>,
    shared_with: Option<String>,
    who: Claims,
    /// Why the credential does not work, if it does not.
    problem: Option<ModelError>,
    limits: Result<Option<Limits>, ModelError>,
    now: u64,
}

pub fn run(
    host: &Arc<Host>,
    config: &Config,
    as_json: bool,
    cancel: &Cancel,
) -> Result<u8, ModelError> {
    let chosen = access::resolve(host, config, &mut |line| say(line))?;
    let status = look(host, &chosen, cancel)?;
    let mut out = Out::stdout();
    match as_json {
        true => {
            let _ = out.json(&format!("{}\n", status.json()));
        }
        false => {
            let _ = out.foreign(&status.text());
        }
    }
    if let Some(problem) = &status.problem {
        say(&problem.to_string());
    }
    let works = status.problem.is_none() && status.mode != "none";
    Ok(out.finish(if works { exit::OK } else { exit::CONFIG }))
}

fn look(host: &Arc<Host>, chosen: &Chosen, cancel: &Cancel) -> Result<Status, ModelError> {
    let access = &chosen.access;
    let bearer = access.bearer(cancel);
    cancel.check().map_err(|_| store::cancelled())?;
    let (bearer, mut problem) = match bearer {
        Ok(bearer) => (bearer, None),
        Err(error) => (None, Some(error)),
    };
    let limits = match (&bearer, access) {
        (Some(bearer), Access::Tokens(_)) => {
            let asked = ask(host, chosen, bearer, cancel);
            match asked {
                // A token that the server refuses is renewed once, as in a run.
                Err(error) if error.status == Some(401) => match access.renewed(bearer, cancel) {
                    Ok(Some(other)) => ask(host, chosen, &other, cancel),
                    Ok(None) => Err(error),
                    Err(error) => {
                        problem = Some(error);
                        Ok(None)
                    }
                },
                asked => asked,
            }
        }
        _ => Ok(None),
    };
    cancel.check().map_err(|_| store::cancelled())?;
    let stored = chosen.sign_in.as_ref().map(|sign_in| sign_in.stored());
    let who = match (&stored, &bearer) {
        (Some(stored), _) => Claims {
            expires_at: stored.expires_at,
            email: stored.email.clone(),
            account_id: Some(stored.account_id.clone()),
            plan: stored.plan.clone(),
            fedramp: stored.fedramp,
        },
        (None, Some(bearer)) if matches!(access, Access::Tokens(_)) => {
            Claims::of(bearer.token.reveal())
        }
        _ => Claims::default(),
    };
    let shown = |path: &std::path::Path| path.display().to_string();
    Ok(Status {
        mode: access.mode(),
        source: access.describe(),
        base_url: chosen.base_url.clone(),
        file: stored.as_ref().map(|stored| shown(&stored.path)),
        shared_with: stored.as_ref().and_then(|stored| stored.source.as_deref().map(shown)),
        who,
        problem,
        limits,
        now: seconds_now(host),
    })
}

fn ask(
    host: &Host,
    chosen: &Chosen,
    bearer: &Bearer,
    cancel: &Cancel,
) -> Result<Option<Limits>, ModelError> {
    let transport = Http::new(host, USAGE_TIMEOUTS);
    let asked = usage::ask(&transport, &chosen.base_url, bearer, cancel);
    asked.map_err(|mut error| {
        error.message = chosen.access.redact(&error.message);
        error
    })
}

impl Status {
    fn text(&self) -> String {
        let mut lines = vec![format!("auth: {}", self.source)];
        let mut add = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                lines.push(format!("{name}: {value}"));
            }
        };
        add("server", Some(&self.base_url));
        add("account", self.who.account_id.as_deref());
        add("file", self.file.as_deref());
        add("shared with", self.shared_with.as_deref());
        if let Some(at) = self.who.expires_at {
            let time = rfc3339(at);
            let text = match at.checked_sub(self.now) {
                Some(left) => format!("until {time} (for {}), then renewed", span(left)),
                None => format!("ended {time}"),
            };
            let text = match self.mode {
                "chatgpt" => text,
                _ => text.trim_end_matches(", then renewed").to_owned(),
            };
            add("token", Some(&text));
        }
        let limits = match &self.limits {
            Ok(Some(limits)) => Some(limits.describe(self.now)),
            Ok(None) => None,
            Err(error) => Some(format!("could not be asked for: {}", error.message)),
        };
        add("limits", limits.as_deref());
        if self.mode == "none" {
            lines.push(
                "to get one: 'etch auth login' for a ChatGPT subscription, or set OPENAI_API_KEY"
                    .to_owned(),
            );
        }
        lines.join("\n") + "\n"
    }

    fn json(&self) -> Value {
        let (limits, limits_error) = match &self.limits {
            Ok(Some(limits)) => (limits.to_json(self.now), Value::Null),
            Ok(None) => (Value::Null, Value::Null),
            Err(error) => (Value::Null, error.message.as_str().into()),
        };
        json!({
            "mode": self.mode,
            "source": self.source,
            "baseUrl": self.base_url,
            "file": self.file,
            "sharedWith": self.shared_with,
            "email": self.who.email,
            "plan": self.who.plan,
            "accountId": self.who.account_id,
            "expiresAt": self.who.expires_at.map(rfc3339),
            "error": self.problem.as_ref().map(ToString::to_string),
            "limits": limits,
            "limitsError": limits_error,
        })
    }
}

fn rfc3339(seconds: u64) -> String {
    Timestamp(seconds.saturating_mul(1_000_000_000)).to_rfc3339()
}
