//! Shell patterns: the matcher that ignore rules and the tools' `glob` arguments share.
//!
//! [`matches()`] follows git's own matcher step by step, oddities included. [`Glob`] is what a model
//! or a person writes: a pattern without `/` matches a name at any depth, one with `/` a path;
//! `{a,b}` means either; a leading `!` turns it round. No pattern costs more than a bounded number
//! of steps; past it, it does not match.

/// How a pattern reads text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// `*`, `?` and classes stop at `/`; only `**` between slashes crosses it.
    pub path: bool,
    /// `?` and classes take whole characters, not bytes (git takes bytes).
    pub chars: bool,
}

/// Far more than any pattern that someone wrote on purpose needs.
const STEPS_MAX: u32 = 200_000;
/// Alternatives that braces may expand to.
const ALTERNATIVES_MAX: usize = 256;

/// Whether the whole text matches the whole pattern.
pub fn matches(pattern: &[u8], text: &[u8], mode: Mode) -> bool {
    let mut matcher = Matcher { pattern, text, mode, steps: STEPS_MAX };
    matcher.run(0, 0) == Outcome::Match
}

/// Whether a byte has a meaning of its own in a pattern.
pub fn is_special(byte: u8) -> bool {
    matches!(byte, b'*' | b'?' | b'[' | b'\\')
}

/// Why a part of a pattern does not match decides how far to back up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Match,
    No,
    /// No longer text for the star before would help.
    AbortAll,
    /// Only a `**` could still help.
    AbortToStarStar,
}

struct Matcher<'a> {
    pattern: &'a [u8],
    text: &'a [u8],
    mode: Mode,
    steps: u32,
}

