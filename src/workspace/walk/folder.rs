//! One thread of a walk: reads a folder, applies the rules, visits, hands on what is left.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::sys::dir::{Dir, Kind};
use crate::workspace::ignore::Verdict;
use crate::workspace::ignore::layers::{Has, Layers, User};
use crate::workspace::is_internal;
use crate::workspace::walk::queue::{Job, OpenFolder, Queue};
use crate::workspace::walk::{DEPTH_MAX, Entry, Options, Place, Skipped, Visit};

/// Most folders fit; each thread has one.
const ENTRIES_BYTES: usize = 32 * 1024;

/// Names of a folder in one piece of memory, each with its NUL.
#[derive(Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
    items: Vec<Item>,
}

#[derive(Clone, Copy)]
struct Item {
    start: usize,
    /// Behind the NUL.
    end: usize,
    kind: Kind,
}

impl Names {
    fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
    }

    fn push(&mut self, name: &CStr, kind: Kind) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name.to_bytes_with_nul());
        self.items.push(Item { start, end: self.bytes.len(), kind });
    }

    fn name(&self, item: Item) -> &[u8] {
        &self.bytes[item.start..item.end - 1]
    }

    fn c_name(&self, item: Item) -> &CStr {
        CStr::from_bytes_with_nul(&self.bytes[item.start..item.end]).unwrap_or_default()
    }

    /// A part of the items with memory of their own.
    fn part(&self, items: &[Item]) -> Names {
        let mut part = Names::default();
        for item in items {
            part.push(self.c_name(*item), item.kind);
        }
        part
    }
}

pub(super) struct Walker<'a, V: Visit> {
    visit: &'a V,
    options: &'a Options<'a>,
    user: &'a User,
    queue: &'a Queue,
    worker: V::Worker,
    skipped: Skipped,
    entries: Vec<u8>,
    names: Names,
    /// The path of the entry at hand.
    path: Vec<u8>,
}

