//! One value: from TOML or from typed text to what its key wants, and back to TOML.

use std::path::{Path, PathBuf};

use crate::config::error::nearest;
use crate::config::{Key, Kind, Secret, Value};
use crate::toml::{self, Data};
use crate::wire::url::{self, Url};

/// How much of a wrong value an error repeats.
const SHOWN_CHARS_MAX: usize = 40;

/// What paths are relative to, and where a file that sets one stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bases<'a> {
    /// For [`Kind::Path`].
    pub base: &'a Path,
    /// A second folder, tried for a file that is not below `base`.
    pub fallback: Option<&'a Path>,
    /// For [`Kind::ProjectPath`].
    pub project: &'a Path,
    pub home: Option<&'a Path>,
}

/// The value of a file's entry. The error is `wanted …, found …; hint`.
pub(crate) fn from_toml(
    kind: Kind,
    value: &toml::Value,
    bases: &Bases<'_>,
) -> Result<Value, String> {
    match (kind, &value.data) {
        (Kind::Secret, _) => Err("credentials are not kept in configuration: set the variable or \
                                 the flag instead"
            .to_owned()),
        (Kind::Bool, Data::Bool(flag)) => Ok(Value::Bool(*flag)),
        (Kind::Int { min, max }, Data::Int(int)) => in_range(*int, min, max),
        (Kind::List, Data::List(items)) => {
            let mut list = Vec::with_capacity(items.len());
            for item in items {
                match &item.data {
                    Data::Text(text) => list.push(text.clone()),
                    _ => {
                        return Err(format!("wanted a list of texts, found {} in it", found(item)));
                    }
                }
            }
            Ok(Value::List(list))
        }
        (
            Kind::Text | Kind::Path | Kind::ProjectPath | Kind::Url | Kind::Choice(_),
            Data::Text(text),
        ) => from_string(kind, text, bases),
        _ => {
            let hint = match (kind, &value.data) {
                (Kind::Bool, Data::Text(text)) => match spelled_bool(text) {
                    Some(flag) => format!("; write {flag} without quotes"),
                    None => String::new(),
                },
                (Kind::Int { .. }, Data::Text(text)) if text.trim().parse::<i64>().is_ok() => {
                    "; write it without quotes".to_owned()
                }
                (Kind::List, Data::Text(text)) => format!("; write [{}]", quote(&shortened(text))),
                (Kind::Text | Kind::Choice(_), Data::Int(_) | Data::Bool(_) | Data::Float(_)) => {
                    "; put it in quotes".to_owned()
                }
                _ => String::new(),
            };
            Err(format!("wanted {}, found {}{hint}", kind.in_words(), found(value)))
        }
    }
}

/// The value of a flag, a variable or a default, as typed: text needs no quotes, a list is
/// `a,b` or `["a", "b"]`.
pub(crate) fn from_text(kind: Kind, text: &str, bases: &Bases<'_>) -> Result<Value, String> {
    let trimmed = text.trim();
    match kind {
        Kind::Secret => secret(trimmed),
        Kind::Bool => match trimmed {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            _ => Err(format!("wanted {}, found {}", kind.in_words(), shown(trimmed))),
        },
        Kind::Int { min, max } => match trimmed.replace('_', "").parse() {
            Ok(int) => in_range(int, min, max),
            Err(_) => Err(format!("wanted {}, found {}", kind.in_words(), shown(trimmed))),
        },
        Kind::List if trimmed.starts_with('[') => from_toml(kind, &quoted(trimmed)?, bases),
        Kind::List => {
            let items = trimmed.split(',').map(str::trim).filter(|item| !item.is_empty());
            Ok(Value::List(items.map(str::to_owned).collect()))
        }
        _ if trimmed.len() > 1
            && trimmed.starts_with(['"', '\''])
            && ends_as_it_starts(trimmed) =>
        {
            from_toml(kind, &quoted(trimmed)?, bases)
        }
        Kind::Text => Ok(Value::Text(text.to_owned())),
        Kind::Path | Kind::ProjectPath | Kind::Url | Kind::Choice(_) => {
            from_string(kind, trimmed, bases)
        }
    }
}

/// A key as a header can carry it. A line end after it, as of a file or a variable, is not part of
/// it; the messages never repeat it.
fn secret(text: &str) -> Result<Value, String> {
    let what = if text.is_empty() {
        "it is empty"
    } else if text.contains(['\n', '\r']) {
        "it has a line break in the middle"
    } else if text.contains(char::is_whitespace) {
        "it has a blank in the middle"
    } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        "it has a character that is not plain ASCII"
    } else {
        return Ok(Value::Secret(Secret::new(text.to_owned())));
    };
    Err(format!("wanted a key, but {what}; copy it again"))
}

