//! What `/proc` tells of other processes. Everything here answers "nothing known" where `/proc`
//! is not mounted or another user's process is asked about.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A line of `/proc/PID/stat`, as far as it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcStat {
    /// The program's name, at most 15 bytes.
    pub name: String,
    /// `R` running, `S` sleeping, `T` stopped, `Z` ended but not waited for, …
    pub state: char,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
}

/// `None` when the process is gone.
pub fn proc_stat(pid: u32) -> Option<ProcStat> {
    parse_stat(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// `1 (name) S 2 3 4 …`: the name may hold anything, brackets and blanks included.
fn parse_stat(text: &str) -> Option<ProcStat> {
    let (_, rest) = text.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let mut number = || fields.next()?.parse().ok();
    Some(ProcStat {
        name: name.to_owned(),
        state,
        parent: number()?,
        group: number()?,
        session: number()?,
    })
}

/// False for a further thread of a process: `/proc/ID` answers for those as well.
pub fn is_whole_process(pid: u32) -> bool {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = String::from_utf8_lossy(&status);
    let group = line.lines().find_map(|line| line.strip_prefix("Tgid:"));
    group.and_then(|group| group.trim().parse().ok()) == Some(pid)
}

/// The id that the kernel gave out last, to whatever process or thread; `None` when unknown.
pub fn last_pid() -> Option<u32> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().nth(4)?.parse().ok().filter(|pid| *pid > 0)
}

/// Every process, in order of the listing. Empty without `/proc`.
pub fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// How the holder of a descriptor stands to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Itself,
    Ancestor,
    Other,
}

/// A process that has the write end of a pipe open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    pub pid: u32,
    pub name: String,
    pub relation: Relation,
}

/// Who could still write into the pipe (or named pipe) that `fd` reads from.
///
/// Processes of other users or other containers are not seen, so an empty list proves nothing.
/// Reads the descriptors of every process: milliseconds, so not for a common path.
pub fn pipe_writers(fd: BorrowedFd<'_>) -> io::Result<Vec<Writer>> {
    let target = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
    let own = std::process::id();
    let ancestors = ancestors_of(own);
    let mut writers = Vec::new();
    for pid in pids() {
        if descriptors(pid).any(|path| is_target(&path, &target) && opened_for_writing(&path)) {
            let relation = match pid {
                pid if pid == own => Relation::Itself,
                pid if ancestors.contains(&pid) => Relation::Ancestor,
                _ => Relation::Other,
            };
            let name = proc_stat(pid).map(|stat| stat.name).unwrap_or_default();
            writers.push(Writer { pid, name, relation });
        }
    }
    Ok(writers)
}

/// Whether a process has one of these open; each is a link text such as `pipe:[4711]`.
pub fn holds(pid: u32, targets: &[PathBuf]) -> bool {
    descriptors(pid).any(|path| targets.iter().any(|target| is_target(&path, target)))
}

fn descriptors(pid: u32) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    entries.into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_target(path: &Path, target: &Path) -> bool {
    fs::read_link(path).is_ok_and(|link| link == target)
}

/// The link's own mode bits say how the descriptor was opened.
fn opened_for_writing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o200 != 0)
}

fn ancestors_of(pid: u32) -> BTreeSet<u32> {
    let mut ancestors = BTreeSet::new();
    let mut next = proc_stat(pid).map_or(0, |stat| stat.parent);
    while next > 0 && ancestors.insert(next) {
        next = proc_stat(next).map_or(0, |stat| stat.parent);
    }
    ancestors
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_brackets_and_blanks_is_read_whole() {
        let stat = parse_stat("7 (a) b (c)) T 1 22 333 0 -1 4194560").unwrap();
        let want =
            ProcStat { name: "a) b (c)".into(), state: 'T', parent: 1, group: 22, session: 333 };
        assert_eq!(stat, want);
        for cut in ["", "7", "7 (a", "7 (a)", "7 (a) S", "7 (a) S 1 2"] {
            assert_eq!(parse_stat(cut), None, "{cut}");
        }
    }

    #[test]
    fn own_facts_agree_with_the_system() {
        let stat = proc_stat(std::process::id()).unwrap();
        assert_eq!(Some(stat.group), crate::sys::group_of(0));
        assert_eq!(Some(stat.session), crate::sys::session_of(0));
        assert_eq!(stat.parent, std::os::unix::process::parent_id());
        assert!(pids().contains(&std::process::id()));
        assert!(last_pid().is_some());
    }

    #[test]
    fn the_writers_of_a_pipe_are_found_and_told_apart() {
        let (reader, writer) = io::pipe().unwrap();
        let relations = || {
            let writers = pipe_writers(reader.as_fd()).unwrap();
            writers.iter().map(|w| (w.pid, w.relation)).collect::<Vec<_>>()
        };
        let own = (std::process::id(), Relation::Itself);
        assert_eq!(relations(), [own]);
        let mut child = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .stdout(writer.try_clone().unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let found = relations();
        assert!(
            found.contains(&own) && found.contains(&(child.id(), Relation::Other)),
            "{found:?}"
        );
        drop(writer);
        let writers = pipe_writers(reader.as_fd()).unwrap();
        let want = Writer { pid: child.id(), name: "sleep".into(), relation: Relation::Other };
        assert_eq!(writers, [want]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(relations(), []);
    }

    #[test]
    fn parents_are_ancestors() {
        let ancestors = ancestors_of(std::process::id());
        assert!(ancestors.contains(&std::os::unix::process::parent_id()));
        assert!(!ancestors.contains(&std::process::id()));
    }
}
