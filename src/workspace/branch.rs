//! The git branch of a folder, for people: read from `HEAD`, without git.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// `HEAD` and the file of a linked work tree are a line; what is longer is neither.
const BYTES_MAX: u64 = 4096;

/// The branch of the repository that `dir` is in, or the start of the commit's id when none is
/// checked out; `None` outside of repositories and where that cannot be told.
pub fn branch(dir: &Path) -> Option<String> {
    let git = dir.ancestors().find_map(git_dir)?;
    let head = read_line(&git.join("HEAD"))?;
    let name = match head.strip_prefix("ref:") {
        Some(name) => name.trim_start().strip_prefix("refs/heads/")?,
        None if head.len() < 40 || !head.bytes().all(|b| b.is_ascii_hexdigit()) => return None,
        None => &head[..8],
    };
    // What stands there where the refs are in a table.
    (name != ".invalid" && !name.is_empty()).then(|| name.to_owned())
}

fn git_dir(dir: &Path) -> Option<PathBuf> {
    let git = dir.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let named = read_line(&git)?;
    Some(dir.join(named.strip_prefix("gitdir:")?.trim_start()))
}

/// Of a regular file: anything else could make the reader wait.
fn read_line(path: &Path) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text.lines().next()?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    #[test]
    fn the_branch_is_found_from_below_and_through_links() {
        let name = format!("etch-branch-{}", Host::from_process().new_id());
        let temp = std::env::temp_dir().join(name);
        for dir in ["repo/.git/worktrees/w", "repo/a/b", "work/c", "none/.git", "other/.git"] {
            fs::create_dir_all(temp.join(dir)).unwrap();
        }
        fs::write(temp.join("repo/.git/HEAD"), "ref: refs/heads/topic/x\n").unwrap();
        let id = "0123456789abcdef0123456789abcdef01234567\n";
        fs::write(temp.join("repo/.git/worktrees/w/HEAD"), id).unwrap();
        fs::write(temp.join("work/.git"), "gitdir: ../repo/.git/worktrees/w\n").unwrap();
        fs::write(temp.join("other/.git/HEAD"), "ref: refs/heads/.invalid\n").unwrap();
        let check = |dir: &str, want: Option<&str>| {
            assert_eq!(branch(&temp.join(dir)).as_deref(), want, "{dir}");
        };
        check("repo", Some("topic/x"));
        check("repo/a/b", Some("topic/x"));
        check("work/c", Some("01234567"));
        check("none", None);
        check("other", None);
        fs::write(temp.join("other/.git/HEAD"), b"ref: refs/heads/\xff\n").unwrap();
        check("other", None);
        fs::write(temp.join("other/.git/HEAD"), "").unwrap();
        check("other", None);
        fs::remove_dir_all(&temp).unwrap();
    }
}
