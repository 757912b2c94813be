//! From the text of a path to the file that is meant: follow every link, then apply the rules.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::workspace::{
    Access, PathError, Resolved, Workspace, is_internal, lookalike, names, reason,
};

/// As many as the kernel follows in one path.
const LINKS_MAX: usize = 40;

pub(super) fn resolve(
    workspace: &Workspace,
    text: &str,
    access: Access,
) -> Result<Resolved, PathError> {
    if text.is_empty() {
        return Err(PathError("the path is empty; '.' is the working directory".to_owned()));
    }
    if text.contains('\0') {
        return Err(PathError("the path has a NUL character, which no file name can have".into()));
    }
    if access == Access::Write && text.ends_with('/') {
        return Err(PathError(format!("{text}: names a directory, not a file to write")));
    }
    if access == Access::Write && means_home(workspace, text) {
        return Err(PathError(format!(
            "{text}: '~' is no home directory here; write the path relative to the working \
             directory (./{text} for a folder of that name)"
        )));
    }
    let asked = workspace.root().join(names::parse(text));
    let mut walk = Walk {
        workspace,
        text,
        access,
        current: PathBuf::from("/"),
        pending: VecDeque::new(),
        links: 0,
        missing: None,
        internal: false,
    };
    // The root is canonical: below it nothing above has to be looked at again.
    let rest = match asked.strip_prefix(workspace.root()) {
        Ok(below) => {
            walk.current = workspace.root().to_owned();
            below
        }
        Err(_) => &asked,
    };
    walk.push_front(rest);
    while let Some(component) = walk.pending.pop_front() {
        walk.step(&component)?;
    }
    walk.finish()
}

/// Whether a shell would take the path for one in the home directory, and no folder here has that
/// name: a folder `~` that nobody wanted is one slip away from losing the real one.
fn means_home(workspace: &Workspace, text: &str) -> bool {
    let is_home = text == "~" || text.starts_with("~/");
    is_home && fs::symlink_metadata(workspace.root().join("~")).is_err()
}

/// A path that is being followed component by component.
struct Walk<'a> {
    workspace: &'a Workspace,
    text: &'a str,
    access: Access,
    /// Followed so far: no links, no `..`.
    current: PathBuf,
    pending: VecDeque<OsString>,
    links: usize,
    /// The first path that does not exist, with the names like it.
    missing: Option<(PathBuf, Vec<String>)>,
    /// A link was followed that is itself internal.
    internal: bool,
}

