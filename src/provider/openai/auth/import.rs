//! Takes over the sign-in of the Codex CLI, in place.
//!
//! Its refresh token is good for one use and belongs to both programs: a copy would end one of the
//! two sign-ins at the first renewal. So the tokens stay in the one file that both read, and etch
//! writes what it renews back there, in that file's own form.

use std::path::{Path, PathBuf};

use super::file::{self, Place, Stored};
use super::{file_error, store};
use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{ErrorKind, ModelError};

const HINT: &str = "sign in with it first, or on your own: etch auth login";

/// Where the Codex CLI keeps its sign-in.
fn usual_place(host: &Host) -> Option<PathBuf> {
    match host.var("CODEX_HOME") {
        Some(dir) => Some(host.cwd().join(dir).join("auth.json")),
        None => Some(host.home()?.join(".codex/auth.json")),
    }
}

/// Points the sign-in at `place` to the tokens in `given`, or in the Codex CLI's usual file.
pub fn import(
    host: &Host,
    given: Option<&Path>,
    place: &Place,
    cancel: &Cancel,
) -> Result<Stored, ModelError> {
    let path = match given.map(|given| host.cwd().join(given)) {
        Some(folder) if folder.is_dir() => folder.join("auth.json"),
        Some(path) => path,
        None => usual_place(host).ok_or_else(|| {
            ModelError::new(ErrorKind::Auth, "HOME is not set")
                .with_hint("name the file: etch auth import PATH")
        })?,
    };
    // Links are followed once, now: the file that is written back to is a real one.
    let path = path.canonicalize().map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound if given.is_none() => {
                "there is no sign-in of the Codex CLI (it may keep it in a keyring)".to_owned()
            }
            _ => format!("cannot be read: {}", crate::workspace::reason(&error)),
        };
        file_error(&path, &why, HINT)
    })?;
    if place.path.canonicalize().is_ok_and(|own| own == path) {
        return Err(file_error(&path, "it is etch's own sign-in", "nothing to import"));
    }
    file::read_foreign(&path)?.ok_or_else(|| file_error(&path, "it is gone", HINT))?;
    let lock = store::lock(&place.path, cancel)?;
    file::save_source(place, &path, &lock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::openai::auth::file::tests::{Dir, token};
    use serde_json::json;

    #[test]
    fn the_usual_file_a_folder_and_a_path_are_found() {
        let dir = Dir::new("import");
        std::fs::create_dir_all(dir.0.join(".codex")).unwrap();
        let place = Place {
            path: dir.0.join("own/openai.json"),
            issuer: "https://i".into(),
            client_id: "app".into(),
            codex_base_url: "https://c".into(),
        };
        let host = Host::fixed().with_home(&dir.0).with_cwd(&dir.0);
        let run = |host: &Host, given: Option<&str>| {
            import(host, given.map(Path::new), &place, &Cancel::new())
                .map(|stored| stored.source.unwrap())
                .map_err(|error| error.to_string())
        };
        let error = run(&host, None).unwrap_err();
        assert!(
            error.contains(".codex/auth.json: there is no sign-in of the Codex CLI"),
            "{error}"
        );
        let document = json!({"tokens": {"access_token": token("acc", 9, "a")}});
        let path = dir.write(".codex/auth.json", &document);
        std::os::unix::fs::symlink(&path, dir.0.join("link.json")).unwrap();
        for given in [None, Some(".codex"), Some(".codex/auth.json"), Some("link.json")] {
            assert_eq!(run(&host, given).as_deref(), Ok(&*path), "{given:?}");
        }
        let elsewhere = host.with_home("/nowhere").with_var("CODEX_HOME", ".codex");
        assert_eq!(run(&elsewhere, None).as_deref(), Ok(&*path));
        dir.write(".codex/auth.json", &json!({"OPENAI_API_KEY": "sk-ABCDEF"}));
        let error = run(&elsewhere, None).unwrap_err();
        assert!(error.contains("holds an API key") && !error.contains("ABCDEF"), "{error}");
        assert!(run(&elsewhere, Some("own/openai.json")).unwrap_err().contains("etch's own"));
    }
}
