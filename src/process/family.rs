//! Who belongs to a command: the members of its session, and what left it.
//!
//! The leader must not have been waited for while this is used: its id then stays taken, and
//! with it the ids of its group and its session.
//!
//! Ids are given out in rising order, so only ids after the leader's up to the last one given
//! out can be its descendants. A command that started nothing costs one read of a file.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::process::Process;
use crate::sys;

/// Above this many ids the listing of `/proc` is cheaper than asking for each.
const PROBES_MAX: u32 = 1024;
/// How many processes are looked at closely for signs of having left the session.
const ESCAPED_CANDIDATES_MAX: usize = 256;
/// Kill rounds: each new one only meets groups that were made during the last.
const ROUNDS_MAX: usize = 8;
/// A command line is cut to this many characters.
const NAME_CHARS_MAX: usize = 80;

/// A command's session, named by its leader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    leader: u32,
}

impl Family {
    pub(super) fn leader(self) -> u32 {
        self.leader
    }

    /// `None` for what is no command: 0 and 1 name the sessions of what is outside and of
    /// `init`, and our own session must never be ended.
    pub(super) fn of(leader: u32) -> Option<Family> {
        (leader > 1 && sys::session_of(0) != Some(leader)).then_some(Family { leader })
    }

    /// Members that still run, the leader not counted.
    pub(super) fn members(self) -> Vec<u32> {
        let in_session = |pid: &u32| sys::session_of(*pid) == Some(self.leader) && is_running(*pid);
        self.candidates().into_iter().filter(in_session).collect()
    }

    /// Sends a signal to every member, whatever its process group.
    pub(super) fn signal(self, signal: i32) {
        let _ = sys::kill_group(self.leader, signal);
        for group in self.other_groups() {
            let _ = sys::kill_group(group, signal);
        }
    }

    /// Kills every member. A group is killed at one stroke; groups that appear meanwhile are
    /// found in the next round.
    pub(super) fn kill(self) {
        let mut killed = BTreeSet::new();
        let _ = sys::kill_group(self.leader, libc::SIGKILL);
        for _round in 0..ROUNDS_MAX {
            let groups = self.other_groups();
            let fresh: Vec<_> = groups.difference(&killed).copied().collect();
            if fresh.is_empty() {
                return;
            }
            for group in fresh {
                let _ = sys::kill_group(group, libc::SIGKILL);
                killed.insert(group);
            }
        }
    }

    /// The session's groups beside the leader's own (`set -m`, `timeout`).
    fn other_groups(self) -> BTreeSet<u32> {
        let mut groups = BTreeSet::new();
        for pid in self.candidates() {
            if sys::session_of(pid) == Some(self.leader) {
                groups.extend(sys::group_of(pid).filter(|group| *group != self.leader));
            }
        }
        groups
    }

    /// Processes that run outside the session although the command started them: they hold one
    /// of its outputs (`links`, as `/proc` shows them) or carry its mark (`NAME=value`).
    pub(super) fn escaped(self, links: &[PathBuf], mark: Option<&OsStr>) -> Vec<Process> {
        if links.is_empty() && mark.is_none() {
            return Vec::new();
        }
        let own = sys::session_of(0);
        let outside = |pid: &u32| {
            sys::session_of(*pid).is_some_and(|session| session != self.leader)
                && sys::session_of(*pid) != own
        };
        let candidates = self.candidates().into_iter().filter(outside);
        let escaped = candidates.take(ESCAPED_CANDIDATES_MAX).filter(|pid| {
            is_running(*pid)
                && (sys::holds(*pid, links) || mark.is_some_and(|mark| has_mark(*pid, mark)))
        });
        escaped.map(describe).collect()
    }

    /// Ids that can be descendants of the leader; threads may be among them.
    fn candidates(self) -> Vec<u32> {
        match sys::last_pid() {
            Some(last) if last >= self.leader && last - self.leader <= PROBES_MAX => {
                (self.leader + 1..=last).collect()
            }
            Some(last) if last >= self.leader => sys::pids()
                .into_iter()
                .filter(|pid| (self.leader + 1..=last).contains(pid))
                .collect(),
            // The numbers began anew, or are not known.
            Some(last) => {
                sys::pids().into_iter().filter(|pid| *pid > self.leader || *pid <= last).collect()
            }
            None => sys::pids().into_iter().filter(|pid| *pid != self.leader).collect(),
        }
    }
}

/// A process (not one of its further threads) that has not ended.
fn is_running(pid: u32) -> bool {
    let alive = sys::proc_stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'));
    alive && sys::is_whole_process(pid)
}

fn has_mark(pid: u32, mark: &OsStr) -> bool {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}

/// A process with its command line, as a person would recognise it.
pub(super) fn describe(pid: u32) -> Process {
    let line = read_start(&format!("/proc/{pid}/cmdline"), 1024).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    let mut name = words.join(" ");
    if name.is_empty() {
        name = sys::proc_stat(pid).map_or_else(|| "?".to_owned(), |stat| stat.name);
    }
    let visible = name.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = visible.take(NAME_CHARS_MAX).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    Process { pid, name: short }
}

fn read_start(path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(fs::File::open(path)?, bytes_max), &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_of_others_are_no_family() {
        assert!(Family::of(0).is_none() && Family::of(1).is_none());
        assert!(Family::of(sys::session_of(0).unwrap()).is_none());
        assert!(Family::of(i32::MAX.unsigned_abs()).is_some());
    }
}