impl Matcher<'_> {
    fn p(&self, at: usize) -> Option<u8> {
        self.pattern.get(at).copied()
    }

    fn run(&mut self, mut p: usize, mut t: usize) -> Outcome {
        while let Some(special) = self.p(p) {
            let Some(rest) = self.steps.checked_sub(1) else { return Outcome::AbortAll };
            self.steps = rest;
            if special == b'*' {
                match self.star(p, t) {
                    Star::Done(outcome) => return outcome,
                    Star::PastSlash { pattern, text } => {
                        (p, t) = (pattern, text);
                        continue;
                    }
                }
            }
            let Some(&byte) = self.text.get(t) else { return Outcome::AbortAll };
            match special {
                b'?' => {
                    if self.mode.path && byte == b'/' {
                        return Outcome::No;
                    }
                    t += self.unit(self.text, t).1;
                    p += 1;
                }
                b'[' => match self.class(p, t) {
                    Some((true, after, len)) => {
                        p = after;
                        t += len;
                    }
                    Some((false, ..)) => return Outcome::No,
                    None => return Outcome::AbortAll,
                },
                _ => {
                    let escaped = special == b'\\';
                    // A backslash at the end matches nothing.
                    if self.p(p + usize::from(escaped)) != Some(byte) {
                        return Outcome::No;
                    }
                    p += 1 + usize::from(escaped);
                    t += 1;
                }
            }
        }
        if t == self.text.len() { Outcome::Match } else { Outcome::No }
    }

    /// Matches one or more stars at `start` and all that follows them.
    fn star(&mut self, start: usize, mut t: usize) -> Star {
        let mut p = start;
        while self.p(p) == Some(b'*') {
            p += 1;
        }
        let mut cross = !self.mode.path;
        if self.mode.path && p - start > 1 {
            let opens = start == 0 || self.pattern[start - 1] == b'/';
            let rest = &self.pattern[p..];
            let closes = rest.is_empty() || rest[0] == b'/' || rest.starts_with(b"\\/");
            if opens && closes {
                // `a/**/b` matches `a/b` too: try without anything between.
                if rest.first() == Some(&b'/') && self.run(p + 1, t) == Outcome::Match {
                    return Star::Done(Outcome::Match);
                }
                cross = true;
            }
        }
        let Some(next) = self.p(p) else {
            let stays = cross || memchr::memchr(b'/', &self.text[t..]).is_none();
            return Star::Done(if stays { Outcome::Match } else { Outcome::AbortToStarStar });
        };
        if !cross && next == b'/' {
            return match memchr::memchr(b'/', &self.text[t..]) {
                Some(offset) => Star::PastSlash { pattern: p + 1, text: t + offset + 1 },
                None => Star::Done(Outcome::AbortAll),
            };
        }
        loop {
            if !is_special(next) {
                // What stands before the next literal byte can only belong to the star.
                let rest = &self.text[t..];
                let found = if cross {
                    memchr::memchr(next, rest)
                } else {
                    memchr::memchr2(next, b'/', rest).filter(|&at| rest[at] == next)
                };
                match found {
                    Some(offset) => t += offset,
                    None if cross => return Star::Done(Outcome::AbortAll),
                    None => return Star::Done(Outcome::AbortToStarStar),
                }
            }
            if t >= self.text.len() {
                return Star::Done(Outcome::AbortAll);
            }
            let outcome = self.run(p, t);
            if outcome != Outcome::No {
                if !cross || outcome != Outcome::AbortToStarStar {
                    return Star::Done(outcome);
                }
            } else if !cross && self.text[t] == b'/' {
                return Star::Done(Outcome::AbortToStarStar);
            }
            t += 1;
        }
    }

    /// The character or byte at a place, and its length.
    fn unit(&self, bytes: &[u8], at: usize) -> (u32, usize) {
        let byte = bytes[at];
        if self.mode.chars && !byte.is_ascii() {
            let end = bytes.len().min(at + 4);
            let chunk = bytes[at..end].utf8_chunks().next();
            if let Some(c) = chunk.and_then(|chunk| chunk.valid().chars().next()) {
                return (u32::from(c), c.len_utf8());
            }
        }
        (u32::from(byte), 1)
    }

    /// Whether the class at `p` has the text at `t`; where the class ends; how much text it took.
    /// `None` for a class that does not end or names an unknown set.
    fn class(&self, p: usize, t: usize) -> Option<(bool, usize, usize)> {
        let (wanted, len) = self.unit(self.text, t);
        let mut p = p + 1;
        let negated = matches!(self.p(p), Some(b'!' | b'^'));
        p += usize::from(negated);
        let mut found = false;
        let mut previous: Option<u32> = None;
        let mut first = true;
        loop {
            let byte = self.p(p)?;
            if byte == b']' && !first {
                break;
            }
            first = false;
            if byte == b'-'
                && let Some(low) = previous
                && self.p(p + 1).is_some_and(|after| after != b']')
            {
                p += 1;
                if self.p(p) == Some(b'\\') {
                    p += 1;
                }
                self.p(p)?;
                let (high, size) = self.unit(self.pattern, p);
                found |= (low..=high).contains(&wanted);
                previous = None;
                p += size;
                continue;
            }
            if byte == b'[' && self.p(p + 1) == Some(b':') {
                let name = &self.pattern[p + 2..];
                let end = memchr::memchr(b']', name)?;
                if end > 0 && name[end - 1] == b':' {
                    found |= in_named_set(&name[..end - 1], wanted)?;
                    previous = None;
                    p += 2 + end + 1;
                    continue;
                }
            }
            if byte == b'\\' {
                p += 1;
                self.p(p)?;
            }
            let (value, size) = self.unit(self.pattern, p);
            found |= value == wanted;
            previous = Some(value);
            p += size;
        }
        let slash = self.mode.path && wanted == u32::from(b'/');
        Some((found != negated && !slash, p + 1, len))
    }
}

enum Star {
    Done(Outcome),
    /// A star before a slash took everything up to the next slash: go on behind both.
    PastSlash {
        pattern: usize,
        text: usize,
    },
}

/// POSIX sets of ASCII characters; `None` for an unknown name.
fn in_named_set(name: &[u8], value: u32) -> Option<bool> {
    let byte = u8::try_from(value).ok().filter(u8::is_ascii);
    let test: fn(u8) -> bool = match name {
        b"alnum" => |b| b.is_ascii_alphanumeric(),
        b"alpha" => |b| b.is_ascii_alphabetic(),
        b"blank" => |b| b == b' ' || b == b'\t',
        b"cntrl" => |b| b.is_ascii_control(),
        b"digit" => |b| b.is_ascii_digit(),
        b"graph" => |b| b.is_ascii_graphic(),
        b"lower" => |b| b.is_ascii_lowercase(),
        b"print" => |b| b.is_ascii_graphic() || b == b' ',
        b"punct" => |b| b.is_ascii_punctuation(),
        b"space" => |b| b.is_ascii_whitespace() || b == 0x0b,
        b"upper" => |b| b.is_ascii_uppercase(),
        b"xdigit" => |b| b.is_ascii_hexdigit(),
        _ => return None,
    };
    Some(byte.is_some_and(test))
}