impl Walk<'_> {
    /// Puts a path before what is still to be followed.
    fn push_front(&mut self, path: &Path) {
        for component in path.components().rev() {
            match component {
                Component::CurDir | Component::Prefix(_) => {}
                other => self.pending.push_front(other.as_os_str().to_owned()),
            }
        }
    }

    fn step(&mut self, component: &OsStr) -> Result<(), PathError> {
        match component.as_bytes() {
            b"/" => {
                self.current = PathBuf::from("/");
                return Ok(());
            }
            b"." => return Ok(()),
            b".." => {
                self.current.pop();
                return Ok(());
            }
            _ => {}
        }
        let next = self.current.join(component);
        match fs::symlink_metadata(&next) {
            Ok(metadata) if metadata.is_symlink() => self.follow(&next, component),
            Ok(_) => {
                self.current = next;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.absent(next, component),
            Err(error) => {
                self.refuse_outside(&next)?;
                Err(PathError(format!("{}: {}", self.text, reason(&error))))
            }
        }
    }

    fn follow(&mut self, link: &Path, name: &OsStr) -> Result<(), PathError> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(PathError(format!("{}: too many levels of symbolic links", self.text)));
        }
        self.internal |= is_internal(name);
        let target = fs::read_link(link)
            .map_err(|error| PathError(format!("{}: {}", self.text, reason(&error))))?;
        self.push_front(&target);
        Ok(())
    }

    /// A name that is not there: for reading its only lookalike is taken.
    fn absent(&mut self, next: PathBuf, name: &OsStr) -> Result<(), PathError> {
        if self.access == Access::Write || self.missing.is_some() {
            self.current = next;
            return Ok(());
        }
        // Names of a folder outside are not told.
        self.refuse_outside(&next)?;
        let near = lookalike::near(&self.current, name);
        if let [only] = near.alike.as_slice() {
            self.pending.push_front(only.clone());
            return Ok(());
        }
        if !near.alike.is_empty() {
            let shown: Vec<_> = near.alike.iter().map(|n| self.shown_in_current(n)).collect();
            return Err(PathError(format!(
                "{}: no such file; {} names look like it: {}; use one of them as printed here",
                self.text,
                shown.len(),
                shown.join(", ")
            )));
        }
        let hints = near.similar.iter().map(|n| self.shown_in_current(n)).collect();
        self.missing = Some((next.clone(), hints));
        self.current = next;
        Ok(())
    }

    fn shown_in_current(&self, name: &OsStr) -> String {
        self.workspace.shown(&self.current.join(name))
    }

    fn finish(self) -> Result<Resolved, PathError> {
        self.refuse_outside(&self.current)?;
        self.refuse_internal()?;
        if let Some((missing, hints)) = &self.missing {
            return Err(self.not_found(missing, hints));
        }
        let shown = self.workspace.shown(&self.current);
        Ok(Resolved { absolute: self.current, shown })
    }

    fn not_found(&self, missing: &Path, hints: &[String]) -> PathError {
        let parent = missing.parent().unwrap_or(missing);
        let whole = *missing == self.current;
        let what = if whole {
            format!("{}: no such file or directory", self.text)
        } else {
            format!("{}: no such directory: {}", self.text, self.workspace.shown(missing))
        };
        PathError(match hints {
            [] => format!("{what}; '{}' has no name like it", self.workspace.shown(parent)),
            hints => format!("{what}; did you mean {}?", hints.join(", ")),
        })
    }

    fn is_readable(&self, path: &Path) -> bool {
        self.access == Access::Read
            && self.workspace.readable.iter().any(|dir| path.starts_with(dir))
    }

    fn refuse_outside(&self, path: &Path) -> Result<(), PathError> {
        if path.starts_with(self.workspace.root()) || self.is_readable(path) {
            return Ok(());
        }
        let target = names::shown(path);
        let target = if target == self.text { target } else { format!("{} ({target})", self.text) };
        let root = names::shown(self.workspace.root());
        match self.access {
            Access::Read if self.workspace.read_outside => Ok(()),
            Access::Read => Err(PathError(format!(
                "{target} is outside the working directory {root}; reading there needs the \
                 person's --read-outside"
            ))),
            Access::Write => Err(PathError(format!(
                "{target} is outside the working directory {root}; files are written only below it"
            ))),
        }
    }

    /// `.git` and `.etch` are no files of the project: git and etch keep their own state there.
    fn refuse_internal(&self) -> Result<(), PathError> {
        if self.is_readable(&self.current) {
            return Ok(());
        }
        let below = self.current.strip_prefix(self.workspace.root()).unwrap_or(&self.current);
        if !self.internal && !below.iter().any(is_internal) {
            return Ok(());
        }
        let verb = if self.access == Access::Read { "read" } else { "modify" };
        Err(PathError(format!(
            "refusing to {verb} internal path {}",
            self.workspace.shown(&self.current)
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::workspace::{open_regular, regular_file};

    /// A scratch folder with `w` (the tree) and `outside`; removed when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let dir = format!("etch-resolve-{}-{name}", std::process::id());
            let dir = std::env::temp_dir().join(dir);
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(dir.join("w/src")).unwrap();
            fs::create_dir_all(dir.join("outside")).unwrap();
            fs::write(dir.join("outside/victim"), "orig").unwrap();
            fs::write(dir.join("w/src/x"), "x").unwrap();
            Scratch(dir.canonicalize().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn workspace(&self) -> Workspace {
            Workspace::new(&self.path("w"), false).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn shown(workspace: &Workspace, path: &str, access: Access) -> String {
        match workspace.resolve(path, access) {
            Ok(resolved) => resolved.shown,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    #[track_caller]
    fn refused(workspace: &Workspace, path: &str, access: Access, want: &str) {
        let error = workspace.resolve(path, access).unwrap_err();
        assert!(error.0.contains(want), "{path}: {error}");
    }

    #[test]
    fn a_write_makes_no_folder_that_a_shell_would_take_for_the_home_directory() {
        let scratch = Scratch::new("tilde");
        let workspace = scratch.workspace();
        for text in ["~", "~/a", "~/a/b"] {
            let error = workspace.resolve(text, Access::Write).unwrap_err().0;
            assert!(error.starts_with(&format!("{text}: '~' is no home directory")), "{error}");
        }
        for text in ["./~/a", "~a", "a/~/b"] {
            assert!(workspace.resolve(text, Access::Write).is_ok(), "{text}");
        }
        std::fs::create_dir(scratch.path("w/~")).unwrap();
        assert!(workspace.resolve("~/a", Access::Write).is_ok());
    }

    #[test]
    fn a_link_never_leads_out_of_the_tree() {
        let scratch = Scratch::new("links");
        let workspace = scratch.workspace();
        symlink(scratch.path("outside/victim"), scratch.path("w/notes.md")).unwrap();
        symlink(scratch.path("outside/fresh"), scratch.path("w/dangling")).unwrap();
        symlink("../outside", scratch.path("w/ext")).unwrap();
        symlink("ext", scratch.path("w/twice")).unwrap();
        let outside = scratch.path("outside");
        let absolute = outside.join("victim").to_string_lossy().into_owned();
        let ways = [
            "notes.md",
            "dangling",
            "ext/deep/new.txt",
            "twice/victim",
            "../outside/victim",
            "src/../../outside/victim",
            "ext/../outside/victim",
            &absolute,
            "missing/../../x",
        ];
        for path in ways {
            refused(&workspace, path, Access::Write, "outside the working directory");
            refused(&workspace, path, Access::Read, "needs the person's --read-outside");
        }
        let error = workspace.resolve("notes.md", Access::Write).unwrap_err();
        assert_eq!(
            error.0,
            format!(
                "notes.md ({absolute}) is outside the working directory {}; files are written \
                 only below it",
                scratch.path("w").display()
            )
        );
        let open = Workspace::new(&scratch.path("w"), true).unwrap();
        assert_eq!(shown(&open, "notes.md", Access::Read), absolute);
        refused(&open, "notes.md", Access::Write, "outside the working directory");
    }

    #[test]
    fn links_inside_the_tree_are_plain_work() {
        let scratch = Scratch::new("inside");
        symlink("src", scratch.path("w/l")).unwrap();
        symlink("src/later", scratch.path("w/dangling")).unwrap();
        symlink(scratch.path("w"), scratch.path("r")).unwrap();
        let workspace = Workspace::new(&scratch.path("r"), false).unwrap();
        assert_eq!(workspace.root(), scratch.path("w"));
        assert_eq!(shown(&workspace, "l/x", Access::Write), "src/x");
        assert_eq!(shown(&workspace, "l/new/deep", Access::Write), "src/new/deep");
        assert_eq!(shown(&workspace, "dangling", Access::Write), "src/later");
        assert_eq!(shown(&workspace, "a.txt", Access::Write), "a.txt");
        assert_eq!(shown(&workspace, "./src//../src/x", Access::Read), "src/x");
        for root in ["r", "w"] {
            let path = scratch.path(root).join("src/x");
            assert_eq!(shown(&workspace, path.to_str().unwrap(), Access::Write), "src/x");
        }
        for root in [".", "./", "src/..", "l/.."] {
            assert_eq!(shown(&workspace, root, Access::Read), ".");
        }
    }

    #[test]
    fn loops_and_files_used_as_folders_are_named() {
        let scratch = Scratch::new("loops");
        let workspace = scratch.workspace();
        symlink("loop", scratch.path("w/loop")).unwrap();
        refused(&workspace, "loop", Access::Write, "loop: too many levels of symbolic links");
        refused(&workspace, "src/x/y", Access::Write, "src/x/y: not a directory");
        refused(&workspace, "src/", Access::Write, "src/: names a directory");
        refused(&workspace, "", Access::Read, "the path is empty");
        refused(&workspace, "a\0b", Access::Read, "NUL character");
        refused(&workspace, &"n".repeat(300), Access::Write, "file name too long");
    }

    #[test]
    fn internal_folders_are_refused_after_links() {
        let scratch = Scratch::new("internal");
        let mut workspace = scratch.workspace();
        fs::create_dir_all(scratch.path("w/sub/.git")).unwrap();
        fs::create_dir_all(scratch.path("w/.etch/skills/s")).unwrap();
        fs::write(scratch.path("w/.etch/skills/s/SKILL.md"), "skill").unwrap();
        symlink("sub/.git", scratch.path("w/innocent")).unwrap();
        symlink("src", scratch.path("w/.git")).unwrap();
        for path in ["innocent/config", "sub/.git/config", ".GIT/config", ".git/x", ".etch/new"] {
            refused(&workspace, path, Access::Write, "refusing to modify internal path");
        }
        refused(&workspace, "sub/.git", Access::Read, "refusing to read internal path sub/.git");
        let skill = ".etch/skills/s/SKILL.md";
        refused(&workspace, skill, Access::Read, "refusing to read internal path");
        workspace.allow_reading(&scratch.path("w/.etch/skills"));
        assert_eq!(shown(&workspace, skill, Access::Read), skill);
        refused(&workspace, skill, Access::Write, "refusing to modify internal path");
        assert_eq!(shown(&workspace, ".gitignore", Access::Write), ".gitignore");
    }

    #[test]
    fn folders_that_the_prompt_names_can_be_read_outside() {
        let scratch = Scratch::new("readable");
        let mut workspace = scratch.workspace();
        workspace.allow_reading(&scratch.path("outside"));
        let path = scratch.path("outside/victim");
        let text = path.to_str().unwrap();
        assert_eq!(workspace.resolve(text, Access::Read).unwrap().absolute, path);
        refused(&workspace, text, Access::Write, "outside");
        let beside = scratch.path("outside2");
        refused(&workspace, beside.to_str().unwrap(), Access::Read, "outside");
    }

    #[test]
    fn one_lookalike_is_read_two_are_listed_and_writes_never_guess() {
        let scratch = Scratch::new("alike");
        let workspace = scratch.workspace();
        for name in ["it\u{2019}s.txt", "cafe\u{301}", "shot 7.30\u{202f}PM.png", "new\nline"] {
            fs::write(scratch.path("w").join(name), "").unwrap();
        }
        assert_eq!(shown(&workspace, "it's.txt", Access::Read), "it\u{2019}s.txt");
        assert_eq!(shown(&workspace, "it's.txt", Access::Write), "it's.txt");
        assert_eq!(shown(&workspace, "caf\u{e9}", Access::Read), "cafe\u{301}");
        let printed = r#""shot 7.30\u{202f}PM.png""#;
        assert_eq!(shown(&workspace, "shot 7.30 PM.png", Access::Read), printed);
        assert_eq!(shown(&workspace, r#""new\nline""#, Access::Read), r#""new\nline""#);
        fs::write(scratch.path("w/shot 7.30\u{a0}PM.png"), "").unwrap();
        let error = workspace.resolve("shot 7.30 PM.png", Access::Read).unwrap_err();
        assert_eq!(
            error.0,
            format!(
                "shot 7.30 PM.png: no such file; 2 names look like it: \
                 \"shot 7.30\\u{{a0}}PM.png\", {printed}; use one of them as printed here"
            )
        );
        assert_eq!(shown(&workspace, printed, Access::Read), printed);
    }

    #[test]
    fn a_missing_file_names_its_neighbours() {
        let scratch = Scratch::new("missing");
        let workspace = scratch.workspace();
        fs::write(scratch.path("w/src/main.rs"), "").unwrap();
        fs::write(scratch.path("w/README.md"), "").unwrap();
        let check = |path: &str, want: &str| {
            assert_eq!(workspace.resolve(path, Access::Read).unwrap_err().0, want);
        };
        check("src/mian.rs", "src/mian.rs: no such file or directory; did you mean src/main.rs?");
        check("readme.md", "readme.md: no such file or directory; did you mean README.md?");
        check("scr/x", "scr/x: no such directory: scr; did you mean src?");
        check("src/q", "src/q: no such file or directory; 'src' has no name like it");
    }

    #[test]
    fn special_files_are_named_without_waiting() {
        let scratch = Scratch::new("special");
        let pipe = scratch.path("w/p");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let _socket = std::os::unix::net::UnixListener::bind(scratch.path("w/s")).unwrap();
        symlink("/dev/zero", scratch.path("w/z")).unwrap();
        let check = |name: &str, want: &str| {
            let path = scratch.path("w").join(name);
            assert_eq!(regular_file(&path).unwrap_err().0, want);
            assert_eq!(open_regular(&path).unwrap_err().0, want);
        };
        check("p", "not a regular file (pipe)");
        check("s", "not a regular file (socket)");
        check("z", "not a regular file (device)");
        check("src", "is a directory");
        check("absent", "no such file or directory");
        assert_eq!(open_regular(&scratch.path("w/src/x")).unwrap().1.len(), 1);
    }
}
