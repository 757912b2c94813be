//! Which files of rules apply where: from the user's own excludes down to the folder itself.
//!
//! Rules count from the repository's root: the nearest folder above, home excluded, that has
//! `.git`. Without one they count from a base that the caller gives. A repository inside another
//! starts afresh. `.ignore` files come before all git rules.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::host::Host;
use crate::workspace::ignore::{Rules, Verdict};
use crate::workspace::open_regular;

/// Larger files of rules are no files of rules.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Rules of one folder, and those they are stronger than.
#[derive(Debug)]
struct Layer {
    weaker: Option<Arc<Layer>>,
    /// Length of the folder's absolute path with its slash.
    base: usize,
    rules: Arc<Rules>,
}

/// All rules that apply in one folder; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    git: Option<Arc<Layer>>,
    plain: Option<Arc<Layer>>,
}

/// Where the user's own rules are.
#[derive(Debug, Clone, Default)]
pub struct UserFiles {
    home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    config: Option<PathBuf>,
}

/// The user's own excludes, read once per search.
#[derive(Debug, Default)]
pub struct User {
    files: UserFiles,
    excludes: Arc<Rules>,
}

impl UserFiles {
    pub fn of(host: &Host) -> UserFiles {
        let home = host.home().map(Path::to_owned);
        let config = host.var("XDG_CONFIG_HOME").filter(|dir| dir.starts_with('/'));
        let config = config.map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".config")));
        UserFiles { home, config }
    }

    /// `core.excludesFile` of the user's git configuration, else git's default place.
    fn excludes_path(&self) -> Option<PathBuf> {
        let config = self.config.as_ref().map(|dir| dir.join("git/config"));
        let gitconfig = self.home.as_ref().map(|home| home.join(".gitconfig"));
        let named = [gitconfig, config].into_iter().flatten().find_map(|path| {
            let text = read_bounded(&path)?;
            excludes_file(&String::from_utf8_lossy(&text))
        });
        let Some(named) = named else { return Some(self.config.as_ref()?.join("git/ignore")) };
        match named.strip_prefix("~/") {
            Some(below) => Some(self.home.as_ref()?.join(below)),
            None => Some(PathBuf::from(named)),
        }
    }
}

impl User {
    pub fn read(files: &UserFiles) -> User {
        let path = files.excludes_path().filter(|path| path.is_absolute());
        let excludes = path.map(|path| read_rules(&path)).unwrap_or_default();
        User { files: files.clone(), excludes: Arc::new(excludes) }
    }
}

impl Layers {
    /// What applies in `dir`, which is canonical, from everything above it (its own files come by
    /// [`Layers::enter`]). Without a repository, rules count from `base` when `dir` is below it.
    pub fn above(dir: &Path, base: &Path, user: &User) -> Layers {
        let mut start = None;
        for ancestor in dir.ancestors() {
            let home = user.files.home.as_deref() == Some(ancestor);
            if home && ancestor != dir {
                break;
            }
            if ancestor.join(".git").symlink_metadata().is_ok() {
                start = Some(ancestor);
                break;
            }
        }
        let top = start.unwrap_or(if dir.starts_with(base) { base } else { dir });
        let mut layers = Layers::repository(top, user);
        let mut chain: Vec<_> = dir.ancestors().take_while(|above| *above != top).collect();
        // `dir` itself is entered by the walk.
        if !chain.is_empty() {
            chain.remove(0);
            chain.push(top);
        }
        for folder in chain.into_iter().rev() {
            let is_file = |name: &str| {
                folder.join(name).symlink_metadata().is_ok_and(|metadata| metadata.is_file())
            };
            layers = layers.with_files(folder, is_file(".gitignore"), is_file(".ignore"));
        }
        layers
    }

    /// A repository's start: the user's excludes, then its own.
    fn repository(root: &Path, user: &User) -> Layers {
        let base = base_of(root);
        let mut layers = Layers::default();
        push(&mut layers.git, base, &user.excludes);
        if let Some(info) = exclude_path(root) {
            push(&mut layers.git, base, &Arc::new(read_rules(&info)));
        }
        layers
    }

    /// What applies to the entries of `dir`, given which files it has.
    pub fn enter(&self, dir: &Path, has: Has, user: &User) -> Layers {
        let mut layers = self.clone();
        if has.git {
            layers.git = Layers::repository(dir, user).git;
        }
        layers.with_files(dir, has.gitignore, has.ignore)
    }

