//! Where instruction files may stand, and how one is read without trusting it.
//!
//! A cloned repository decides what its files are: a link to a private key, a pipe that never
//! ends, a gigabyte of noise. All of that is a warning here, never a hang and never a leak.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::host::Host;
use crate::workspace;

/// The directories that are looked at and the limits of what is read there.
pub struct Surroundings {
    /// From the outermost down to the working directory. Below the home directory they start at
    /// home: what lies above it belongs to somebody else.
    pub directories: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    /// The root of the project, else the working directory: files below it must not lead out.
    inner: PathBuf,
    read_outside: bool,
}

/// What became of a file.
pub enum Found {
    Missing,
    Text(String),
    /// Why it is not used; one line for the person.
    Refused(String),
}

impl Surroundings {
    pub fn new(host: &Host, project: Option<&Path>, read_outside: bool) -> Surroundings {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let cwd = real(host.cwd());
        let home = host.home().map(real);
        let inner = project.map_or_else(|| cwd.clone(), real);
        let mut directories: Vec<PathBuf> = Vec::new();
        for directory in cwd.ancestors() {
            directories.push(directory.to_owned());
            if home.as_deref() == Some(directory) {
                break;
            }
        }
        directories.reverse();
        Surroundings { directories, home, inner, read_outside }
    }

    /// Reads `path`, a file in one of the directories or below home, if it is there. More than
    /// `bytes_max` is refused.
    pub fn read(&self, path: &Path, bytes_max: usize) -> Found {
        match self.open(path, bytes_max) {
            Ok(None) => Found::Missing,
            Ok(Some((_, true))) => Found::Refused(format!(
                "{}: larger than {} KiB; it is left out",
                path.display(),
                bytes_max / 1024
            )),
            Ok(Some((bytes, false))) => text_of(path, bytes),
            Err(reason) => Found::Refused(reason),
        }
    }

    /// The first `bytes_max` bytes of `path`, and nothing of what follows them.
    pub fn read_start(&self, path: &Path, bytes_max: usize) -> Found {
        match self.open(path, bytes_max) {
            Ok(None) => Found::Missing,
            Ok(Some((mut bytes, cut))) => {
                if cut && let Err(error) = std::str::from_utf8(&bytes) {
                    bytes.truncate(error.valid_up_to()); // the cut may have split a character
                }
                text_of(path, bytes)
            }
            Err(reason) => Found::Refused(reason),
        }
    }

    /// The bytes, and whether there are more than `bytes_max`.
    fn open(&self, path: &Path, bytes_max: usize) -> Result<Option<(Vec<u8>, bool)>, String> {
        if fs::symlink_metadata(path).is_err_and(|error| {
            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        }) {
            return Ok(None);
        }
        let refused = |reason: String| format!("{}: {reason}; it is left out", path.display());
        workspace::regular_file(path).map_err(|reason| refused(reason.0))?;
        self.check_place(path).map_err(refused)?;
        let (file, _) = workspace::open_regular(path).map_err(|reason| refused(reason.0))?;
        let mut bytes = Vec::new();
        file.take(bytes_max as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| refused(workspace::reason(&error)))?;
        let more = bytes.len() > bytes_max;
        bytes.truncate(bytes_max);
        Ok(Some((bytes, more)))
    }

    /// Refuses a file of the project that is a link out of it, and one that anybody on the
    /// machine could have put into an outer directory such as `/tmp`.
    fn check_place(&self, path: &Path) -> Result<(), String> {
        if !path.starts_with(&self.inner) {
            let everyone = |dir: &Path| {
                fs::metadata(dir).is_ok_and(|found| found.permissions().mode() & 0o002 != 0)
            };
            return match path.parent().filter(|dir| everyone(dir)) {
                Some(_) => Err("everyone may write to its folder".to_owned()),
                None => Ok(()),
            };
        }
        let target = path.canonicalize().map_err(|error| workspace::reason(&error))?;
        if !self.read_outside && !target.starts_with(&self.inner) {
            return Err(format!(
                "leads out of the project to {} (--read-outside allows it)",
                target.display()
            ));
        }
        Ok(())
    }
}

/// Decodes UTF-8 without its byte order mark; binary content is refused.
fn text_of(path: &Path, bytes: Vec<u8>) -> Found {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            Found::Text(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
        }
        _ => Found::Refused(format!("{}: not UTF-8 text; it is left out", path.display())),
    }
}
