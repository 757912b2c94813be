//! Golden files: what is wanted lies beside the input, all failures are shown at once, and
//! `UPDATE_FIXTURES=1` writes what is read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files below a folder by their path in it; none where there is no folder.
pub fn files_below(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// One family of cases.
pub struct Golden {
    root: PathBuf,
    filter: String,
    count_min: usize,
}

impl Golden {
    /// `filter` names a variable: part of the names of the cases to run. There are at least
    /// `count_min`, so that none is lost unnoticed.
    pub fn new(root: &Path, filter: &str, count_min: usize) -> Golden {
        let filter = std::env::var(filter).unwrap_or_default();
        Golden { root: root.to_owned(), filter, count_min }
    }

    fn cases(&self, is_case: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.root).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<PathBuf> = entries.filter(|path| is_case(path)).collect();
        assert!(all.len() >= self.count_min, "only {} in {}", all.len(), self.root.display());
        all.sort();
        all.retain(|path| path.to_string_lossy().contains(&self.filter));
        all
    }

    fn updates() -> bool {
        std::env::var_os("UPDATE_FIXTURES").is_some()
    }

    /// A case is a folder; what is wanted is what lies in its `want`. `run` gives what came of it
    /// and what else is wrong.
    pub fn check_folders(
        &self,
        run: impl Fn(&Path) -> (BTreeMap<String, Vec<u8>>, Option<String>) + Sync,
    ) {
        let mut wrong = Vec::new();
        for (dir, (got, note)) in at_once(self.cases(Path::is_dir), |dir| run(dir)) {
            let case = dir.file_name().unwrap().to_string_lossy().into_owned();
            wrong.extend(note.map(|note| format!("{case}: {note}")));
            let want_dir = dir.join("want");
            if Golden::updates() {
                let _ = fs::remove_dir_all(&want_dir);
                for (name, bytes) in got.iter().filter(|(_, bytes)| !bytes.is_empty()) {
                    let path = want_dir.join(name);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, bytes).unwrap();
                }
                continue;
            }
            // An empty file is not kept.
            let want = files_below(&want_dir);
            let names: std::collections::BTreeSet<&String> =
                got.keys().chain(want.keys()).collect();
            for name in names {
                let bytes = |files: &BTreeMap<String, Vec<u8>>| {
                    files.get(name).cloned().unwrap_or_default()
                };
                let (got, want) = (bytes(&got), bytes(&want));
                if got != want {
                    wrong.push(difference(&format!("{case}/{name}"), &want, &got));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// A case is a file; `run` gives the file as it is when all goes as it says.
    pub fn check_files(&self, run: impl Fn(&str) -> String + Sync) {
        let mut wrong = Vec::new();
        let read = |path: &Path| {
            let want = fs::read_to_string(path).unwrap();
            (run(&want), want)
        };
        let cases = self.cases(|path| path.extension().is_some_and(|ext| ext == "txt"));
        for (path, (got, want)) in at_once(cases, read) {
            if Golden::updates() {
                fs::write(&path, &got).unwrap();
            } else if got != want {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                wrong.push(difference(&name, want.as_bytes(), got.as_bytes()));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Runs the cases a few at a time; results in their order.
fn at_once<T: Send>(cases: Vec<PathBuf>, run: impl Fn(&Path) -> T + Sync) -> Vec<(PathBuf, T)> {
    let mut results = Vec::new();
    for some in cases.chunks(4) {
        let ran: Vec<T> = std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|path| scope.spawn(|| run(path))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        results.extend(some.iter().cloned().zip(ran));
    }
    results
}

fn difference(name: &str, want: &[u8], got: &[u8]) -> String {
    let (want, got) = (String::from_utf8_lossy(want), String::from_utf8_lossy(got));
    let mut out = format!("{name} (wanted -, got +)\n");
    let (want, got): (Vec<&str>, Vec<&str>) = (want.lines().collect(), got.lines().collect());
    let same = want.iter().zip(&got).take_while(|(a, b)| a == b).count();
    let rest = want.len().min(got.len()) - same;
    let back =
        want.iter().rev().zip(got.iter().rev()).take_while(|(a, b)| a == b).count().min(rest);
    for (sign, lines) in [("-", &want), ("+", &got)] {
        for line in &lines[same..lines.len() - back] {
            out.push_str(&format!("{sign} {line}\n"));
        }
    }
    out
}
