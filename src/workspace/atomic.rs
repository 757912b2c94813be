//! Writing a file so that whoever looks, whenever, finds the old content or the new one.
//!
//! The content goes to a new file in the same folder, gets the old one's mode and owner, and is
//! renamed over it. A process that is killed leaves at most that temporary file: its name begins
//! with [`TEMP_PREFIX`], so it is hidden, and a later write in the folder removes it once it is
//! [`STALE_SECS`] old and no living process holds its lock.
//!
//! Four kinds of files are written in place instead, because a rename would break what they are:
//! one with several hard links (the group stays one file), one whose owner we may not set, one in
//! a folder where we may not create files, and a mount point. In place means: first a complete
//! copy of the new content beside it ([`KEEP_PREFIX`], where the folder allows that), then the
//! file itself, then the copy goes. A kill between leaves the copy, and nothing removes it.
//!
//! The last component is never followed as a link: paths come resolved. Extended attributes and
//! access lists are not carried over. Nothing is synced to the disk unless asked for: against a
//! kill the order above is enough, and a sync can block for seconds behind other writers.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::sys;
use crate::workspace::identity::FileId;
use crate::workspace::reason;

/// Names of files that are being written.
pub const TEMP_PREFIX: &str = ".etch-tmp-";
/// Names of complete copies that stand by while a file is written in place.
pub const KEEP_PREFIX: &str = ".etch-keep-";

/// How old a left-over temporary file is before it is removed.
const STALE_SECS: i64 = 600;
/// Folders with more entries than this are not searched for left-overs.
const SWEEP_ENTRIES_MAX: usize = 2_000;
/// Tries to find a free random name; a second one is needed about never.
const NAME_TRIES_MAX: usize = 8;

/// What must be true of the file for the write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expect {
    #[default]
    Anything,
    /// There is no such file.
    Absent,
    /// The file is still in this state.
    Same(FileId),
}

#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub expect: Expect,
    /// The mode of a file that does not exist yet, before the umask.
    pub new_mode: u32,
    /// Waits until the content is on the disk before it takes the name.
    pub sync: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { expect: Expect::Anything, new_mode: 0o666, sync: false }
    }
}

/// How the content got there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Created,
    Replaced,
    InPlace(InPlace),
}

/// Why a file was not replaced by a rename.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InPlace {
    HardLinks(u64),
    Owner,
    Folder,
    MountPoint,
}

/// A finished write.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    pub how: How,
    /// The state that the file has now.
    pub id: FileId,
}

/// Why a write did not happen. Except for [`WriteError::HalfWritten`] the file is as it was.
#[derive(Debug)]
pub enum WriteError {
    /// It is not in the expected state any more.
    Changed,
    /// It exists although it should not.
    Exists,
    /// It is a link, a folder, a pipe, …
    NotRegular(&'static str),
    ReadOnly {
        mode: u32,
    },
    Io {
        step: &'static str,
        source: io::Error,
    },
    /// Writing in place failed midway; `copy` holds the whole new content.
    HalfWritten {
        copy: Option<PathBuf>,
        source: io::Error,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Changed => f.write_str("it changed meanwhile; read it again"),
            WriteError::Exists => f.write_str("it was created meanwhile; read it first"),
            WriteError::NotRegular(what) => write!(f, "not a regular file ({what})"),
            WriteError::ReadOnly { mode } => write!(
                f,
                "it may not be written (mode {mode:04o}); change its mode first if that is meant"
            ),
            WriteError::Io { step, source } => {
                write!(f, "cannot {step}: {}; nothing was changed", reason(source))
            }
            WriteError::HalfWritten { copy, source } => {
                write!(f, "it is half-written: {}; ", reason(source))?;
                match copy {
                    Some(copy) => write!(f, "the whole new content is in {}", copy.display()),
                    None => f.write_str("write it again when the cause is gone"),
                }
            }
        }
    }
}

fn io_error(step: &'static str) -> impl FnOnce(io::Error) -> WriteError {
    move |source| WriteError::Io { step, source }
}