/// A pattern that selects files by name or path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    negated: bool,
    alternatives: Vec<Alternative>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Alternative {
    /// `*.rs`: the most common kind, without a matcher.
    Suffix(Vec<u8>),
    Name(Vec<u8>),
    Path(Vec<u8>),
}

impl Glob {
    /// Reads a pattern; an error says what is wrong with it.
    pub fn new(pattern: &str) -> Result<Glob, String> {
        let (negated, body) = match pattern.strip_prefix('!') {
            Some(body) => (true, body),
            None => (false, pattern),
        };
        if body.is_empty() {
            return Err("the glob is empty; leave it out to match every file".to_owned());
        }
        let mut texts = Vec::new();
        expand(body.as_bytes(), &mut texts)?;
        let alternatives = texts.into_iter().map(Alternative::new).collect();
        Ok(Glob { negated, alternatives })
    }

    /// Whether a file is selected: `path` is relative to the folder the pattern is meant for.
    pub fn selects(&self, path: &[u8]) -> bool {
        let name = &path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..];
        self.alternatives.iter().any(|one| one.has(name, path)) != self.negated
    }

    /// Whether it selects what does not match.
    pub fn is_negated(&self) -> bool {
        self.negated
    }

    /// Whether it matters what a path is relative to.
    pub fn has_path(&self) -> bool {
        self.alternatives.iter().any(|one| matches!(one, Alternative::Path(_)))
    }
}

impl Alternative {
    fn new(pattern: Vec<u8>) -> Alternative {
        let mut pattern = pattern.as_slice();
        while let Some(rest) = pattern.strip_prefix(b"./") {
            pattern = rest;
        }
        match pattern {
            [b'*', rest @ ..] if !rest.iter().any(|&b| is_special(b) || b == b'/') => {
                Alternative::Suffix(rest.to_vec())
            }
            _ if pattern.contains(&b'/') => {
                Alternative::Path(pattern.strip_prefix(b"/").unwrap_or(pattern).to_vec())
            }
            _ => Alternative::Name(pattern.to_vec()),
        }
    }

    fn has(&self, name: &[u8], path: &[u8]) -> bool {
        match self {
            Alternative::Suffix(suffix) => name.ends_with(suffix),
            Alternative::Name(pattern) => matches(pattern, name, Mode { path: false, chars: true }),
            Alternative::Path(pattern) => matches(pattern, path, Mode { path: true, chars: true }),
        }
    }
}

/// Expands `{a,b}`, nested ones too. Braces without a comma, or not closed, are plain text.
fn expand(pattern: &[u8], out: &mut Vec<Vec<u8>>) -> Result<(), String> {
    let mut todo = vec![pattern.to_vec()];
    while let Some(pattern) = todo.pop() {
        match first_braces(&pattern) {
            None => out.push(pattern),
            Some((open, commas, close)) => {
                let mut start = open + 1;
                let mut grown = Vec::new();
                for end in commas.into_iter().chain([close]) {
                    let parts = [&pattern[..open], &pattern[start..end], &pattern[close + 1..]];
                    grown.push(parts.concat());
                    start = end + 1;
                }
                todo.extend(grown.into_iter().rev());
            }
        }
        if todo.len() + out.len() > ALTERNATIVES_MAX {
            return Err(format!("the glob's braces mean more than {ALTERNATIVES_MAX} patterns"));
        }
    }
    Ok(())
}

