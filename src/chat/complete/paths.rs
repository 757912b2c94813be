//! The paths of a working tree, read once and searched by what is typed of them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::host::Host;
use crate::workspace::ignore::layers::UserFiles;
use crate::workspace::names;
use crate::workspace::walk::first::{Bound, BoundCopy};
use crate::workspace::walk::{self, Entry, Kind, Options, Visit, order};

/// Paths that are remembered; of a larger tree, the first in path order.
const PATHS_MAX: usize = 50_000;
/// A thread gathers this many more than needed before it sorts and forgets the rest.
const SLACK: usize = 1024;

/// Relative paths in path order, folders with a `/` at their end.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    paths: Vec<Known>,
}

#[derive(Debug, Clone)]
struct Known {
    path: String,
    lower: String,
    depth: usize,
}

impl Paths {
    /// Reads what is below `root`, without hidden and ignored entries. Takes as long as the tree
    /// is large: not for a thread that answers keys. Ends early, with what it has, when `stop`
    /// says so.
    pub fn read(root: &Path, host: &Host, stop: &(dyn Fn() -> bool + Sync)) -> Paths {
        Paths::read_first(root, host, stop, PATHS_MAX)
    }

    /// Those given, which are in path order.
    pub fn of<S: Into<String>>(paths: impl IntoIterator<Item = S>) -> Paths {
        let known = |path: S| {
            let path = path.into();
            let depth = path.trim_end_matches('/').matches('/').count();
            Known { lower: path.to_lowercase(), depth, path }
        };
        Paths { paths: paths.into_iter().map(known).collect() }
    }

    /// At most `count_max` paths that contain what was typed, in any case: first those that start
    /// with it, then those whose name does, then those whose name contains it; each from the
    /// nearest to the deepest.
    pub fn search(&self, typed: &str, count_max: usize) -> Vec<&str> {
        let lower = typed.strip_prefix("./").unwrap_or(typed).to_lowercase();
        let matching = self.paths.iter().enumerate();
        let mut found: Vec<_> = matching
            .filter_map(|(idx, known)| Some((known.rank(&lower)?, known.depth, idx)))
            .collect();
        found.sort_unstable();
        found.truncate(count_max);
        found.into_iter().map(|(_, _, idx)| self.paths[idx].path.as_str()).collect()
    }

    fn read_first(
        root: &Path,
        host: &Host,
        stop: &(dyn Fn() -> bool + Sync),
        keep: usize,
    ) -> Paths {
        let Ok(root) = root.canonicalize() else { return Paths::default() };
        let user = UserFiles::of(host);
        let options = Options { hidden: false, ignored: false, base: &root, user: &user, stop };
        let visit = Gather { bound: Bound::default(), keep };
        let (workers, _) = walk::walk(std::slice::from_ref(&root), &options, &visit);
        let mut found: Vec<_> = workers.into_iter().flat_map(|worker| worker.found).collect();
        first(&mut found, keep);
        let below = root.as_os_str().as_bytes().len() + usize::from(root != Path::new("/"));
        Paths::of(found.iter().filter_map(|found| found.shown(below)))
    }
}

impl Known {
    fn rank(&self, lower: &str) -> Option<usize> {
        let at = self.lower.find(lower)?;
        let inner = self.lower.trim_end_matches('/');
        let name = &self.lower[inner.rfind('/').map_or(0, |slash| slash + 1)..];
        Some(match () {
            () if at == 0 => 0,
            () if name.starts_with(lower) => 1,
            () if name.contains(lower) => 2,
            () => 3,
        })
    }
}

struct Found {
    /// Absolute.
    path: Vec<u8>,
    is_dir: bool,
}

impl Found {
    /// From the byte `below` on; `None` if a line of text does not carry it unchanged.
    fn shown(&self, below: usize) -> Option<String> {
        let path = std::str::from_utf8(self.path.get(below..)?).ok()?;
        let is_plain = !path.contains('"') && names::shown(Path::new(path)) == path;
        is_plain.then(|| format!("{path}{}", if self.is_dir { "/" } else { "" }))
    }
}

/// Sorts, and forgets all but the first `keep`.
fn first(found: &mut Vec<Found>, keep: usize) {
    found.sort_unstable_by(|a, b| order(&a.path, &b.path));
    found.truncate(keep);
}