    fn with_files(mut self, dir: &Path, gitignore: bool, ignore: bool) -> Layers {
        let base = base_of(dir);
        if gitignore {
            push(&mut self.git, base, &Arc::new(read_rules(&dir.join(".gitignore"))));
        }
        if ignore {
            push(&mut self.plain, base, &Arc::new(read_rules(&dir.join(".ignore"))));
        }
        self
    }

    /// What the rules say of an absolute path whose name starts at `name_at`.
    pub fn verdict(&self, path: &[u8], name_at: usize, is_dir: bool) -> Option<Verdict> {
        let of = |first: &Option<Arc<Layer>>| {
            let mut layer = first.as_ref();
            while let Some(current) = layer {
                let below = path.get(current.base..)?;
                let verdict = current.rules.verdict(below, &path[name_at..], is_dir);
                if verdict.is_some() {
                    return verdict;
                }
                layer = current.weaker.as_ref();
            }
            None
        };
        of(&self.plain).or_else(|| of(&self.git))
    }

    pub fn is_empty(&self) -> bool {
        self.git.is_none() && self.plain.is_none()
    }
}

/// Files of a folder that change the rules below it. Like git, links are not followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Has {
    pub git: bool,
    pub gitignore: bool,
    pub ignore: bool,
}

fn push(chain: &mut Option<Arc<Layer>>, base: usize, rules: &Arc<Rules>) {
    if !rules.is_empty() {
        let weaker = chain.take();
        *chain = Some(Arc::new(Layer { weaker, base, rules: Arc::clone(rules) }));
    }
}

/// Where a path below `dir` starts in an absolute path.
fn base_of(dir: &Path) -> usize {
    let length = dir.as_os_str().len();
    if dir.as_os_str().as_bytes().ends_with(b"/") { length } else { length + 1 }
}

/// `info/exclude` of the repository at `root`; `.git` may be a file that points elsewhere.
fn exclude_path(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    let metadata = fs::metadata(&git).ok()?;
    if metadata.is_dir() {
        return Some(git.join("info/exclude"));
    }
    let text = read_bounded(&git)?;
    let dir = std::str::from_utf8(&text).ok()?.strip_prefix("gitdir:")?.trim();
    let dir = root.join(dir);
    let common = read_bounded(&dir.join("commondir"));
    let common = common.and_then(|text| Some(dir.join(std::str::from_utf8(&text).ok()?.trim())));
    Some(common.unwrap_or(dir).join("info/exclude"))
}

fn read_rules(path: &Path) -> Rules {
    read_bounded(path).map(|text| Rules::parse(&text)).unwrap_or_default()
}

/// A regular file that is not too large; everything else counts as absent.
fn read_bounded(path: &Path) -> Option<Vec<u8>> {
    let (file, metadata) = open_regular(path).ok()?;
    if metadata.len() > FILE_BYTES_MAX {
        return None;
    }
    let mut text = Vec::with_capacity(usize::try_from(metadata.len()).ok()? + 1);
    File::take(file, FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The last `excludesFile` of section `[core]` in a git configuration; includes are not followed.
fn excludes_file(text: &str) -> Option<String> {
    let mut in_core = false;
    let mut found = None;
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let Some((section, after)) = rest.split_once(']') else { continue };
            in_core = section.trim().eq_ignore_ascii_case("core");
            line = after.trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        if in_core && key.trim().eq_ignore_ascii_case("excludesfile") {
            let value = value.trim();
            let value = match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap_or_default(),
                None => value.split([';', '#']).next().unwrap_or_default().trim(),
            };
            found = Some(value.to_owned()).filter(|value| !value.is_empty());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excludes_file_is_found_in_a_git_configuration() {
        let check = |text: &str, want: Option<&str>| {
            assert_eq!(excludes_file(text).as_deref(), want, "{text}");
        };
        check("[core]\n\texcludesFile = ~/.gitignore_global\n", Some("~/.gitignore_global"));
        check("[Core] EXCLUDESFILE=\"/a b\"", Some("/a b"));
        check("[core]\nexcludesfile = /a # why\n[user]\nexcludesfile = /b", Some("/a"));
        check("[core]\neditor = vi", None);
        check("[core \"sub\"]\nexcludesfile = /a", None);
    }
}
