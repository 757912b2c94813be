//! What is searched for: plain text or a regular expression that stays within one line.
//!
//! Whole buffers are searched, not line by line, which is several times faster. So an expression
//! is rewritten before it is compiled: its classes lose the line feed, `^`, `\A`, `$` and `\z` mean
//! the ends of a line, and a carriage return before the line feed belongs to the line's end.

use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind,
    Look, Repetition,
};

/// Compiled size that an expression may have.
const SIZE_MAX: usize = 16 * 1024 * 1024;

#[derive(Clone)]
pub enum Pattern {
    Text(Box<Finder<'static>>),
    Regex(Regex),
}

impl Pattern {
    /// Errors are for the model: what is wrong, where, what to do.
    pub fn new(text: &str, regex: bool, ignore_case: bool) -> Result<Pattern, String> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() {
            return Err("'pattern' is empty; to list files use find".to_owned());
        }
        if !regex && text.contains('\n') {
            return Err(SPANS_LINES.to_owned());
        }
        if !regex && !ignore_case {
            return Ok(Pattern::Text(Box::new(Finder::new(text).into_owned())));
        }
        let escaped;
        let expression = match regex {
            true => text,
            false => {
                escaped = regex_syntax::escape(text);
                &escaped
            }
        };
        let hir = regex_syntax::ParserBuilder::new()
            .utf8(false)
            .multi_line(true)
            .crlf(true)
            .case_insensitive(ignore_case)
            .build()
            .parse(expression)
            .map_err(|error| explain(&error))?;
        let within_line = within_line(hir)?.to_string();
        let compiled = RegexBuilder::new(&within_line).size_limit(SIZE_MAX).build();
        compiled.map(Pattern::Regex).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                "the regular expression is too large: use smaller repetitions".to_owned()
            }
            other => format!("the regular expression cannot be used: {other}"),
        })
    }

    /// The first match at or after `at`, which must be the start of a line. Never spans lines.
    pub fn find_at(&self, bytes: &[u8], at: usize) -> Option<(usize, usize)> {
        match self {
            Pattern::Text(finder) => {
                let start = at + finder.find(&bytes[at..])?;
                Some((start, start + finder.needle().len()))
            }
            Pattern::Regex(regex) => {
                regex.find_at(bytes, at).map(|found| (found.start(), found.end()))
            }
        }
    }
}

/// Whether plain text has signs that look like a regular expression's.
pub fn looks_like_regex(text: &str) -> bool {
    let pieces =
        ["|", ".*", ".+", "\\b", "\\s", "\\w", "\\d", "\\.", "\\(", "\\[", "\\|", "(?", "[^"];
    pieces.iter().any(|piece| text.contains(piece))
        || text.starts_with('^')
        || text.ends_with('$')
        || (text.contains('[') && text.contains("]+"))
}

const SPANS_LINES: &str =
    "the pattern has a line break: lines are searched one by one; search for one of its lines";

fn explain(error: &regex_syntax::Error) -> String {
    let (what, at) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start.column),
        regex_syntax::Error::Translate(error) => {
            (error.kind().to_string(), error.span().start.column)
        }
        other => (other.to_string(), 1),
    };
    format!(
        "the regular expression is wrong at character {at}: {what}; to search for this text as it \
         is, leave out regex"
    )
}

/// The same expression, unable to match a line feed.
fn within_line(hir: Hir) -> Result<Hir, String> {
    let all = |parts: Vec<Hir>| parts.into_iter().map(within_line).collect::<Result<Vec<_>, _>>();
    Ok(match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => {
            if literal.0.contains(&b'\n') {
                return Err(SPANS_LINES.to_owned());
            }
            Hir::literal(literal.0)
        }
        HirKind::Class(Class::Unicode(mut class)) => {
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(mut class)) => {
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(Look::Start | Look::StartLF) => Hir::look(Look::StartCRLF),
        HirKind::Look(Look::End | Look::EndLF) => Hir::look(Look::EndCRLF),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            let sub = Box::new(within_line(*sub)?);
            Hir::repetition(Repetition { min, max, greedy, sub })
        }
        HirKind::Capture(Capture { sub, .. }) => within_line(*sub)?,
        HirKind::Concat(parts) => Hir::concat(all(parts)?),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pattern: &str, text: &str) -> Option<(usize, usize)> {
        Pattern::new(pattern, true, false).unwrap().find_at(text.as_bytes(), 0)
    }

    #[test]
    fn an_expression_stays_within_its_line() {
        let check = |pattern: &str, text: &str, want| assert_eq!(find(pattern, text), want);
        check(r"a\s+b", "a\nb\na b", Some((4, 7)));
        check("[^x]*c", "a\nbc", Some((2, 4)));
        check("(?s)a.*b", "a\nb ab", Some((4, 6)));
        check(r"(?s-u:.)b", "\nb\u{e9}b", Some((3, 5)));
        check(r"\Ab\z", "a\nb\nc", Some((2, 3)));
        check("end$", "an end\r\nmore", Some((3, 6)));
        check("^more", "an end\r\nmore", Some((8, 12)));
    }

    #[test]
    fn what_cannot_be_searched_for_is_said() {
        let check = |pattern: &str, regex, want: &str| {
            let error = Pattern::new(pattern, regex, false).err().unwrap();
            assert!(error.contains(want), "{error}");
        };
        check("", false, "'pattern' is empty");
        check("\n", false, "'pattern' is empty");
        check("a\nb", false, "has a line break");
        check(r"a\nb", true, "has a line break");
        check(r"(a|b\n?)c", true, "has a line break");
        check("x(", true, "wrong at character 2: unclosed group; to search for this text as it is");
        check(r"\p{Foo}", true, "Unicode property not found");
        check(r"(\w{100}){100}", true, "too large: use smaller repetitions");
    }

    #[test]
    fn case_is_ignored_for_all_letters() {
        let pattern = Pattern::new("\u{c4}.x", false, true).unwrap();
        assert_eq!(pattern.find_at("a \u{e4}.X".as_bytes(), 0), Some((2, 6)));
        assert_eq!(pattern.find_at("\u{e4}-x".as_bytes(), 0), None);
    }
}
