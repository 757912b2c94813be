//! Every secret that must not reach the model: those of this run, and those in the stored sign-in.
//!
//! The file is looked at again whenever it changed, so that tokens which another process renewed
//! are known here as well. A secret once seen stays known.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::file;
use crate::provider::openai::access::Access;
use crate::provider::secret::{Secret, redact_all};
use crate::workspace::identity::FileId;

pub struct Vault {
    access: Access,
    path: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    secrets: Vec<Secret>,
    /// The state of the file, and of the file that it points to, when they were read.
    seen: Option<(FileId, Option<(PathBuf, FileId)>)>,
}

impl Vault {
    /// `secrets`: keys of the environment; `path`: where a sign-in is kept.
    pub fn new(access: Access, secrets: Vec<Secret>, path: Option<PathBuf>) -> Vault {
        Vault { access, path, known: Mutex::new(Known { secrets, seen: None }) }
    }

    /// `text` without any of them.
    pub fn redact(&self, text: &str) -> String {
        // Held over the look at one small file; the next call waits for what it finds.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.look(&mut known);
        // All that is whole first: what tokens have in common is no piece of one then.
        let text = known.secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text));
        redact_all(known.secrets.iter(), &self.access.redact(&text))
    }

    fn look(&self, known: &mut Known) {
        let id = |path: &PathBuf| Some(FileId::of(&std::fs::metadata(path).ok()?));
        let Some(path) = &self.path else { return };
        let Some(own) = id(path) else { return };
        if let Some((seen, source)) = &known.seen
            && *seen == own
            && source.as_ref().is_none_or(|(path, seen)| id(path).as_ref() == Some(seen))
        {
            return;
        }
        // A file that cannot be used is nobody's sign-in; a run that needs it says so.
        let Ok(Some(stored)) = file::read(path) else { return };
        for secret in stored
            .secrets()
            .filter(|secret| !known.secrets.contains(secret))
            .cloned()
            .collect::<Vec<_>>()
        {
            known.secrets.push(secret);
        }
        let source = stored.source.and_then(|path| Some((path.clone(), id(&path)?)));
        known.seen = Some((own, source));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::openai::auth::file::tests::{Dir, token};
    use serde_json::json;

    #[test]
    fn old_and_new_tokens_of_the_file_and_keys_are_removed() {
        let dir = Dir::new("vault");
        let path = dir.0.join("openai.json");
        let vault =
            Vault::new(Access::None, vec![Secret::new("sk-test-ABCDEF")], Some(path.clone()));
        assert_eq!(vault.redact("a sk-test-ABCDEF"), "a [redacted]");
        for turn in ["1", "2"] {
            let access = token("acc", 9, turn);
            let refresh = format!("rt_token_{turn}");
            let document = json!({"tokens": {"access_token": access, "refresh_token": refresh}});
            dir.write("openai.json", &document);
            assert_eq!(vault.redact(&format!("{access} {refresh}")), "[redacted] [redacted]");
        }
        assert_eq!(vault.redact("rt_token_1"), "[redacted]");
        std::fs::write(&path, "no JSON any more").unwrap();
        assert_eq!(vault.redact("rt_token_2 x"), "[redacted] x");
    }
}
