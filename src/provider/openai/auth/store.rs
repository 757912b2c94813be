//! Files with secrets: read without following links, locked between processes, replaced whole.
//!
//! The lock is on an empty file beside the secret one (`NAME.lock`), held by the kernel for as
//! long as its owner lives. Room for new content is taken on the disk before the content is known
//! ([`Slot`]): what an issuer gives only once must not be lost to a full disk.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, after, bounded, select};

use super::file_error;
use crate::cancel::Cancel;
use crate::model::{ErrorKind, ModelError};
use crate::text::human_bytes;
use crate::workspace::reason;

/// A credential file has some kilobytes.
const BYTES_MAX: u64 = 1 << 20;
/// A holder asks an issuer, which is bounded; this is more than that takes.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(90);
const NO_FOLLOW: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Refuses a link in the place of the file or of its folder: the secret would land elsewhere.
fn refuse_links(path: &Path) -> Result<(), ModelError> {
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    for place in [Some(path), path.parent()].into_iter().flatten() {
        if is_link(place) {
            return Err(file_error(
                place,
                "is a link, and credentials are not kept behind links",
                "set auth.file to the place that it leads to",
            ));
        }
    }
    Ok(())
}

/// The file's content and whether others than its owner may read it; `None` when there is none.
pub fn read(path: &Path) -> Result<Option<(String, bool)>, ModelError> {
    refuse_links(path)?;
    let unreadable = |error: &io::Error| {
        file_error(path, &format!("cannot be read: {}", reason(error)), "check who owns it")
    };
    let file = match OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err(file_error(path, "is not a regular file", "set auth.file to another place"));
    }
    let is_open = metadata.permissions().mode() & 0o077 != 0;
    let mut text = String::new();
    if metadata.len() > BYTES_MAX {
        let text = format!("has {}, and is no sign-in", human_bytes(metadata.len()));
        return Err(file_error(path, &text, "a new sign-in replaces it: etch auth login"));
    }
    match file.take(BYTES_MAX).read_to_string(&mut text) {
        Ok(_) => Ok(Some((text, is_open))),
        Err(error) => Err(unreadable(&error)),
    }
}

/// Lets nobody but the owner read the file.
pub fn close_to_others(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o600))
}

/// Makes the folder of `path`, open to its owner alone. One that is there stays as it is, but for
/// the folder that etch itself keeps credentials in.
fn make_folder(path: &Path) -> Result<(), ModelError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| {
        file_error(folder, &format!("cannot be made: {}", reason(&error)), "check its parent")
    })?;
    let mode = fs::metadata(folder).map_or(0o700, |metadata| metadata.permissions().mode());
    if folder.ends_with(".etch/auth") && mode & 0o077 != 0 {
        // Not being the owner is found out by the next write.
        let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    }
    Ok(())
}

/// The exclusive right to change a file; given back when dropped, or when the process ends.
pub struct Lock {
    file: File,
    place: PathBuf,
}

impl Lock {
    /// Gives it back and leaves nothing behind: for when there is no file (any more).
    pub fn remove(self) {
        let _ = fs::remove_file(&self.place);
    }

    /// Whether the file that is locked still has its name, rather than one that was removed.
    fn is_current(&self) -> bool {
        let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        match (self.file.metadata(), fs::symlink_metadata(&self.place)) {
            (Ok(mine), Ok(named)) => id(mine) == id(named),
            _ => false,
        }
    }
}

/// Waits until no other process holds the lock, at most for some bound; cancelling ends the wait.
pub fn lock(path: &Path, cancel: &Cancel) -> Result<Lock, ModelError> {
    refuse_links(path)?;
    make_folder(path)?;
    let deadline = after(LOCK_WAIT_MAX);
    loop {
        let lock = lock_once(beside(path, ".lock"), &deadline, cancel)?;
        if lock.is_current() {
            return Ok(lock);
        }
    }
}

fn lock_once(
    place: PathBuf,
    deadline: &Receiver<Instant>,
    cancel: &Cancel,
) -> Result<Lock, ModelError> {
    let shown = place.display().to_string();
    let failed = |error: io::Error| {
        let text = format!("{shown}: cannot be locked: {}", reason(&error));
        ModelError::new(ErrorKind::Auth, text)
            .with_hint("its folder must be writable, so that new tokens can be kept")
    };
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_FOLLOW);
    let file = options.open(&place).map_err(failed)?;
    let lock = Lock { file, place };
    match lock.file.try_lock() {
        Ok(()) => return Ok(lock),
        Err(TryLockError::WouldBlock) => {}
        // Some network file systems have no locks; refusing to work there helps nobody.
        Err(TryLockError::Error(_)) => return Ok(lock),
    }
    // A blocking wait cannot be cancelled: it goes on in a thread that ends with the holder, and
    // whose lock is dropped when nobody takes it any more.
    let (sender, receiver) = bounded(1);
    let wait = move || {
        if lock.file.lock().is_ok() {
            let _ = sender.send(lock);
        }
    };
    let thread = std::thread::Builder::new().name("auth-lock".to_owned()).stack_size(64 * 1024);
    thread.spawn(wait).map_err(failed)?;
    select! {
        recv(receiver) -> lock => lock.map_err(|_| failed(io::Error::other("the wait failed"))),
        recv(cancel.channel()) -> _ => Err(cancelled()),
        recv(deadline) -> _ => {
            let seconds = LOCK_WAIT_MAX.as_secs();
            let text = format!("{shown}: another etch has held it for {seconds} s");
            let error = ModelError::new(ErrorKind::Network, text);
            Err(error.with_hint("end that process, then try again"))
        }
    }
}

