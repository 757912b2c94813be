//! The command line as a person meets it: the real binary, whole outputs.

use crate::support::command::{Place, words};

#[test]
fn wrong_usage_is_one_line_and_exit_2() {
    let place = Place::new();
    let check = |line: &str, want: &str| {
        place.etch(words(line)).run().is(2, "", &format!("etch: {want}\n"));
    };
    check("shwo", "unknown command 'shwo'; did you mean 'show'?");
    check("run it", "unknown command 'run'; to run a prompt: etch -p \"TEXT\"");
    check(
        "xyzzy",
        "unknown command 'xyzzy'; 'etch help' lists the commands; to run a prompt: etch -p \"TEXT\"",
    );
    check("-p hi --modle gpt", "unknown flag '--modle'; did you mean '--model'?");
    check("-p hi --xyzzy", "unknown flag '--xyzzy'; 'etch help run' lists them");
    check("-p hi -Z", "unknown flag '-Z'; 'etch help run' lists them");
    check(
        "sessions --effective",
        "'--effective' is no flag of 'etch sessions'; it belongs to 'etch config'",
    );
    check("-p hi --dry-run", "'--dry-run' is no flag of a prompt; it belongs to 'etch tool'");
    check("-p hi --model", "'--model' needs a value: --model NAME");
    check("-p hi --json=yes", "'--json' takes no value, but 'yes' is given");
    check("-p hi --model a --model b", "'--model' is given twice; keep one");
    check("-p hi --json --json-result", "'--json' and '--json-result' exclude each other");
    check("-p hi --session x --continue", "'--session' and '--continue' exclude each other");
    check("-p hi --fork", "'--fork' needs a session: give --session ID or --continue, too");
    check("-p hi --deltas", "'--deltas' adds to --json: give both");
    check("-p hi --color blue", "'--color' is auto, always or never, not 'blue'");
    check(
        "-p hi --reasoning-effort hihg",
        "'--reasoning-effort' is none, minimal, low, medium, high or xhigh, not 'hihg'; did you mean 'high'?",
    );
    check("-p hi --timeout soon", "'--timeout' is a time such as 90, 90s, 10m or 1h, not 'soon'");
    check("-p hi --timeout 0", "'--timeout' is a time such as 90, 90s, 10m or 1h, not '0'");
    check(
        "-p hi -c model",
        "-c 'model': write it as key=value, for example -c session.max_tool_rounds=8",
    );
    check(
        "-p hi there you",
        "unexpected argument 'there'; put the whole prompt in quotes after -p",
    );
    check(
        "-p --stdin never",
        "'--stdin never' leaves no prompt to read: give one with -p \"TEXT\"",
    );
    check("--json", "no prompt: give one with -p \"TEXT\", or a command ('etch help' lists them)");
    check("resume 4f2a", "'etch resume' needs a prompt: etch resume ID -p \"TEXT\"");
    check("config", "'etch config' needs check, show or schema");
    check("config shwo", "'etch config shwo' does not exist; use check, show or schema");
    check("config check --effective", "'--effective' belongs to 'etch config show'");
    check("schema", "'etch schema' needs events, result or config");
    check("completion tcsh", "'etch completion tcsh' does not exist; use bash, zsh or fish");
    check("explain 77", "exit code '77' is none of etch's own; 'etch explain' lists etch's codes");
    check(
        "explain 139",
        "exit code '139' is a program that signal 11 ended; 'etch explain' lists etch's codes",
    );
    check("help shwo", "no help on 'shwo'; did you mean 'show'?");
    check(
        "-C nowhere sessions",
        "cannot work in 'nowhere': No such file or directory (os error 2)",
    );
    place.etch(["-p", ""]).run().is(
        2,
        "",
        "etch: the prompt is empty: give one with -p \"TEXT\"\n",
    );
}

#[test]
fn variables_are_checked_as_flags_are() {
    let place = Place::new();
    let check = |name: &str, value: &str, want: &str| {
        let ran = place.etch(["-p", "hi"]).env(name, value).run();
        ran.is(2, "", &format!("etch: {want}\n"));
    };
    check("ETCH_JSON", "perhaps", "'ETCH_JSON' is 1 or 0, not 'perhaps'");
    check("ETCH_STDIN", "maybe", "'ETCH_STDIN' is auto, always or never, not 'maybe'");
    check("ETCH_SET", "model", "'ETCH_SET' is KEY=VALUE, not 'model'");
    check(
        "ETCH_DIRECTORY",
        "nowhere",
        "cannot work in 'nowhere': No such file or directory (os error 2)",
    );
}

#[test]
fn the_version_is_printed_by_every_spelling() {
    let place = Place::new();
    let want = format!("etch {}\n", env!("CARGO_PKG_VERSION"));
    for line in ["--version", "-V", "version", "version --color=never"] {
        if line.contains("color") {
            place.etch(words(line)).run().exits(2);
        } else {
            place.etch(words(line)).run().is(0, &want, "");
        }
    }
    let ran = place.etch(words("--version --json")).run().exits(0);
    let value: serde_json::Value = serde_json::from_str(ran.out()).unwrap();
    assert_eq!(value["name"], "etch");
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    assert!(value["target"].as_str().unwrap().contains("linux"), "{value}");
}
