//! A tool call and its result in one line each, for people who watch a run.

use serde_json::Value;

use crate::text;

/// What a call is about: its path, command or pattern; one line, at most `columns` wide.
pub fn call_subject(name: &str, arguments: &str, columns: usize) -> String {
    let value: Value = serde_json::from_str(arguments).unwrap_or(Value::Null);
    let get = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let subject = match name {
        "bash" => get("command").to_owned(),
        "grep" => {
            let roots = match value.get("paths").and_then(Value::as_array) {
                Some(paths) if !paths.is_empty() => strings(paths).join(" "),
                _ => get("path").to_owned(),
            };
            let pattern = get("pattern");
            if roots.is_empty() || roots == "." {
                format!("'{pattern}'")
            } else {
                format!("'{pattern}' in {roots}")
            }
        }
        "find" => [get("query"), get("glob"), get("path")]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" "),
        "read" => match value.get("files").and_then(Value::as_array) {
            Some(files) if !files.is_empty() => {
                let paths = files.iter().filter_map(|file| file.get("path")?.as_str());
                paths.collect::<Vec<_>>().join(" ")
            }
            _ => get("path").to_owned(),
        },
        "ls" | "write" | "edit" => get("path").to_owned(),
        _ => first_string(&value),
    };
    one_line(&subject, columns)
}

/// What came of a call, short: the exit code and time of a command, a count of lines, the first
/// line of an error.
pub fn result_summary(name: &str, output: &str, failed: bool, columns: usize) -> String {
    let first = output.lines().next().unwrap_or_default();
    if failed {
        return one_line(first, columns);
    }
    let summary = match name {
        "bash" => {
            let field = |label: &str| output.lines().find_map(|line| line.strip_prefix(label));
            let code = field("exit code: ").unwrap_or("?");
            match field("duration: ") {
                Some(duration) => format!("exit code {code}, {duration}"),
                None => format!("exit code {code}"),
            }
        }
        "write" | "edit" => {
            let count = |mark: char, header: &str| {
                let changed = |line: &&str| line.starts_with(mark) && !line.starts_with(header);
                output.lines().filter(changed).count()
            };
            let (added, removed) = (count('+', "+++ "), count('-', "--- "));
            match added + removed {
                0 => did(first).to_owned(),
                _ => format!("+{added} -{removed}"),
            }
        }
        // It will stand in parentheses anyway.
        _ if first.starts_with('(') => first[1..].trim_end_matches(')').to_owned(),
        _ => text::plural(output.lines().filter(|line| !line.is_empty()).count() as u64, "line"),
    };
    one_line(&summary, columns)
}

/// `wrote 9 bytes` of `Successfully wrote 9 bytes to x.txt.`: the rest stands before it.
fn did(sentence: &str) -> &str {
    match sentence.strip_prefix("Successfully ").and_then(|rest| rest.split_once(" to ")) {
        Some((did, _)) => did,
        None => sentence,
    }
}

fn strings(values: &[Value]) -> Vec<&str> {
    values.iter().filter_map(Value::as_str).collect()
}

fn first_string(value: &Value) -> String {
    let mut fields = value.as_object().into_iter().flatten();
    fields.find_map(|(_, value)| value.as_str()).unwrap_or_default().to_owned()
}

/// White space folded, controls visible, cut to a width.
fn one_line(text: &str, columns: usize) -> String {
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text::truncate_width(&text::visible(&folded), columns).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_by_what_they_are_about() {
        let check = |name: &str, arguments: &str, want: &str| {
            assert_eq!(call_subject(name, arguments, 40), want, "{name} {arguments}");
        };
        check("bash", r#"{"command":"cargo test\n  --all"}"#, "cargo test --all");
        check("grep", r#"{"pattern":"x y","path":"."}"#, "'x y'");
        check("grep", r#"{"pattern":"x","paths":["a","b"]}"#, "'x' in a b");
        check("read", r#"{"files":[{"path":"a"},{"path":"b","offset":3}]}"#, "a b");
        check("edit", r#"{"path":"src/main.rs","edits":[]}"#, "src/main.rs");
        check("other", r#"{"n":1,"query":"q"}"#, "q");
        check("bash", "not json", "");
        check("bash", r#"{"command":"\u001b[2Jx"}"#, "^[[2Jx");
    }

    #[test]
    fn results_are_summed_up() {
        let check = |name: &str, output: &str, failed: bool, want: &str| {
            assert_eq!(result_summary(name, output, failed, 60), want);
        };
        check("bash", "exit code: 1\nduration: 4ms\n\nstdout:\nx", false, "exit code 1, 4ms");
        check("edit", "Done.\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+c", false, "+2 -1");
        check("write", "Successfully wrote 9 bytes to \"a to b\".", false, "wrote 9 bytes");
        check("write", "Nothing to do.", false, "Nothing to do.");
        check("read", "1 | a\n2 | b", false, "2 lines");
        check("find", "(no matches)", false, "no matches");
        check("read", "tool error: no such file\nmore", true, "tool error: no such file");
    }
}