pub fn cancelled() -> ModelError {
    ModelError::new(ErrorKind::Cancelled, "cancelled")
}

/// Room on the disk for new content of a file. Whoever has one holds the file's [`Lock`].
pub struct Slot<'p> {
    path: &'p Path,
    temp: PathBuf,
    file: File,
    is_used: bool,
}

/// More than what new tokens are longer than old ones.
const SPARE_BYTES: usize = 16 << 10;

impl<'p> Slot<'p> {
    pub fn reserve(path: &'p Path, bytes: usize) -> Result<Slot<'p>, ModelError> {
        refuse_links(path)?;
        make_folder(path)?;
        let temp = beside(path, ".new");
        // Of a writer that was killed: nobody else writes while this process has the lock.
        let _ = fs::remove_file(&temp);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).custom_flags(NO_FOLLOW);
        let made = options.open(&temp).and_then(|mut file| {
            file.write_all(&vec![b' '; bytes + SPARE_BYTES])?;
            file.rewind()?;
            Ok(file)
        });
        match made {
            Ok(file) => Ok(Slot { path, temp, file, is_used: false }),
            Err(error) => {
                let _ = fs::remove_file(&temp);
                Err(unwritable(path, &error))
            }
        }
    }

    /// Replaces the file; afterwards the content is on the disk under its name.
    pub fn fill(mut self, content: &str) -> Result<(), ModelError> {
        let written = self
            .file
            .write_all(content.as_bytes())
            .and_then(|()| self.file.set_len(content.len() as u64))
            .and_then(|()| self.file.sync_all())
            .and_then(|()| fs::rename(&self.temp, self.path));
        written.map_err(|error| unwritable(self.path, &error))?;
        self.is_used = true;
        // The name is safe without it on all usual file systems; a folder may refuse it.
        if let Some(folder) = self.path.parent().and_then(|folder| File::open(folder).ok()) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

fn unwritable(path: &Path, error: &io::Error) -> ModelError {
    let text = format!("cannot be written: {}", reason(error));
    file_error(path, &text, "make room, or make its folder writable")
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            let _ = fs::remove_file(&self.temp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Reason;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn dir() -> PathBuf {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("etch-auth-store-{}-{count}", std::process::id());
        let path = std::env::temp_dir().canonicalize().unwrap().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn content_is_replaced_whole_and_for_the_owner_alone() {
        let dir = dir();
        let path = dir.join(".etch/auth/openai.json");
        assert_eq!(read(&path).unwrap(), None);
        for content in ["first and long", "second"] {
            let lock = lock(&path, &Cancel::new()).unwrap();
            Slot::reserve(&path, content.len()).unwrap().fill(content).unwrap();
            drop(lock);
            assert_eq!(read(&path).unwrap(), Some((content.to_owned(), false)));
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        }
        // A slot that nobody fills, and one that a killed writer left.
        drop(Slot::reserve(&path, 1).unwrap());
        fs::write(beside(&path, ".new"), "left").unwrap();
        Slot::reserve(&path, 1).unwrap().fill("third").unwrap();
        assert_eq!(read(&path).unwrap().unwrap().0, "third");
        let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(names, 2, "the file and its lock");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(read(&path).unwrap().unwrap().1);
        close_to_others(&path).unwrap();
        assert!(!read(&path).unwrap().unwrap().1);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn links_and_other_kinds_are_refused() {
        let dir = dir();
        let target = dir.join("target");
        fs::write(&target, "mine").unwrap();
        let link = dir.join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(read(&link).unwrap_err().message.contains("is a link"));
        assert!(Slot::reserve(&link, 1).is_err());
        let folder = dir.join("folder");
        std::os::unix::fs::symlink(&dir, &folder).unwrap();
        assert!(
            read(&folder.join("target")).is_err()
                && lock(&folder.join("x"), &Cancel::new()).is_err()
        );
        assert!(read(&dir).unwrap_err().message.contains("is not a regular file"));
        let large = dir.join("large");
        File::create(&large).unwrap().set_len(BYTES_MAX + 1).unwrap();
        let error = read(&large).unwrap_err();
        assert!(error.message.ends_with("large: has 1.0MB, and is no sign-in"), "{error}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_lock_is_waited_for_and_the_wait_is_cancelled() {
        let dir = dir();
        let path = dir.join("x");
        let held = lock(&path, &Cancel::new()).unwrap();
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| lock(&path, &cancel).err().map(|error| error.kind));
            cancel.cancel(Reason::User);
            assert_eq!(waiter.join().unwrap(), Some(ErrorKind::Cancelled));
            let next = scope.spawn(|| lock(&path, &Cancel::new()).is_ok());
            drop(held);
            assert!(next.join().unwrap());
        });
        // The waiter that was given up gave its lock back. One that is removed serves nobody.
        let held = lock(&path, &Cancel::new()).unwrap();
        std::thread::scope(|scope| {
            let next = scope.spawn(|| lock(&path, &Cancel::new()).unwrap());
            held.remove();
            let next = next.join().unwrap();
            assert!(next.is_current());
            next.remove();
        });
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        fs::remove_dir_all(dir).unwrap();
    }
}
