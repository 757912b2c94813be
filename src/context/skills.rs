//! Skills: finding `SKILL.md` files and reading their names and descriptions.
//!
//! Only a catalogue of them goes to the model, which reads a whole file when it needs one. A
//! skill that breaks the rules is a warning and is left out; it never stops a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::context::files::{Found, Surroundings};
use crate::workspace;

/// Folders that hold one folder per skill, in a directory; of equal names the first wins.
const ROOTS: &[&str] = &[".etch/skills", ".agents/skills"];
/// The front matter must end within this much of the file.
const START_BYTES_MAX: usize = 16 * 1024;
const NAME_CHARS_MAX: usize = 64;
const DESCRIPTION_CHARS_MAX: usize = 1024;
/// More than this many folders in one root are not looked at.
const FOLDERS_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// One line.
    pub description: String,
    /// The `SKILL.md`, absolute.
    pub path: PathBuf,
}

/// All skills, sorted by name, with what was wrong. Of equal names the one nearest to the working
/// directory wins.
pub fn discover(surroundings: &Surroundings) -> (Vec<Skill>, Vec<String>) {
    let mut skills: BTreeMap<String, Skill> = BTreeMap::new();
    let mut warnings = Vec::new();
    let home = surroundings.home.iter().filter(|home| !surroundings.directories.contains(home));
    let nearest_first = surroundings.directories.iter().rev().chain(home);
    for directory in nearest_first {
        for root in ROOTS {
            for path in skill_files(&directory.join(root), &mut warnings) {
                let text = match surroundings.read_start(&path, START_BYTES_MAX) {
                    Found::Text(text) => text,
                    Found::Missing => continue,
                    Found::Refused(reason) => {
                        warnings.push(reason);
                        continue;
                    }
                };
                match parse(&text, &path) {
                    Ok(skill) => {
                        skills.entry(skill.name.clone()).or_insert(skill);
                    }
                    Err(reason) => {
                        warnings.push(format!("{}: {reason}; it is left out", path.display()));
                    }
                }
            }
        }
    }
    (skills.into_values().collect(), warnings)
}

/// The `SKILL.md` paths below a root, sorted; they need not exist.
fn skill_files(root: &Path, warnings: &mut Vec<String>) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) => {
            if root.is_dir() {
                let reason = workspace::reason(&error);
                warnings.push(format!("{}: {reason}; its skills are left out", root.display()));
            }
            return Vec::new();
        }
    };
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && !is_hidden(path))
        .collect();
    folders.sort();
    if folders.len() > FOLDERS_MAX {
        warnings.push(format!(
            "{}: {} skills; only the first {FOLDERS_MAX} are listed",
            root.display(),
            folders.len()
        ));
        folders.truncate(FOLDERS_MAX);
    }
    folders.into_iter().map(|folder| folder.join("SKILL.md")).collect()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Reads the front matter of a `SKILL.md` and holds it to the rules.
fn parse(text: &str, path: &Path) -> Result<Skill, String> {
    let fields = front_matter(text)?;
    let field = |name: &str| {
        let value = fields.get(name).map(|value| one_line(value)).filter(|value| !value.is_empty());
        value.ok_or_else(|| format!("its front matter has no '{name}'"))
    };
    let (name, description) = (field("name")?, field("description")?);
    check_name(&name)?;
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    if folder != name.as_str() {
        return Err(format!(
            "its name '{name}' is not that of its folder '{}'",
            folder.to_string_lossy()
        ));
    }
    let chars = description.chars().count();
    if chars > DESCRIPTION_CHARS_MAX {
        return Err(format!(
            "its description has {chars} characters, at most {DESCRIPTION_CHARS_MAX} are allowed"
        ));
    }
    Ok(Skill { name, description, path: path.to_owned() })
}

fn check_name(name: &str) -> Result<(), String> {
    let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let wrong = if name.chars().count() > NAME_CHARS_MAX {
        "is longer than 64 characters"
    } else if !name.bytes().all(legal) {
        "has other characters than a-z, 0-9 and '-'"
    } else if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        "begins or ends with '-' or has two in a row"
    } else {
        return Ok(());
    };
    Err(format!("its name '{name}' {wrong}"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The top-level `key: value` pairs between two `---` lines: plain, quoted, and `|` or `>` blocks.
/// Nested values and lists are passed over.
fn front_matter(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return Err("it has no front matter: start it with '---', name, description, '---'".into());
    }
    let mut body: Vec<&str> = Vec::new();
    loop {
        match lines.next().map(str::trim_end) {
            Some("---" | "...") => break,
            Some(line) => body.push(line),
            None => {
                return Err("its front matter does not end with '---' within 16 KiB".to_owned());
            }
        }
    }
    let mut fields = BTreeMap::new();
    let mut idx = 0;
    while idx < body.len() {
        let line = body[idx];
        idx += 1;
        let indented_from = idx;
        while idx < body.len() && (body[idx].is_empty() || body[idx].starts_with([' ', '\t'])) {
            idx += 1;
        }
        let indented = &body[indented_from..idx];
        if line.is_empty() || line.starts_with('#') || line.starts_with("- ") {
            continue;
        }
        let Some((key, value)) = line.split_once(':') else {
            return Err(format!(
                "line {} of its front matter is no 'key: value'",
                indented_from + 1
            ));
        };
        let value = scalar(value.trim(), indented)
            .map_err(|reason| format!("line {} of its front matter {reason}", indented_from + 1))?;
        if fields.insert(key.trim().to_owned(), value).is_some() {
            return Err(format!("its front matter has '{}' twice", key.trim()));
        }
    }
    Ok(fields)
}

/// A value and the indented lines below it.
fn scalar(value: &str, indented: &[&str]) -> Result<String, String> {
    match value.as_bytes().first() {
        Some(b'|') => Ok(block(indented, "\n")),
        Some(b'>') => Ok(block(indented, " ")),
        Some(b'"' | b'\'') => unquote(&joined(value, indented)),
        _ => {
            // A comment starts at a '#' after a blank.
            let plain = joined(value, indented);
            Ok(plain.split(" #").next().unwrap_or_default().trim_end().to_owned())
        }
    }
}

fn joined(value: &str, indented: &[&str]) -> String {
    let mut text = value.to_owned();
    for line in indented.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
        text.push(' ');
        text.push_str(line);
    }
    text
}