/// Gives `path` the content, creating folders above it as needed. Blocks for as long as the file
/// system takes; a crash of etch at any moment keeps the promise at the top of this file.
pub fn write(path: &Path, content: &[u8], options: &Options) -> Result<Written, WriteError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let Some(old) = inspect(path, options.expect)? else {
        return create(path, folder, content, options);
    };
    refuse_read_only(path, &old)?;
    if old.nlink() > 1 {
        return write_in_place(path, folder, content, &old, InPlace::HardLinks(old.nlink()));
    }
    let mut temp = match Temp::create(folder, TEMP_PREFIX, 0o600) {
        Ok(temp) => temp,
        Err(error) if is_refusal(&error) => {
            return write_in_place(path, folder, content, &old, InPlace::Folder);
        }
        Err(error) => return Err(io_error("create a temporary file beside it")(error)),
    };
    temp.fill(content, options.sync)?;
    let mine = temp.metadata().map_err(io_error("inspect the temporary file"))?;
    let (user, group) = (old.uid(), old.gid());
    let owned = (mine.uid(), mine.gid()) == (user, group)
        || fchown(&temp.file, Some(user), Some(group)).is_ok();
    if !owned {
        drop(temp);
        return write_in_place(path, folder, content, &old, InPlace::Owner);
    }
    // After the owner: changing that clears the set-id bits.
    let mode = Permissions::from_mode(old.mode() & 0o7777);
    temp.file.set_permissions(mode).map_err(io_error("set the mode of the new file"))?;
    inspect(path, options.expect)?;
    match temp.rename(path) {
        Ok(id) => Ok(Written { how: How::Replaced, id }),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            write_in_place(path, folder, content, &old, InPlace::MountPoint)
        }
        // A sticky folder: others' files there may be written but not replaced.
        Err(error) if is_refusal(&error) => {
            write_in_place(path, folder, content, &old, InPlace::Folder)
        }
        Err(error) => Err(io_error("replace the old file")(error)),
    }
}

/// What stands at `path`, if that is what is expected.
fn inspect(path: &Path, expect: Expect) -> Result<Option<Metadata>, WriteError> {
    let old = match fs::symlink_metadata(path) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match expect {
                Expect::Same(_) => Err(WriteError::Changed),
                Expect::Anything | Expect::Absent => Ok(None),
            };
        }
        Err(error) => return Err(io_error("look at it")(error)),
    };
    let kind = old.file_type();
    if !kind.is_file() {
        let what = match () {
            () if kind.is_symlink() => "link",
            () if kind.is_dir() => "directory",
            () => "pipe, socket or device",
        };
        return Err(WriteError::NotRegular(what));
    }
    match expect {
        Expect::Absent => Err(WriteError::Exists),
        Expect::Same(id) if id != FileId::of(&old) => Err(WriteError::Changed),
        Expect::Same(_) | Expect::Anything => Ok(Some(old)),
    }
}

/// A rename would replace a file that its owner made read-only; that wish is respected.
fn refuse_read_only(path: &Path, old: &Metadata) -> Result<(), WriteError> {
    match open_to_write(path) {
        Ok(_) => Ok(()),
        Err(error) if is_refusal(&error) => Err(WriteError::ReadOnly { mode: old.mode() & 0o7777 }),
        // A running program cannot be opened for writing, but replaced.
        Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => Ok(()),
        Err(error) => Err(io_error("open it")(error)),
    }
}