impl<'a, V: Visit> Walker<'a, V> {
    pub fn new(
        visit: &'a V,
        options: &'a Options<'a>,
        user: &'a User,
        queue: &'a Queue,
        worker: V::Worker,
    ) -> Walker<'a, V> {
        Walker {
            visit,
            options,
            user,
            queue,
            worker,
            skipped: Skipped::default(),
            entries: vec![0; ENTRIES_BYTES],
            names: Names::default(),
            path: Vec::new(),
        }
    }

    /// Works until nothing is left; `grow` is asked between jobs whether more threads should.
    pub fn run(mut self, grow: &mut dyn FnMut()) -> (V::Worker, Skipped) {
        let _guard = CloseOnPanic(self.queue);
        let mut finished = false;
        while let Some(job) = self.queue.next(finished) {
            finished = true;
            if (self.options.stop)() {
                self.skipped.stopped = true;
                self.queue.close();
                break;
            }
            match job {
                Job::Folder { path, relative_at, depth, layers } => {
                    if self.visit.is_needed(&mut self.worker, &path) {
                        self.folder(path, relative_at, depth, &layers, grow);
                    }
                }
                Job::Files { folder, names } => {
                    let items: Vec<_> = names.items.clone();
                    self.visit_all(&folder, &names, &items);
                }
            }
        }
        (self.worker, self.skipped)
    }

    fn folder(
        &mut self,
        mut prefix: Vec<u8>,
        relative_at: usize,
        depth: usize,
        above: &Layers,
        grow: &mut dyn FnMut(),
    ) {
        let opened = Dir::open(Path::new(OsStr::from_bytes(&prefix)));
        let mut names = mem::take(&mut self.names);
        names.clear();
        let dir = match opened.and_then(|dir| self.read(&dir, &mut names).map(|()| dir)) {
            Ok(dir) => dir,
            Err(error) => {
                self.skipped.unreadable(&prefix, &error);
                self.names = names;
                return;
            }
        };
        let entered = self.enter(&prefix, &names, above);
        let layers = entered.as_ref().unwrap_or(above);
        if !prefix.ends_with(b"/") {
            prefix.push(b'/');
        }
        self.filter(&prefix, &mut names, layers);
        let mut items = mem::take(&mut names.items);
        items.sort_unstable_by(|a, b| names.name(*a).cmp(names.name(*b)));

        let folder = Arc::new(OpenFolder { dir, prefix, relative_at });
        let (own, files) = split(&items, V::FILES_PER_JOB);
        let mut jobs = Vec::new();
        for item in items.iter().rev().filter(|item| item.kind == Kind::Dir) {
            if depth == DEPTH_MAX {
                self.skipped.too_deep += 1;
                continue;
            }
            let path = [&folder.prefix, names.name(*item)].concat();
            jobs.push(Job::Folder { path, relative_at, depth: depth + 1, layers: layers.clone() });
        }
        for part in files.rchunks(V::FILES_PER_JOB) {
            jobs.push(Job::Files { folder: Arc::clone(&folder), names: names.part(part) });
        }
        if !jobs.is_empty() {
            self.queue.push(jobs);
            grow();
        }
        self.visit_all(&folder, &names, &own);
        names.items = items;
        self.names = names;
    }

    fn read(&mut self, dir: &Dir, names: &mut Names) -> std::io::Result<()> {
        loop {
            let entries = dir.read(&mut self.entries)?;
            if entries.is_empty() {
                return Ok(());
            }
            for (name, kind) in entries {
                if !matches!(name.to_bytes(), b"." | b"..") {
                    names.push(name, kind);
                }
            }
        }
    }

    /// The rules of a folder that has files which change them.
    fn enter(&self, folder: &[u8], names: &Names, above: &Layers) -> Option<Layers> {
        if self.options.ignored {
            return None;
        }
        let mut has = Has::default();
        for item in &names.items {
            let is_file = matches!(item.kind, Kind::File | Kind::Unknown);
            match names.name(*item) {
                b".git" => has.git = true,
                b".gitignore" => has.gitignore = is_file,
                b".ignore" => has.ignore = is_file,
                _ => {}
            }
        }
        let folder = Path::new(OsStr::from_bytes(folder));
        (has != Has::default()).then(|| above.enter(folder, has, self.user))
    }

    /// Leaves what the rules let through.
    fn filter(&mut self, prefix: &[u8], names: &mut Names, layers: &Layers) {
        self.path.clear();
        self.path.extend_from_slice(prefix);
        let mut items = mem::take(&mut names.items);
        items.retain_mut(|item| {
            let name = names.name(*item);
            let is_hidden = name.starts_with(b".");
            if is_hidden && is_internal(OsStr::from_bytes(name)) {
                return false;
            }
            self.path.truncate(prefix.len());
            self.path.extend_from_slice(name);
            if item.kind == Kind::Unknown {
                item.kind = kind_of(Path::new(OsStr::from_bytes(&self.path)));
            }
            let verdict = match layers.is_empty() {
                true => None,
                false => layers.verdict(&self.path, prefix.len(), item.kind == Kind::Dir),
            };
            match verdict {
                Some(Verdict::Ignored) => {
                    self.skipped.ignored += 1;
                    false
                }
                None if is_hidden && !self.options.hidden => {
                    self.skipped.hidden += 1;
                    false
                }
                _ => true,
            }
        });
        names.items = items;
    }

    fn visit_all(&mut self, folder: &OpenFolder, names: &Names, items: &[Item]) {
        let mut path = mem::take(&mut self.path);
        path.clear();
        path.extend_from_slice(&folder.prefix);
        for item in items {
            path.truncate(folder.prefix.len());
            path.extend_from_slice(names.name(*item));
            let entry = Entry {
                path: &path,
                relative_at: folder.relative_at,
                kind: item.kind,
                place: Place::In(&folder.dir, names.c_name(*item)),
            };
            self.visit.visit(&mut self.worker, &entry);
        }
        self.path = path;
    }
}

/// A thread that dies in a visit must not leave the others waiting for its job.
struct CloseOnPanic<'a>(&'a Queue);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
        }
    }
}

/// What this job visits itself, and the files that others should.
fn split(items: &[Item], files_max: usize) -> (Vec<Item>, Vec<Item>) {
    let mut files = 0;
    items.iter().partition(|item| {
        files += usize::from(item.kind != Kind::Dir);
        item.kind == Kind::Dir || files <= files_max
    })
}

/// The kind of an entry whose folder does not say.
pub fn kind_of(path: &Path) -> Kind {
    match fs::symlink_metadata(path).map(|metadata| metadata.file_type()) {
        Ok(kind) if kind.is_file() => Kind::File,
        Ok(kind) if kind.is_dir() => Kind::Dir,
        Ok(kind) if kind.is_symlink() => Kind::Symlink,
        _ => Kind::Special,
    }
}
