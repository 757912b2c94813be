//! One file of ignore rules: git's syntax in, verdicts out.
//!
//! Reads no file and knows no tree: [`layers`] does. Rules follow git to the letter: comments,
//! escapes, trailing spaces, negation, anchoring, directories only, the last match wins. Names and
//! endings, which most rules are, are looked up and not matched one by one.

pub mod layers;

use crate::workspace::glob::{self, Mode};

/// What rules say of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Ignored,
    /// By a `!` rule: neither an earlier rule nor being hidden takes it away.
    Kept,
}

/// The rules of one file in order.
#[derive(Debug, Default)]
pub struct Rules {
    /// Per rule: whether it starts with `!`.
    negated: Vec<bool>,
    /// `target`: the whole name.
    names: Table,
    /// `*.o`: the part of the name behind its last dot.
    endings: Table,
    /// Everything else, in order.
    others: Vec<Other>,
}

/// Sorted words with the last rule that has them, for files and for directories, as index + 1.
type Table = Vec<(Box<[u8]>, Last)>;

#[derive(Debug, Clone, Copy, Default)]
struct Last {
    file: u32,
    dir: u32,
}

impl Last {
    fn get(self, is_dir: bool) -> u32 {
        if is_dir { self.dir } else { self.file }
    }
}

#[derive(Debug)]
struct Other {
    /// Index of the rule + 1.
    number: u32,
    dir_only: bool,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Suffix(Box<[u8]>),
    Name(Box<[u8]>),
    /// A path: up to `literal` bytes are compared, the rest is matched, as git does.
    Path {
        pattern: Box<[u8]>,
        literal: usize,
    },
}

impl Rules {
    /// Reads a file of rules. Lines that are no rule are skipped; nothing is an error in git.
    pub fn parse(text: &[u8]) -> Rules {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut rules = Rules::default();
        for line in text.split(|byte| *byte == b'\n') {
            // A NUL ends a line for git.
            let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.starts_with(b"#") {
                rules.push(without_trailing_spaces(line));
            }
        }
        for table in [&mut rules.names, &mut rules.endings] {
            // Stable, so that of equal words the last rule stays last; then folded into one row.
            table.sort_by(|a, b| a.0.cmp(&b.0));
            table.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    earlier.1.file = earlier.1.file.max(later.1.file);
                    earlier.1.dir = earlier.1.dir.max(later.1.dir);
                }
                same
            });
        }
        rules
    }

    pub fn is_empty(&self) -> bool {
        self.negated.is_empty()
    }

    fn push(&mut self, line: &[u8]) {
        let (negated, mut pattern) = match line {
            [b'!', rest @ ..] => (true, rest),
            _ => (false, line),
        };
        let dir_only = pattern.ends_with(b"/");
        if dir_only {
            pattern = &pattern[..pattern.len() - 1];
        }
        if pattern.is_empty() {
            return;
        }
        self.negated.push(negated);
        let number = u32::try_from(self.negated.len()).unwrap_or(u32::MAX);
        let last = Last { file: if dir_only { 0 } else { number }, dir: number };
        let special = |bytes: &[u8]| bytes.iter().any(|byte| glob::is_special(*byte));
        let test = match pattern {
            _ if pattern.contains(&b'/') => {
                let pattern = pattern.strip_prefix(b"/").unwrap_or(pattern);
                let literal = pattern.iter().position(|byte| glob::is_special(*byte));
                Test::Path { pattern: pattern.into(), literal: literal.unwrap_or(pattern.len()) }
            }
            _ if !special(pattern) => {
                self.names.push((pattern.into(), last));
                return;
            }
            [b'*', b'.', ending @ ..] if !special(ending) && !ending.contains(&b'.') => {
                self.endings.push((ending.into(), last));
                return;
            }
            [b'*', suffix @ ..] if !special(suffix) => Test::Suffix(suffix.into()),
            _ => Test::Name(pattern.into()),
        };
        self.others.push(Other { number, dir_only, test });
    }

    /// What the last rule that matches says; `path` is relative to the folder of the rules and
    /// `name` its last component.
    pub fn verdict(&self, path: &[u8], name: &[u8], is_dir: bool) -> Option<Verdict> {
        let mut best = look_up(&self.names, name).get(is_dir);
        if !self.endings.is_empty()
            && let Some(dot) = memchr::memrchr(b'.', name)
        {
            best = best.max(look_up(&self.endings, &name[dot + 1..]).get(is_dir));
        }
        let later = self.others.iter().rev().take_while(|other| other.number > best);
        for other in later {
            if (is_dir || !other.dir_only) && other.test.has(path, name) {
                best = other.number;
                break;
            }
        }
        let negated = self.negated.get(usize::try_from(best).ok()?.checked_sub(1)?)?;
        Some(if *negated { Verdict::Kept } else { Verdict::Ignored })
    }
}