/// The first pair of braces with a comma: where it opens, its commas, where it closes.
fn first_braces(pattern: &[u8]) -> Option<(usize, Vec<usize>, usize)> {
    let mut open_at = Vec::new();
    let mut found: Option<(usize, Vec<usize>, usize)> = None;
    let mut at = 0;
    while at < pattern.len() {
        match pattern[at] {
            b'\\' => at += 1,
            b'{' => open_at.push((at, Vec::new())),
            b',' => {
                if let Some((_, commas)) = open_at.last_mut() {
                    commas.push(at);
                }
            }
            b'}' => {
                if let Some((open, commas)) = open_at.pop()
                    && !commas.is_empty()
                    && found.as_ref().is_none_or(|(first, ..)| open < *first)
                {
                    found = Some((open, commas, at));
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let mode = Mode { path: true, chars: false };
        for text in yes {
            assert!(matches(pattern.as_bytes(), text.as_bytes(), mode), "{pattern} {text}");
        }
        for text in no {
            assert!(!matches(pattern.as_bytes(), text.as_bytes(), mode), "{pattern} {text}");
        }
    }

    #[test]
    fn paths_match_as_git_matches_them() {
        check("foo", &["foo"], &["bar", "fooo", ""]);
        check("*", &["foo", ""], &["a/b"]);
        check("*f", &["f", "off"], &["fo"]);
        check("f??", &["foo"], &["fo", "f/o"]);
        check("**", &["", "a", "a/b/c"], &[]);
        check("**/foo", &["foo", "a/foo", "a/b/foo"], &["afoo", "foo/a"]);
        check("a/**", &["a/", "a/b", "a/b/c"], &["a", "b/a"]);
        check("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb"]);
        check("a/**/**/b", &["a/b", "a/x/b"], &["ab"]);
        check("foo**bar", &["foobazbar", "foobar"], &["foo/x/bar"]);
        check("x**/foo", &["x/foo", "xa/foo"], &["xa/b/foo"]);
        check("*/foo", &["a/foo"], &["foo", "a/b/foo"]);
        check("**/*x*/**/*y", &["axb/c/dy", "q/x/y"], &["y"]);
        check("a\\*b", &["a*b"], &["axb"]);
        check("a\\", &[], &["a", "a\\"]);
        check("[a-c]x", &["ax", "cx"], &["dx", "/x"]);
        check("[!a]", &["b", "]"], &["a", "/"]);
        check("[]a]", &["]", "a"], &["b"]);
        check("[^]a]", &["b"], &["]", "a"]);
        check("[a-]", &["a", "-"], &["b"]);
        check("[\\]]", &["]"], &["\\"]);
        check("[[:digit:]x]", &["7", "x"], &["a", ":"]);
        check("[[:bad:]]", &[], &["b", ":"]);
        check("[[:x]", &["[", ":", "x"], &["y"]);
        check("[abc", &[], &["a", "[abc"]);
        check("x[--0]", &["x-", "x.", "x0"], &["x1"]);
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let text = b"a/".repeat(200);
        let pattern = b"**/a/".repeat(60);
        assert!(!matches(&[&pattern[..], b"b"].concat(), &text, Mode { path: true, chars: false }));
        let stars = b"*a".repeat(50);
        let text = b"a".repeat(5000);
        assert!(!matches(&[&stars[..], b"b"].concat(), &text, Mode { path: false, chars: false }));
    }

    #[test]
    fn globs_select_names_paths_and_alternatives() {
        let check = |glob: &str, yes: &[&str], no: &[&str]| {
            let parsed = Glob::new(glob).unwrap();
            for path in yes {
                assert!(parsed.selects(path.as_bytes()), "{glob} {path}");
            }
            for path in no {
                assert!(!parsed.selects(path.as_bytes()), "{glob} {path}");
            }
        };
        check("*.rs", &["a.rs", "src/b.rs"], &["a.rsx", "rs"]);
        check("src/*.rs", &["src/a.rs"], &["a.rs", "src/x/a.rs", "x/src/a.rs"]);
        check("./src/**/*.rs", &["src/a.rs", "src/x/y/a.rs"], &["a.rs"]);
        check("/a.rs", &["a.rs"], &["b/a.rs"]);
        check("*.{ts,tsx}", &["a.ts", "x/b.tsx"], &["a.t", "a.{ts,tsx}"]);
        check("{src,lib/{a,b}}/x", &["src/x", "lib/a/x", "lib/b/x"], &["lib/x"]);
        check("a{b}", &["a{b}"], &["ab"]);
        check("a{b,c", &["a{b,c"], &["ab"]);
        check("!*.rs", &["a.go"], &["a.rs", "x/b.rs"]);
        check("caf?", &["caf\u{e9}"], &["caf\u{e9}s"]);
        check("[\u{e9}x]", &["\u{e9}", "x"], &["y"]);
        check("\\*\\[x\\]\\*", &["*[x]*"], &["axb"]);
        check("**", &["a", "b/c"], &[]);
        assert!(Glob::new("").is_err() && Glob::new("!").is_err());
        let many = "{a,b}".repeat(20);
        assert_eq!(Glob::new(&many).unwrap_err(), "the glob's braces mean more than 256 patterns");
    }
}
