//! Completions for bash, zsh and fish, made from the tables.
//!
//! Session ids are completed by asking `etch sessions` for its list when the key is pressed.

use std::fmt::Write;

use super::commands::{COMMANDS, Cmd, Command};
use super::exit;
use super::flags::{Flag, Takes, flags_of};
use super::out::Out;
use super::parse::topic;

pub fn run(shell: &str, mut out: Out) -> u8 {
    out.text(&match shell {
        "zsh" => zsh(),
        "fish" => fish(),
        _ => bash(),
    });
    out.finish(exit::OK)
}

/// Commands that one types: all but the prompt.
fn named() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(|row| row.cmd != Cmd::Run)
}

/// What a value of this name is completed with.
#[derive(PartialEq)]
enum Complete {
    Words(&'static [&'static str]),
    /// Several of them, separated by commas.
    List(&'static [&'static str]),
    Files,
    Folders,
    Sessions,
    Nothing,
}

fn completes(value_name: &str, choices: &'static [&'static str]) -> Complete {
    match value_name {
        _ if !choices.is_empty() => Complete::Words(choices),
        "FILE" => Complete::Files,
        "DIR" => Complete::Folders,
        "LIST" => Complete::List(crate::tool::NAMES),
        "ID" | "ID|NAME" => Complete::Sessions,
        _ => Complete::Nothing,
    }
}

/// Every spelling of a flag: `--output`, `-o`.
fn spellings(flag: &Flag) -> Vec<String> {
    let short = flag.short.map(|short| format!("-{short}"));
    std::iter::once(format!("--{}", flag.name)).chain(short).collect()
}

/// The words that a command's first argument may be.
fn first_words(row: &Command) -> Vec<&'static str> {
    match row.cmd {
        Cmd::Help => COMMANDS.iter().map(|row| topic(row.cmd)).collect(),
        Cmd::Explain => exit::EXITS.iter().map(|exit| exit.name).collect(),
        Cmd::Tool => crate::tool::NAMES.to_vec(),
        _ => row.positionals.first().map(|first| first.choices.to_vec()).unwrap_or_default(),
    }
}

fn takes_session(row: &Command) -> bool {
    row.positionals.first().is_some_and(|first| first.name == "ID")
}

fn bash() -> String {
    let mut out = String::from(
        "# bash completion for etch\n\
         _etch() {\n\
         \x20 local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd=run word\n\
         \x20 COMPREPLY=()\n\
         \x20 for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n\
         \x20   case $word in\n",
    );
    let names: Vec<_> = named().map(|row| row.name).collect();
    let _ = write!(out, "      {}) cmd=$word; break ;;\n    esac\n  done\n", names.join("|"));
    out.push_str("  case $cmd:$prev in\n");
    for row in COMMANDS {
        for flag in flags_of(row.cmd) {
            let Takes::Value(name) = flag.takes else { continue };
            let patterns: Vec<_> =
                spellings(flag).iter().map(|s| format!("{}:{s}", topic(row.cmd))).collect();
            let reply = bash_reply(&completes(name, flag.choices));
            let _ = writeln!(out, "    {}) {reply}; return ;;", patterns.join("|"));
        }
    }
    out.push_str("  esac\n  case $cmd in\n");
    for row in COMMANDS {
        let flags: Vec<_> = flags_of(row.cmd).flat_map(spellings).collect();
        let mut words: Vec<&str> = first_words(row);
        if row.cmd == Cmd::Run {
            words.extend(&names);
        }
        // What follows a tool's name are files and patterns.
        let first = if row.cmd == Cmd::Tool { "if [[ $prev == tool ]]; then" } else { "se" };
        let sessions = if takes_session(row) { " $(_etch_sessions)" } else { "" };
        let _ = write!(
            out,
            "    {})\n      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))\n      \
             el{first} COMPREPLY=($(compgen -W \"{}{sessions}\" -- \"$cur\")); fi ;;\n",
            topic(row.cmd),
            flags.join(" "),
            words.join(" ")
        );
    }
    out.push_str(
        "  esac\n}\n\
         _etch_sessions() { etch sessions 2>/dev/null | awk '{print $3}'; }\n\
         complete -o bashdefault -o default -F _etch etch\n",
    );
    out
}

fn bash_reply(complete: &Complete) -> String {
    let words = |words: &str| format!("COMPREPLY=($(compgen -W \"{words}\" -- \"$cur\"))");
    match complete {
        Complete::Words(choices) => words(&choices.join(" ")),
        Complete::List(items) => format!(
            "compopt -o nospace; COMPREPLY=($(compgen -P \"${{cur%\"${{cur##*,}}\"}}\" -W \"{}\" -- \"${{cur##*,}}\"))",
            items.join(" ")
        ),
        Complete::Files => "COMPREPLY=($(compgen -f -- \"$cur\"))".to_owned(),
        Complete::Folders => "COMPREPLY=($(compgen -d -- \"$cur\"))".to_owned(),
        Complete::Sessions => words("$(_etch_sessions)"),
        Complete::Nothing => ":".to_owned(),
    }
}