fn ends_as_it_starts(text: &str) -> bool {
    text.chars().next() == text.chars().next_back()
}

/// Text that is written as in a file.
fn quoted(text: &str) -> Result<toml::Value, String> {
    let document = toml::parse(format!("x = {text}").as_bytes()).map_err(|error| error.message)?;
    document.get("x").cloned().ok_or_else(|| format!("wanted one value, found {}", shown(text)))
}

fn in_range(int: i64, min: i64, max: i64) -> Result<Value, String> {
    if (min..=max).contains(&int) {
        return Ok(Value::Int(int));
    }
    Err(format!("wanted {}, found {int}", Kind::Int { min, max }.in_words()))
}

fn from_string(kind: Kind, text: &str, bases: &Bases<'_>) -> Result<Value, String> {
    match kind {
        Kind::Choice(choices) => {
            if choices.contains(&text) {
                return Ok(Value::Text(text.to_owned()));
            }
            let hint = match nearest(&text.to_lowercase(), choices.iter().copied()) {
                Some(choice) => format!("; did you mean {}?", quote(choice)),
                None => String::new(),
            };
            Err(format!("wanted {}, found {}{hint}", kind.in_words(), shown(text)))
        }
        Kind::Url => {
            let text = text.trim();
            match check_url(text) {
                Ok(()) => Ok(Value::Text(text.to_owned())),
                Err(why) => {
                    let found = shown(&url::printable(text));
                    Err(format!("wanted {}, found {found}; {why}", kind.in_words()))
                }
            }
        }
        Kind::Path => path(text, bases.base, bases.fallback, bases.home).map(Value::Path),
        Kind::ProjectPath => path(text, bases.project, None, bases.home).map(Value::Path),
        Kind::Text | Kind::Bool | Kind::Int { .. } | Kind::List | Kind::Secret => {
            Ok(Value::Text(text.to_owned()))
        }
    }
}

fn path(
    text: &str,
    base: &Path,
    fallback: Option<&Path>,
    home: Option<&Path>,
) -> Result<PathBuf, String> {
    if text.trim().is_empty() {
        return Err("wanted a path, found empty text; leave the key out to unset it".to_owned());
    }
    if let Some(rest) = text.strip_prefix('~') {
        let Some(below) = rest.strip_prefix('/').or(rest.is_empty().then_some("")) else {
            return Err(format!(
                "wanted a path, found {}; only '~' and '~/' are expanded",
                shown(text)
            ));
        };
        let home = home.ok_or("cannot expand '~': HOME is not set; write the whole path")?;
        return Ok(if below.is_empty() { home.to_owned() } else { home.join(below) });
    }
    let path = base.join(text);
    if let Some(fallback) = fallback.map(|folder| folder.join(text))
        && !path.exists()
        && fallback.exists()
    {
        return Ok(fallback);
    }
    Ok(path)
}

/// A URL that can be spoken to. Without a scheme it is left to the adapter which one is meant.
fn check_url(text: &str) -> Result<(), String> {
    let parsed = match text.contains("://") {
        true => Url::parse(text),
        false => Url::parse(&format!("http://{text}")),
    };
    // The message repeats the whole text before its reason.
    parsed.map(drop).map_err(|error| {
        error.rsplit_once("URL: ").map_or(error.as_str(), |(_, why)| why).to_owned()
    })
}

impl Kind {
    /// What a key of this kind wants, in words.
    pub fn in_words(self) -> String {
        match self {
            Kind::Text => "text".to_owned(),
            Kind::Path | Kind::ProjectPath => "a path".to_owned(),
            Kind::Url => "an http:// or https:// URL".to_owned(),
            Kind::Bool => "true or false".to_owned(),
            Kind::Int { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Choice(choices) => {
                let all: Vec<String> = choices.iter().map(|choice| quote(choice)).collect();
                format!("one of {}", all.join(", "))
            }
            Kind::List => "a list of texts".to_owned(),
            Kind::Secret => "a key".to_owned(),
        }
    }
}

/// What stands there instead, in words.
pub(crate) fn found(value: &toml::Value) -> String {
    match &value.data {
        Data::Text(text) => format!("text {}", shown(text)),
        Data::Int(int) => format!("the number {int}"),
        Data::Float(float) => format!("the number {float:?}"),
        Data::Bool(flag) => format!("{flag}"),
        Data::List(_) | Data::Table(_) => value.kind().to_owned(),
    }
}

fn shown(text: &str) -> String {
    quote(&shortened(text))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `yes`, `on`, `1`, … as somebody may have meant them.
fn spelled_bool(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// A basic string of TOML.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl Value {
    /// As it stands in a file. A path that is not UTF-8 is shown with replacement characters.
    pub fn to_toml(&self) -> String {
        match self {
            Value::Text(text) => quote(text),
            Value::Path(path) => quote(&path.to_string_lossy()),
            Value::Secret(_) => quote("[redacted]"),
            Value::Bool(flag) => flag.to_string(),
            Value::Int(int) => int.to_string(),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(|item| quote(item)).collect();
                format!("[{}]", items.join(", "))
            }
        }
    }
}

impl Key {
    /// The default as a value; `None` when the key is unset by default.
    pub fn default_value(&self) -> Option<Value> {
        let nowhere = Path::new("");
        let bases = Bases { base: nowhere, fallback: None, project: nowhere, home: None };
        match (self.kind, self.default?) {
            // Not resolved: there is no file that it would be relative to.
            (Kind::Path | Kind::ProjectPath, path) => Some(Value::Path(PathBuf::from(path))),
            (kind, text) => from_text(kind, text, &bases).ok(),
        }
    }