fn open_to_write(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().write(true).custom_flags(flags).open(path)
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn create(
    path: &Path,
    folder: &Path,
    content: &[u8],
    options: &Options,
) -> Result<Written, WriteError> {
    fs::create_dir_all(folder).map_err(io_error("create the folder it is in"))?;
    let mut temp = Temp::create(folder, TEMP_PREFIX, options.new_mode)
        .map_err(io_error("create a file in its folder"))?;
    temp.fill(content, options.sync)?;
    inspect(path, options.expect)?;
    let id = temp.rename(path).map_err(io_error("give the new file its name"))?;
    Ok(Written { how: How::Created, id })
}

fn write_in_place(
    path: &Path,
    folder: &Path,
    content: &[u8],
    old: &Metadata,
    why: InPlace,
) -> Result<Written, WriteError> {
    // Where the folder refuses new files there is no copy.
    let mut copy = Temp::create(folder, KEEP_PREFIX, 0o600).ok();
    if let Some(copy) = &mut copy {
        copy.fill(content, true)?;
    }
    let mut file = open_to_write(path).map_err(io_error("open it"))?;
    let now = file.metadata().map_err(io_error("look at it"))?;
    if FileId::of(&now) != FileId::of(old) {
        return Err(WriteError::Changed);
    }
    let written = file
        .write_all(content)
        .and_then(|()| file.set_len(content.len() as u64))
        .and_then(|()| file.metadata());
    match written {
        Ok(metadata) => Ok(Written { how: How::InPlace(why), id: FileId::of(&metadata) }),
        Err(source) => {
            Err(WriteError::HalfWritten { copy: copy.map(|mut copy| copy.keep()), source })
        }
    }
}

/// A file under a random hidden name, removed when dropped unless it got its real name.
struct Temp {
    file: File,
    path: PathBuf,
    is_ours: bool,
}

impl Temp {
    fn create(folder: &Path, prefix: &str, mode: u32) -> io::Result<Temp> {
        let mut tries = 0;
        loop {
            let path = folder.join(random_name(prefix)?);
            let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
            tries += 1;
            match made {
                Ok(file) => {
                    // Says to others that its writer lives; a file system without locks is fine.
                    let _ = file.try_lock();
                    sweep(folder, &file);
                    return Ok(Temp { file, path, is_ours: true });
                }
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && tries < NAME_TRIES_MAX => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn fill(&mut self, content: &[u8], sync: bool) -> Result<(), WriteError> {
        self.file.write_all(content).map_err(io_error("write the new content"))?;
        if sync {
            self.file.sync_data().map_err(io_error("write the new content to the disk"))?;
        }
        Ok(())
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Takes the name `path`; the state afterwards includes what the rename changed.
    fn rename(mut self, path: &Path) -> io::Result<FileId> {
        fs::rename(&self.path, path)?;
        self.is_ours = false;
        Ok(FileId::of(&self.metadata()?))
    }

    fn keep(&mut self) -> PathBuf {
        self.is_ours = false;
        self.path.clone()
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Not from the host's counted ids: the name never shows in a result, and it must be one that
/// nobody in a shared folder can guess.
fn random_name(prefix: &str) -> io::Result<OsString> {
    let mut bytes = [0; 8];
    sys::random_bytes(&mut bytes)?;
    Ok(format!("{prefix}{:016x}", u64::from_ne_bytes(bytes)).into())
}

/// Removes temporary files of writers that were killed. `own` tells the folder's present time;
/// whatever fails is left for the next write.
fn sweep(folder: &Path, own: &File) {
    let (Ok(now), Ok(entries)) = (own.metadata(), fs::read_dir(folder)) else { return };
    for entry in entries.take(SWEEP_ENTRIES_MAX).flatten() {
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(TEMP_PREFIX.as_bytes()) {
            continue;
        }
        let stale =
            |metadata: &Metadata| metadata.is_file() && metadata.mtime() + STALE_SECS < now.mtime();
        if !entry.metadata().is_ok_and(|metadata| stale(&metadata)) {
            continue;
        }
        // A writer that was only stopped still holds its lock.
        let path = entry.path();
        if open_to_write(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A folder of this test's own, removed at its end.
    struct Dir(PathBuf);

    impl Dir {
        fn new() -> Dir {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("etch-atomic-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Dir(path)
        }

        fn file(&self, name: &str, content: &str, mode: u32) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> =
                names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn put(path: &Path, content: &str) -> Result<How, String> {
        put_if(path, content, Expect::Anything)
    }

    fn put_if(path: &Path, content: &str, expect: Expect) -> Result<How, String> {
        let options = Options { expect, ..Options::default() };
        let written = write(path, content.as_bytes(), &options).map_err(|e| e.to_string())?;
        assert_eq!(written.id, FileId::of(&fs::metadata(path).unwrap()), "the state told is true");
        Ok(written.how)
    }

    fn state(path: &Path) -> (String, u32, u64) {
        let metadata = fs::metadata(path).unwrap();
        (fs::read_to_string(path).unwrap(), metadata.mode() & 0o7777, metadata.nlink())
    }

    #[test]
    fn new_files_get_their_folders_and_the_usual_mode() {
        let dir = Dir::new();
        let path = dir.0.join("a/b/new");
        assert_eq!(put(&path, "x"), Ok(How::Created));
        let usual = dir.file("usual", "", 0o600);
        fs::remove_file(&usual).unwrap();
        File::create(&usual).unwrap();
        assert_eq!(state(&path), ("x".to_owned(), state(&usual).1, 1));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        assert_eq!(
            put(&usual.join("below"), "x"),
            Err("cannot look at it: not a directory; nothing was changed".to_owned())
        );
        let private = Options { new_mode: 0o600, sync: true, ..Options::default() };
        write(&dir.0.join("private"), b"x", &private).unwrap();
        assert_eq!(state(&dir.0.join("private")).1, 0o600);
    }

    #[test]
    fn every_mode_is_kept_and_nothing_is_left_beside() {
        let dir = Dir::new();
        for mode in [0o755, 0o600, 0o644, 0o4711, 0o2755, 0o666, 0o640] {
            let path = dir.file("f", "old", mode);
            let mode = state(&path).1;
            assert_eq!(put(&path, "new content"), Ok(How::Replaced));
            assert_eq!(state(&path), ("new content".to_owned(), mode, 1));
            assert_eq!(dir.names(), ["f"]);
            fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn hard_links_stay_one_file() {
        let dir = Dir::new();
        let path = dir.file("one", "a long old content", 0o640);
        let other = dir.0.join("two");
        fs::hard_link(&path, &other).unwrap();
        assert_eq!(put(&path, "new"), Ok(How::InPlace(InPlace::HardLinks(2))));
        assert_eq!(state(&other), ("new".to_owned(), 0o640, 2));
        assert_eq!(dir.names(), ["one", "two"]);
    }

    #[test]
    fn what_is_no_regular_file_is_left_alone() {
        let dir = Dir::new();
        let target = dir.file("target", "orig", 0o644);
        let link = dir.0.join("link");
        symlink(&target, &link).unwrap();
        let dangling = dir.0.join("dangling");
        symlink("nowhere", &dangling).unwrap();
        for path in [&link, &dangling] {
            assert_eq!(put(path, "x"), Err("not a regular file (link)".to_owned()));
            assert!(fs::symlink_metadata(path).unwrap().is_symlink());
        }
        assert_eq!(put(&dir.0, "x"), Err("not a regular file (directory)".to_owned()));
        assert_eq!(state(&target).0, "orig");
        let special = put(Path::new("/dev/null"), "x");
        assert_eq!(special, Err("not a regular file (pipe, socket or device)".to_owned()));
    }

    #[test]
    fn only_the_expected_state_is_replaced() {
        let dir = Dir::new();
        let path = dir.file("f", "one", 0o644);
        let id = |path: &Path| FileId::of(&fs::metadata(path).unwrap());
        let seen = id(&path);
        assert_eq!(put_if(&path, "two", Expect::Same(seen)), Ok(How::Replaced));
        let gone = Err("it changed meanwhile; read it again".to_owned());
        assert_eq!(put_if(&path, "three", Expect::Same(seen)), gone);
        let exists = Err("it was created meanwhile; read it first".to_owned());
        assert_eq!(put_if(&path, "three", Expect::Absent), exists);
        assert_eq!(state(&path).0, "two");
        let seen = id(&path);
        fs::remove_file(&path).unwrap();
        assert_eq!(put_if(&path, "three", Expect::Same(seen)), gone);
        assert_eq!(put_if(&path, "three", Expect::Absent), Ok(How::Created));
        assert_eq!(dir.names(), ["f"]);
    }

    #[test]
    fn left_overs_of_killed_writers_go_once_they_are_stale() {
        let dir = Dir::new();
        let age = |path: &Path, secs: u64| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            file.set_modified(now - std::time::Duration::from_secs(secs)).unwrap();
            file
        };
        age(&dir.file(".etch-tmp-stale", "", 0o600), 3_600);
        age(&dir.file(".etch-tmp-young", "", 0o600), 60);
        let held = age(&dir.file(".etch-tmp-held", "", 0o600), 3_600);
        held.lock().unwrap();
        age(&dir.file(".etch-keep-copy", "", 0o600), 3_600);
        age(&dir.file("other", "", 0o600), 3_600);
        assert_eq!(put(&dir.0.join("f"), "x"), Ok(How::Created));
        let left = [".etch-keep-copy", ".etch-tmp-held", ".etch-tmp-young", "f", "other"];
        assert_eq!(dir.names(), left);
    }
}