struct Gather {
    bound: Bound,
    keep: usize,
}

#[derive(Default)]
struct Worker {
    found: Vec<Found>,
    bound: BoundCopy,
}

impl Visit for Gather {
    type Worker = Worker;
    const FILES_PER_JOB: usize = 4096;

    fn worker(&self) -> Worker {
        Worker::default()
    }

    fn visit(&self, worker: &mut Worker, entry: &Entry<'_>) {
        let is_kept = matches!(entry.kind, Kind::File | Kind::Dir | Kind::Symlink);
        if !is_kept || !self.bound.admits(&mut worker.bound, entry.path) {
            return;
        }
        let is_dir = entry.kind == Kind::Dir;
        worker.found.push(Found { path: entry.path.to_vec(), is_dir });
        if worker.found.len() >= 2 * self.keep + SLACK {
            first(&mut worker.found, self.keep);
            if let Some(last) = worker.found.last() {
                self.bound.lower(&last.path);
            }
        }
    }

    fn is_needed(&self, worker: &mut Worker, path: &[u8]) -> bool {
        self.bound.admits(&mut worker.bound, path)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A folder of its own, removed at the end.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[&str]) -> Tree {
            let name = format!("etch-complete-{}-{name}", std::process::id());
            let root = std::env::temp_dir().join(name);
            for file in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            Tree(root)
        }

        fn read(&self, keep: usize) -> Vec<String> {
            let paths = Paths::read_first(&self.0, &Host::fixed(), &|| false, keep);
            paths.paths.into_iter().map(|known| known.path).collect()
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_tree_is_read_in_path_order_without_what_is_ignored() {
        let tree = Tree::new(
            "order",
            &[
                "b.txt",
                "a/z",
                "a/deep/x.rs",
                "a-b",
                "two words/in it",
                "target/out",
                ".hidden",
                ".git/config",
                ".gitignore",
                "new\nline",
                "q\"uote",
                "界",
            ],
        );
        fs::write(tree.0.join(".gitignore"), "target/\n").unwrap();
        let want = [
            "a/",
            "a/deep/",
            "a/deep/x.rs",
            "a/z",
            "a-b",
            "b.txt",
            "two words/",
            "two words/in it",
            "界",
        ];
        assert_eq!(tree.read(PATHS_MAX), want);
        let stopped = Paths::read(&tree.0, &Host::fixed(), &|| true);
        assert!(stopped.paths.len() < want.len());
        assert!(Paths::read(&tree.0.join("none"), &Host::fixed(), &|| false).paths.is_empty());
    }

    #[test]
    fn of_a_large_tree_the_first_are_known() {
        let files: Vec<_> = (0..2000).map(|n| format!("{}/{n:04}", n % 7)).collect();
        let names: Vec<_> = files.iter().map(String::as_str).collect();
        let tree = Tree::new("large", &names);
        let all = tree.read(PATHS_MAX);
        assert_eq!(all.len(), 2007);
        assert_eq!(tree.read(100), all[..100]);
    }

    #[test]
    fn the_nearest_and_best_match_comes_first() {
        let paths = Paths::of([
            "docs/",
            "docs/main.md",
            "main/",
            "main/deep/",
            "main/deep/main.rs",
            "main/x",
            "remain",
            "src/",
            "src/Main.rs",
        ]);
        let table: &[(&str, &[&str])] = &[
            (
                "ma",
                &[
                    "main/",
                    "main/deep/",
                    "main/x",
                    "main/deep/main.rs",
                    "docs/main.md",
                    "src/Main.rs",
                    "remain",
                ],
            ),
            ("main/d", &["main/deep/", "main/deep/main.rs"]),
            ("deep", &["main/deep/", "main/deep/main.rs"]),
            ("MAIN.RS", &["src/Main.rs", "main/deep/main.rs"]),
            ("./src/", &["src/", "src/Main.rs"]),
            ("zzz", &[]),
        ];
        for (typed, want) in table {
            assert_eq!(paths.search(typed, 100), *want, "{typed:?}");
        }
        assert_eq!(paths.search("", 4), ["docs/", "main/", "remain", "src/"]);
    }
}