    /// The table that the key belongs to.
    pub fn table(&self) -> &'static str {
        self.name.rsplit_once('.').map_or("", |(table, _)| table)
    }

    /// The name without its table.
    pub fn leaf(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, leaf)| leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICES: Kind = Kind::Choice(&["chat", "responses"]);
    const COUNT: Kind = Kind::Int { min: 1, max: 100 };

    fn bases() -> Bases<'static> {
        let path = Path::new;
        Bases {
            base: path("/p"),
            fallback: None,
            project: path("/root"),
            home: Some(path("/home/u")),
        }
    }

    #[track_caller]
    fn check(kind: Kind, written: &str, want: Result<Value, &str>) {
        let document = toml::parse(format!("x = {written}").as_bytes()).unwrap();
        let got = from_toml(kind, document.get("x").unwrap(), &bases());
        assert_eq!(
            got.as_ref().map_err(String::as_str),
            want.as_ref().map_err(|e| *e),
            "{written}"
        );
    }

    #[track_caller]
    fn check_typed(kind: Kind, typed: &str, want: Result<Value, &str>) {
        let got = from_text(kind, typed, &bases());
        assert_eq!(got.as_ref().map_err(String::as_str), want.as_ref().map_err(|e| *e), "{typed}");
    }

    fn text(text: &str) -> Result<Value, &'static str> {
        Ok(Value::Text(text.to_owned()))
    }

    fn path(path: &str) -> Result<Value, &'static str> {
        Ok(Value::Path(PathBuf::from(path)))
    }

    fn list(items: &[&str]) -> Result<Value, &'static str> {
        Ok(Value::List(items.iter().map(|item| (*item).to_owned()).collect()))
    }

    #[test]
    fn a_value_of_a_file_has_the_type_that_its_key_wants() {
        check(Kind::Text, "'C:\\Users\\x'", text("C:\\Users\\x"));
        check(Kind::Text, "\"a # b\"", text("a # b"));
        check(COUNT, "1_0", Ok(Value::Int(10)));
        check(Kind::Bool, "true", Ok(Value::Bool(true)));
        check(Kind::List, "[\n 'a', # one\n 'b',\n]", list(&["a", "b"]));
        check(CHOICES, "'chat'", text("chat"));
        check(Kind::Url, "' http://H/v1 '", text("http://H/v1"));
        check(Kind::Path, "'a/b.md'", path("/p/a/b.md"));
        check(Kind::Path, "'~/x'", path("/home/u/x"));
        check(Kind::Path, "'~'", path("/home/u"));
        check(Kind::ProjectPath, "'.etch/sessions'", path("/root/.etch/sessions"));
        check(Kind::ProjectPath, "'/abs'", path("/abs"));
    }

    #[test]
    fn a_wrong_type_says_wanted_found_and_what_to_write() {
        check(
            Kind::List,
            "'one'",
            Err("wanted a list of texts, found text \"one\"; write [\"one\"]"),
        );
        check(Kind::List, "['a', 1]", Err("wanted a list of texts, found the number 1 in it"));
        check(
            COUNT,
            "'30'",
            Err("wanted a whole number from 1 to 100, found text \"30\"; write it without quotes"),
        );
        check(COUNT, "'many'", Err("wanted a whole number from 1 to 100, found text \"many\""));
        check(COUNT, "-1", Err("wanted a whole number from 1 to 100, found -1"));
        check(COUNT, "101", Err("wanted a whole number from 1 to 100, found 101"));
        check(COUNT, "9e99", Err("wanted a whole number from 1 to 100, found the number 9e99"));
        check(Kind::Text, "['a']", Err("wanted text, found a list"));
        check(Kind::Text, "3", Err("wanted text, found the number 3; put it in quotes"));
        check(Kind::Text, "{ a = 1 }", Err("wanted text, found a table"));
        check(
            Kind::Bool,
            "'yes'",
            Err("wanted true or false, found text \"yes\"; write true without quotes"),
        );
        check(Kind::Bool, "1", Err("wanted true or false, found the number 1"));
        check(
            CHOICES,
            "'Chat'",
            Err("wanted one of \"chat\", \"responses\", found \"Chat\"; did you mean \"chat\"?"),
        );
        check(CHOICES, "'grpc'", Err("wanted one of \"chat\", \"responses\", found \"grpc\""));
        check(
            Kind::Path,
            "''",
            Err("wanted a path, found empty text; leave the key out to unset it"),
        );
        check(
            Kind::Path,
            "'~bob/x'",
            Err("wanted a path, found \"~bob/x\"; only '~' and '~/' are expanded"),
        );
        let long = "x".repeat(41);
        check(
            COUNT,
            &format!("'{long}'"),
            Err(&format!("wanted a whole number from 1 to 100, found text \"{}…\"", &long[..40])),
        );
    }

    #[test]
    fn an_endpoint_is_a_url_with_a_host() {
        for good in [
            "http://h",
            "https://h:1/v1//",
            "HTTP://[::1]:8080",
            "http://h/x?y",
            "http://127.0.0.1:8080/v1",
            "localhost:11434",
        ] {
            check(Kind::Url, &format!("'{good}'"), text(good));
        }
        let bad = |url: &str, found: &str, why: &str| {
            let want = format!("wanted an http:// or https:// URL, found \"{found}\"; {why}");
            check(Kind::Url, &format!("'{url}'"), Err(&want));
        };
        bad("ftp://h", "ftp://h", "only http:// and https:// are known");
        bad("", "", "it names no host");
        bad("http://", "http://", "it names no host");
        bad("http:///v1", "http:///v1", "it names no host");
        bad("http://h:x", "http://h:x", "its port is no number");
        bad("http://h/a b", "http://h/a b", "it holds blanks");
        let login = "a user name in it is not supported; set a key instead";
        bad("http://me:secret@h/", "http://[redacted]@h/", login);
    }

    #[test]
    fn typed_values_need_no_quotes() {
        check_typed(Kind::Text, "it's", text("it's"));
        check_typed(Kind::Text, "\"a b\"", text("a b"));
        check_typed(Kind::Text, "\"", text("\""));
        check_typed(Kind::Bool, "1", Ok(Value::Bool(true)));
        check_typed(Kind::Bool, "maybe", Err("wanted true or false, found \"maybe\""));
        check_typed(COUNT, " 1_0\n", Ok(Value::Int(10)));
        check_typed(COUNT, "3x", Err("wanted a whole number from 1 to 100, found \"3x\""));
        check_typed(
            COUNT,
            "99999999999999999999",
            Err("wanted a whole number from 1 to 100, found \"99999999999999999999\""),
        );
        check_typed(Kind::List, "read, grep,", list(&["read", "grep"]));
        check_typed(Kind::List, "['a,b']", list(&["a,b"]));
        check_typed(Kind::List, "", list(&[]));
        check_typed(Kind::Url, " http://H/v1 \n", text("http://H/v1"));
        check_typed(Kind::Path, "x", path("/p/x"));
    }

    #[test]
    fn a_key_comes_trimmed_or_not_at_all_and_is_never_shown() {
        let key = |text: &str| Ok(Value::Secret(Secret::new(text.to_owned())));
        for typed in ["sk-test-ABCDEF", "sk-test-ABCDEF\n", " sk-test-ABCDEF\r\n"] {
            check_typed(Kind::Secret, typed, key("sk-test-ABCDEF"));
        }
        check_typed(
            Kind::Secret,
            "a\nb",
            Err("wanted a key, but it has a line break in the middle; copy it again"),
        );
        check_typed(
            Kind::Secret,
            "a b",
            Err("wanted a key, but it has a blank in the middle; copy it again"),
        );
        check_typed(Kind::Secret, "\n", Err("wanted a key, but it is empty; copy it again"));
        check_typed(
            Kind::Secret,
            "aé",
            Err("wanted a key, but it has a character that is not plain ASCII; copy it again"),
        );
        check(
            Kind::Secret,
            "'ABCDEF'",
            Err("credentials are not kept in configuration: set the variable or the flag instead"),
        );
        let value = from_text(Kind::Secret, "ABCDEF", &bases()).unwrap();
        assert!(!format!("{value:?} {}", value.to_toml()).contains("ABCDEF"));
    }

    #[test]
    fn text_survives_being_written_and_read() {
        for text in ["", "a\"b\\c", "tab\tline\nret\r", "\u{1}\u{7f}é€😀", "#"] {
            let document = toml::parse(format!("x = {}", quote(text)).as_bytes()).unwrap();
            assert_eq!(document.get("x").and_then(toml::Value::as_text), Some(text));
        }
    }
}