impl Test {
    fn has(&self, path: &[u8], name: &[u8]) -> bool {
        match self {
            Test::Suffix(suffix) => name.ends_with(suffix),
            Test::Name(pattern) => glob::matches(pattern, name, BYTES),
            Test::Path { pattern, literal } => {
                let (plain, rest) = pattern.split_at(*literal);
                path.strip_prefix(plain).is_some_and(|path| {
                    if rest.is_empty() { path.is_empty() } else { glob::matches(rest, path, PATH) }
                })
            }
        }
    }
}

const BYTES: Mode = Mode { path: false, chars: false };
const PATH: Mode = Mode { path: true, chars: false };

fn look_up(table: &Table, word: &[u8]) -> Last {
    let found = table.binary_search_by(|row| (*row.0).cmp(word));
    found.map_or(Last::default(), |at| table[at].1)
}

/// Spaces at the end do not count, unless a backslash stands before them.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b' ' => at += 1,
            b'\\' => {
                at = line.len().min(at + 2);
                end = at;
            }
            _ => {
                at += 1;
                end = at;
            }
        }
    }
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rules: &str, path: &str, want: Option<Verdict>) {
        let parsed = Rules::parse(rules.as_bytes());
        let is_dir = path.ends_with('/');
        let path = path.trim_end_matches('/');
        let name = path.rsplit('/').next().unwrap();
        let got = parsed.verdict(path.as_bytes(), name.as_bytes(), is_dir);
        assert_eq!(got, want, "{rules:?} {path:?}");
    }

    const IGNORED: Option<Verdict> = Some(Verdict::Ignored);
    const KEPT: Option<Verdict> = Some(Verdict::Kept);

    #[test]
    fn rules_are_read_as_git_reads_them() {
        check("target", "a/target", IGNORED);
        check("target/", "target", None);
        check("target/", "target/", IGNORED);
        check("/a", "b/a", None);
        check("a/b", "a/b", IGNORED);
        check("a/b", "x/a/b", None);
        check("**/cache/*", "pkg/cache/note", IGNORED);
        check("*.o\n!keep.o", "x/keep.o", KEPT);
        check("!keep.o\n*.o", "keep.o", IGNORED);
        check("*.tar.gz", "a.tar.gz", IGNORED);
        check("*.gz\n!*.tar.gz", "a.tar.gz", KEPT);
        check("foo\n!foo/", "foo", IGNORED);
        check("foo\n!foo/", "foo/", KEPT);
        check("# no\n\\#yes", "#yes", IGNORED);
        check("# no", "# no", None);
        check("\\!yes", "!yes", IGNORED);
        check("a  \r\nb", "a", IGNORED);
        check("a\\  ", "a ", IGNORED);
        check("a ", "a ", None);
        check("\u{feff}a", "a", IGNORED);
        check("\n/\n!\n!/\n", "a", None);
        check("foo//", "foo/", None);
        check(".*\n!.env.sample", "pkg/.env.sample", KEPT);
        check(".*\n!.env.sample", ".env", IGNORED);
    }
}