/// The lines without their indentation: what is read here ends up on one line.
fn block(indented: &[&str], separator: &str) -> String {
    let lines: Vec<&str> = indented.iter().map(|line| line.trim()).collect();
    lines.join(separator).trim().to_owned()
}

fn unquote(text: &str) -> Result<String, String> {
    let mut chars = text.chars();
    let quote = chars.next().unwrap_or_default();
    let mut out = String::new();
    loop {
        match chars.next() {
            None => return Err("has a quote that is not closed".to_owned()),
            Some('\\') if quote == '"' => match chars.next() {
                Some('n' | 't' | 'r') => out.push(' '),
                Some(escaped @ ('"' | '\\' | '/')) => out.push(escaped),
                _ => return Err("has an escape that is not supported".to_owned()),
            },
            Some(c) if c == quote => {
                if quote == '\'' && chars.as_str().starts_with('\'') {
                    chars.next();
                    out.push('\'');
                    continue;
                }
                break;
            }
            Some(c) => out.push(c),
        }
    }
    let rest = chars.as_str().trim_start();
    if rest.is_empty() || rest.starts_with('#') {
        return Ok(out);
    }
    Err("has text after its closing quote".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Result<&str, &str>) {
        let path = Path::new("/p/.etch/skills/make-docs/SKILL.md");
        let got = parse(text, path).map(|skill| {
            assert_eq!((skill.name.as_str(), skill.path.as_path()), ("make-docs", path));
            skill.description
        });
        assert_eq!(got.as_deref().map_err(String::as_str), want, "{text}");
    }

    #[test]
    fn front_matter_is_read_in_the_forms_that_people_write() {
        let plain = "---\nname: make-docs\ndescription: Writes docs.\n---\n# Body\n";
        check(plain, Ok("Writes docs."));
        check(&plain.replace('\n', "\r\n"), Ok("Writes docs."));
        check("---\nname: make-docs\ndescription: a: b # not this\n---", Ok("a: b"));
        check("---\nname: \"make-docs\" # c\ndescription: 'it''s: #1'\n---\n", Ok("it's: #1"));
        check(
            "---\ndescription: \"say \\\"x\\\"\\nmore\"\nname: make-docs\n---\n",
            Ok("say \"x\" more"),
        );
        check("---\nname: make-docs\ndescription: |\n  one\n\n  two\n---\n", Ok("one two"));
        check("---\nname: make-docs\ndescription: >-\n  one\n    two\n---\n", Ok("one two"));
        check("---\nname: make-docs\ndescription: one\n  two\n---\n", Ok("one two"));
        check(
            "---\n# note\nname: make-docs\nmetadata:\n  name: other\n  tags:\n  - a\nlist:\n- b\n\ndescription: größer\n...\n",
            Ok("größer"),
        );
        check(
            &format!("---\nname: make-docs\ndescription: {}\n---", "é".repeat(1024)),
            Ok(&"é".repeat(1024)),
        );
    }

    #[test]
    fn a_skill_that_breaks_a_rule_says_which() {
        let none = "it has no front matter: start it with '---', name, description, '---'";
        check("", Err(none));
        check("# Title\n---\nname: x\n---\n", Err(none));
        check(
            "---\nname: make-docs\n",
            Err("its front matter does not end with '---' within 16 KiB"),
        );
        check("---\nname: make-docs\n---\n", Err("its front matter has no 'description'"));
        check("---\nname:\ndescription: d\n---\n", Err("its front matter has no 'name'"));
        check(
            "---\nname: make-docs\ndescription: |\n---\n",
            Err("its front matter has no 'description'"),
        );
        check(
            "---\nname: a\nname: b\ndescription: d\n---\n",
            Err("its front matter has 'name' twice"),
        );
        check("---\nname make-docs\n---\n", Err("line 2 of its front matter is no 'key: value'"));
        check(
            "---\nname: \"make\n---\n",
            Err("line 2 of its front matter has a quote that is not closed"),
        );
        check(
            "---\nname: 'a' b\n---\n",
            Err("line 2 of its front matter has text after its closing quote"),
        );
        check(
            "---\nname: \"\\x\"\n---\n",
            Err("line 2 of its front matter has an escape that is not supported"),
        );
        let named = |name: &str| format!("---\nname: {name}\ndescription: d\n---\n");
        check(&named("other"), Err("its name 'other' is not that of its folder 'make-docs'"));
        check(
            &named("Make-Docs"),
            Err("its name 'Make-Docs' has other characters than a-z, 0-9 and '-'"),
        );
        for bad in ["-a", "a-", "a--b"] {
            let want = format!("its name '{bad}' begins or ends with '-' or has two in a row");
            check(&named(bad), Err(&want));
        }
        let long = "a".repeat(65);
        check(&named(&long), Err(&format!("its name '{long}' is longer than 64 characters")));
        check(
            &format!("---\nname: make-docs\ndescription: {}\n---", "é".repeat(1025)),
            Err("its description has 1025 characters, at most 1024 are allowed"),
        );
    }
}
