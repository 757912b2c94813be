//! Walking trees with several threads: what the rules let through, in no order.
//!
//! Symlinks are entries and never followed. `.git` and `.etch` do not exist for a walk; hidden and
//! ignored entries are left out unless asked for. Each folder is read once, without a `stat` per
//! entry. A visitor that needs only the first results in path order says so by
//! [`Visit::is_needed`]; whole folders are then left out, and the answer stays the same whatever
//! the threads do.
//!
//! Depth is bounded by [`DEPTH_MAX`] and by the longest path the kernel takes. An entry that cannot
//! be read is noted and the walk goes on.

pub mod first;
mod folder;
mod queue;

use std::cmp::Ordering;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;

pub use crate::sys::dir::Kind;
pub use folder::kind_of;

use crate::sys::dir::Dir;
use crate::workspace::ignore::layers::{Layers, User, UserFiles};
use crate::workspace::open_regular;
use queue::{Job, Queue};

/// Folders deeper than this below a root are not entered.
pub const DEPTH_MAX: usize = 64;
/// More threads than this gain nothing: the kernel's directory locks are the limit.
const THREADS_MAX: usize = 8;
/// So many jobs must wait before another thread is worth its start.
const JOBS_PER_THREAD: usize = 4;
/// Entries that could not be read and are remembered by name.
const UNREADABLE_NAMED_MAX: usize = 100;

/// What a walk covers and when it ends early.
pub struct Options<'a> {
    pub hidden: bool,
    pub ignored: bool,
    /// Where ignore rules count from outside any repository.
    pub base: &'a Path,
    pub user: &'a UserFiles,
    /// Asked before each folder; `true` ends the walk.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// What is done with the entries.
pub trait Visit: Sync {
    /// What one thread gathers.
    type Worker: Send;
    /// Files that one job has at most: few where a visit is long.
    const FILES_PER_JOB: usize;

    fn worker(&self) -> Self::Worker;

    /// Called for each entry, in path order within a folder.
    fn visit(&self, worker: &mut Self::Worker, entry: &Entry<'_>);

    /// Whether anything at or below an absolute path can still count.
    fn is_needed(&self, worker: &mut Self::Worker, path: &[u8]) -> bool;
}

/// A file, folder, link or special file that the rules let through.
pub struct Entry<'a> {
    /// Absolute.
    pub path: &'a [u8],
    /// Where the path relative to the walk's root starts.
    relative_at: usize,
    pub kind: Kind,
    place: Place<'a>,
}

enum Place<'a> {
    In(&'a Dir, &'a CStr),
    /// A root that is itself a file.
    Root,
}

impl Entry<'_> {
    /// Relative to the root that led here; the name alone when the root is a file.
    pub fn relative(&self) -> &[u8] {
        &self.path[self.relative_at..]
    }

    /// Whether it was named as a root and not met on the way.
    pub fn is_root(&self) -> bool {
        matches!(self.place, Place::Root)
    }

    /// Opens a file for reading; never waits.
    pub fn open(&self) -> io::Result<File> {
        match self.place {
            Place::In(dir, name) => dir.open_entry(name),
            Place::Root => open_regular(Path::new(OsStr::from_bytes(self.path)))
                .map(|(file, _)| file)
                .map_err(|error| io::Error::other(error.0)),
        }
    }
}

/// What a walk left out.
#[derive(Debug, Default)]
pub struct Skipped {
    /// Paths that could not be read and why, in path order; the first hundred of each thread.
    pub unreadable: Vec<(Vec<u8>, String)>,
    pub unreadable_count: u64,
    pub too_deep: u64,
    pub hidden: u64,
    pub ignored: u64,
    /// The walk was ended by [`Options::stop`].
    pub stopped: bool,
}

impl Skipped {
    /// Notes an entry that cannot be read.
    pub fn unreadable(&mut self, path: &[u8], error: &io::Error) {
        self.unreadable_count += 1;
        if self.unreadable.len() < UNREADABLE_NAMED_MAX {
            self.unreadable.push((path.to_vec(), crate::workspace::reason(error)));
        }
    }

    pub fn merge(&mut self, other: Skipped) {
        self.unreadable.extend(other.unreadable);
        self.unreadable.sort_by(|a, b| order(&a.0, &b.0));
        self.unreadable_count += other.unreadable_count;
        self.too_deep += other.too_deep;
        self.hidden += other.hidden;
        self.ignored += other.ignored;
        self.stopped |= other.stopped;
    }
}

/// Path order: a folder's entries come right after it, sorted by bytes.
pub fn order(a: &[u8], b: &[u8]) -> Ordering {
    let length = a.len().min(b.len());
    match (0..length).find(|&at| a[at] != b[at]) {
        None => a.len().cmp(&b.len()),
        Some(at) if a[at] == b'/' => Ordering::Less,
        Some(at) if b[at] == b'/' => Ordering::Greater,
        Some(at) => a[at].cmp(&b[at]),
    }
}

/// Visits everything below the roots (canonical paths of folders, or of files, which are visited
/// whatever the rules say). Returns what each thread gathered, and what was left out.
pub fn walk<V: Visit>(
    roots: &[PathBuf],
    options: &Options<'_>,
    visit: &V,
) -> (Vec<V::Worker>, Skipped) {
    let user = if options.ignored { User::default() } else { User::read(options.user) };
    let queue = Queue::new();
    let mut first = visit.worker();
    for root in roots.iter().rev() {
        let path = root.as_os_str().as_bytes();
        if root.is_dir() {
            let layers = match options.ignored {
                true => Layers::default(),
                false => Layers::above(root, options.base, &user),
            };
            let relative_at = path.len() + usize::from(!path.ends_with(b"/"));
            queue.push([Job::Folder { path: path.to_vec(), relative_at, depth: 0, layers }]);
        } else {
            let relative_at = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
            let entry = Entry { path, relative_at, kind: Kind::File, place: Place::Root };
            visit.visit(&mut first, &entry);
        }
    }
    let mut skipped = Skipped::default();
    let mut workers = Vec::new();
    let run = &|worker: V::Worker, grow: &mut dyn FnMut()| {
        folder::Walker::new(visit, options, &user, &queue, worker).run(grow)
    };
    thread::scope(|scope| {
        let threads_max = thread::available_parallelism().map_or(1, |n| n.get().min(THREADS_MAX));
        let mut handles = Vec::new();
        let mut grow = || {
            if handles.len() + 1 < threads_max && queue.waiting() >= JOBS_PER_THREAD {
                handles.push(scope.spawn(move || run(visit.worker(), &mut || {})));
            }
        };
        let (worker, own) = run(first, &mut grow);
        workers.push(worker);
        skipped.merge(own);
        for handle in handles {
            // A panic in a visitor goes on in the caller, as without threads.
            let (worker, theirs) =
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            workers.push(worker);
            skipped.merge(theirs);
        }
    });
    (workers, skipped)
}
