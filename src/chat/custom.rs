//! Commands of a person's own: Markdown files in `.etch/commands` of the project and of home.
//!
//! `review.md` is `/review`. Its text is the prompt; `$ARGUMENTS` in it stands for all that was
//! typed behind the name, `$1` to `$9` for single words (as a shell has them). Where it names none
//! of them, what was typed is put behind it. A line `description: …` between two lines `---` at
//! its head is for lists. The project's wins over home's of the same name.

use std::fs;
use std::path::Path;

use super::command::{COMMANDS, words};
use crate::context::files::{Found, Surroundings};
use crate::host::Host;
use crate::text;

const FILE_BYTES_MAX: usize = 256 * 1024;
/// Files of one folder that are looked at.
const FILES_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Custom {
    pub name: String,
    pub about: String,
    text: String,
}

/// All of them by name, and warnings about those that cannot be used.
pub fn load(host: &Host, project: Option<&Path>) -> (Vec<Custom>, Vec<String>) {
    let around = Surroundings::new(host, project, false);
    let (mut all, mut warnings): (Vec<Custom>, Vec<String>) = Default::default();
    let root = project.unwrap_or_else(|| host.cwd());
    for folder in [Some(root), host.home()].into_iter().flatten() {
        for name in names(&folder.join(".etch/commands")) {
            let path = folder.join(".etch/commands").join(format!("{name}.md"));
            if all.iter().any(|known| known.name == name) {
                continue;
            }
            if COMMANDS.iter().any(|command| command.name == name) {
                warnings.push(format!("{}: /{name} is a command of etch", path.display()));
                continue;
            }
            match around.read(&path, FILE_BYTES_MAX) {
                Found::Text(text) => all.push(Custom::of(name, &text)),
                Found::Refused(why) => warnings.push(why),
                Found::Missing => {}
            }
        }
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    (all, warnings)
}

/// The names of the files of a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let legal = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let mut names: Vec<String> = entries
        .flatten()
        .take(FILES_MAX)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
        .filter(|name| !name.is_empty() && name.chars().all(legal))
        .collect();
    names.sort_unstable();
    names
}

impl Custom {
    fn of(name: String, text: &str) -> Custom {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let (head, body) = text
            .strip_prefix("---\n")
            .and_then(|rest| rest.split_once("\n---\n"))
            .unwrap_or(("", &text));
        let about = head.lines().find_map(|line| line.strip_prefix("description:"));
        let first = body.lines().map(str::trim).find(|line| !line.is_empty());
        let about = about.or(first).unwrap_or_default().trim().trim_matches('"');
        Custom {
            name,
            about: text::truncate_width(&text::visible_line(about), 60).into_owned(),
            text: body.trim().to_owned(),
        }
    }

    /// The prompt for these arguments.
    pub fn prompt(&self, arguments: &str) -> Result<String, String> {
        let mut given = None;
        let mut out = String::new();
        let mut rest = self.text.as_str();
        let mut is_named = false;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let digit = after.chars().next().and_then(|c| c.to_digit(10)).filter(|&d| d > 0);
            if let Some(after) = after.strip_prefix("ARGUMENTS") {
                out.push_str(arguments);
                rest = after;
            } else if let Some(digit) = digit {
                let given = match &mut given {
                    Some(given) => given,
                    none => none.insert(words(arguments)?),
                };
                out.push_str(given.get(digit as usize - 1).map_or("", String::as_str));
                rest = &after[1..];
            } else {
                out.push('$');
                rest = after;
                continue;
            }
            is_named = true;
        }
        out.push_str(rest);
        if !is_named && !arguments.is_empty() {
            out.push_str("\n\n");
            out.push_str(arguments);
        }
        match out.trim().is_empty() {
            true => Err(format!("the file of /{} is empty", self.name)),
            false => Ok(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_go_where_the_text_wants_them() {
        let check = |text: &str, arguments: &str, want: &str| {
            let prompt = Custom::of("x".into(), text).prompt(arguments);
            assert_eq!(prompt.unwrap_or_else(|error| error), want, "{text:?} {arguments:?}");
        };
        check("Review it.", "", "Review it.");
        check("Review it.", "a b", "Review it.\n\na b");
        check("Review $ARGUMENTS now", "a 'b'", "Review a 'b' now");
        check("From $1 to $2, $1", "one 'two three'", "From one to two three, one");
        check("$1 and $9", "one", "one and ");
        check("costs $ 5 or $x or $0", "", "costs $ 5 or $x or $0");
        check("$1", "'open", "a quote is not closed");
        check("$ARGUMENTS", "", "the file of /x is empty");
        check("a $1", "$ARGUMENTS", "a $ARGUMENTS");
        check("---\ndescription: d\n---\r\n\nBody\n", "", "Body");
    }

    #[test]
    fn a_list_has_the_description_or_the_first_line() {
        let about = |text: &str| Custom::of("x".into(), text).about;
        assert_eq!(
            about("---\nmodel: m\ndescription: \"what it does\"\n---\nBody"),
            "what it does"
        );
        assert_eq!(about("\n\nReview the change.\nmore"), "Review the change.");
        assert_eq!(about(""), "");
    }
}
