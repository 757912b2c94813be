//! What a run was started with beside the files: environment variables, flags, `-c key=value`.

use crate::config::Origin;
use crate::host::Host;

/// One value from outside the files: an environment variable, a flag, or `-c key=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// `table.key`.
    pub key: String,
    /// As typed: a list is `a,b` or `["a", "b"]`.
    pub value: String,
    /// `Origin::Environment` or `Origin::Flag`.
    pub origin: Origin,
}

/// What a run was started with, beside the files.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--no-config`: no file is read.
    pub no_files: bool,
    /// `--trust`: the project's file counts as trusted for this run.
    pub trust_project: bool,
    /// Environment before flags whatever the order here; of two of a kind the later wins.
    pub settings: Vec<Setting>,
}

impl Overrides {
    /// Adds the set variables of `rows`: (`ETCH_…`, key).
    pub fn add_environment(&mut self, host: &Host, rows: &[(&str, &str)]) {
        for (variable, key) in rows {
            if let Some(value) = host.var(variable) {
                self.settings.push(Setting {
                    key: (*key).to_owned(),
                    value: value.trim_end_matches(['\r', '\n']).to_owned(),
                    origin: Origin::Environment((*variable).to_owned()),
                });
            }
        }
    }

    /// Adds a flag: `flag` as typed (`--model`), for messages.
    pub fn add_flag(&mut self, flag: &str, key: &str, value: &str) {
        self.settings.push(Setting {
            key: key.to_owned(),
            value: value.to_owned(),
            origin: Origin::Flag(flag.to_owned()),
        });
    }

    /// Adds the argument of a `-c`: `key=value`. The error is for the person.
    pub fn add_assignment(&mut self, assignment: &str) -> Result<(), String> {
        match assignment.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                let key = key.trim();
                self.add_flag(&format!("-c {key}"), key, value);
                Ok(())
            }
            _ => Err(format!(
                "-c '{assignment}': write it as key=value, for example -c session.max_tool_rounds=8"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_flags_and_assignments_keep_their_names() {
        let host = Host::fixed().with_var("ETCH_MODEL", "m\r\n").with_var("ETCH_EMPTY", "");
        let mut overrides = Overrides::default();
        overrides.add_environment(
            &host,
            &[("ETCH_MODEL", "provider.model"), ("ETCH_EMPTY", "a.b"), ("ETCH_UNSET", "a.c")],
        );
        overrides.add_flag("--model", "provider.model", "n");
        overrides.add_assignment(" session.dir = a=b").unwrap();
        let setting = |key: &str, value: &str, origin| Setting {
            key: key.to_owned(),
            value: value.to_owned(),
            origin,
        };
        let want = [
            setting("provider.model", "m", Origin::Environment("ETCH_MODEL".to_owned())),
            setting("provider.model", "n", Origin::Flag("--model".to_owned())),
            setting("session.dir", " a=b", Origin::Flag("-c session.dir".to_owned())),
        ];
        assert_eq!(overrides.settings, want);
        let want = "-c 'session.dir': write it as key=value, for example -c \
                    session.max_tool_rounds=8";
        assert_eq!(overrides.add_assignment("session.dir"), Err(want.to_owned()));
        assert!(overrides.add_assignment("=x").is_err());
    }
}