fn zsh() -> String {
    let mut out = String::from("#compdef etch\n# zsh completion for etch\n\n_etch_sessions() {\n");
    out.push_str(
        "  local -a ids\n  ids=(${(f)\"$(etch sessions 2>/dev/null | awk '{print $3}')\"})\n",
    );
    out.push_str("  _describe session ids\n}\n\n_etch() {\n  local cmd=run word\n");
    let names: Vec<_> = named().map(|row| row.name).collect();
    let _ = write!(
        out,
        "  for word in ${{words[2,CURRENT-1]}}; do\n    case $word in\n      {}) cmd=$word; break ;;\n    \
         esac\n  done\n",
        names.join("|")
    );
    out.push_str("  local -a commands\n  commands=(\n");
    for row in named() {
        let _ = writeln!(out, "    {}", zsh_quote(&format!("{}:{}", row.name, row.about)));
    }
    out.push_str("  )\n  case $cmd in\n");
    for row in COMMANDS {
        let _ = writeln!(out, "    {})\n      _arguments \\", topic(row.cmd));
        for flag in flags_of(row.cmd) {
            let _ = writeln!(out, "        {} \\", zsh_flag(flag));
        }
        let first = match row.cmd {
            Cmd::Run => "'1:command:{_describe command commands}'".to_owned(),
            _ if takes_session(row) => "'2:session:_etch_sessions'".to_owned(),
            _ => match first_words(row).as_slice() {
                [] => "'*:file:_files'".to_owned(),
                words => format!("'2:argument:({})' '*:file:_files'", words.join(" ")),
            },
        };
        let _ = writeln!(out, "        {first} ;;");
    }
    out.push_str("  esac\n}\n\n_etch \"$@\"\n");
    out
}

/// One argument of `_arguments`: `'(-o --output)'{-o,--output}'[doc]:FILE:_files'`.
fn zsh_flag(flag: &Flag) -> String {
    let doc: String = flag.doc.chars().filter(|c| !matches!(c, '[' | ']' | ':')).collect();
    let value = match flag.takes {
        Takes::Nothing => String::new(),
        Takes::Optional(name) => format!("::{name}: "),
        Takes::Value(name) => {
            let action = match completes(name, flag.choices) {
                Complete::Words(choices) => format!("({})", choices.join(" ")),
                Complete::List(items) => format!("_values -s , {name} {}", items.join(" ")),
                Complete::Files => "_files".to_owned(),
                Complete::Folders => "_files -/".to_owned(),
                Complete::Sessions => "_etch_sessions".to_owned(),
                Complete::Nothing => " ".to_owned(),
            };
            format!(":{name}:{action}")
        }
    };
    let tail = zsh_quote(&format!("[{doc}]{value}"));
    let repeats = if super::parse::repeats(flag.name) { "'*'" } else { "" };
    match flag.short {
        None => format!("{repeats}--{}{tail}", flag.name),
        Some(short) => format!("{repeats}{{-{short},--{}}}{tail}", flag.name),
    }
}

fn zsh_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn fish() -> String {
    let names: Vec<_> = named().map(|row| row.name).collect();
    let none = format!("not __fish_seen_subcommand_from {}", names.join(" "));
    let mut out = String::from("# fish completion for etch\n");
    out.push_str("function __etch_sessions\n  etch sessions 2>/dev/null | awk '{print $3}'\nend\n");
    for row in named() {
        let about = fish_quote(row.about);
        let _ = writeln!(out, "complete -c etch -f -n '{none}' -a {} -d {about}", row.name);
    }
    for row in COMMANDS {
        let when = match row.cmd {
            Cmd::Run => none.clone(),
            _ => format!("__fish_seen_subcommand_from {}", row.name),
        };
        for flag in flags_of(row.cmd) {
            let _ = writeln!(out, "complete -c etch -n '{when}' {}", fish_flag(flag));
        }
        let words = first_words(row);
        if takes_session(row) {
            let _ = writeln!(out, "complete -c etch -f -n '{when}' -a '(__etch_sessions)'");
        } else if !words.is_empty() {
            let _ = writeln!(out, "complete -c etch -f -n '{when}' -a '{}'", words.join(" "));
        }
    }
    out
}

fn fish_flag(flag: &Flag) -> String {
    let short = flag.short.map_or(String::new(), |short| format!("-s {short} "));
    let value = match flag.takes {
        Takes::Nothing => String::new(),
        Takes::Optional(_) => "-f ".to_owned(),
        Takes::Value(name) => match completes(name, flag.choices) {
            Complete::Words(choices) => format!("-x -a '{}' ", choices.join(" ")),
            Complete::List(items) => {
                format!("-x -a '(__fish_append , {})' ", items.join(" "))
            }
            Complete::Files => "-r -F ".to_owned(),
            Complete::Folders => "-x -a '(__fish_complete_directories)' ".to_owned(),
            Complete::Sessions => "-x -a '(__etch_sessions)' ".to_owned(),
            Complete::Nothing => "-x ".to_owned(),
        },
    };
    format!("{short}-l {} {value}-d {}", flag.name, fish_quote(flag.doc))
}

fn fish_quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_flag_is_completed_in_every_shell() {
        let shells = [bash(), zsh(), fish()];
        for row in COMMANDS {
            for flag in flags_of(row.cmd) {
                for text in &shells {
                    let long = [format!("--{}", flag.name), format!("-l {} ", flag.name)];
                    assert!(long.iter().any(|long| text.contains(long)), "{}", flag.name);
                }
            }
            if row.cmd != Cmd::Run {
                assert!(shells.iter().all(|text| text.contains(row.name)), "{}", row.name);
            }
        }
    }
}
