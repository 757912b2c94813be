//! The one table of flags.
//!
//! The parser, `help`, the completions, the man page and the environment variables are all made
//! from these rows and those of [`commands`](super::commands), so that they cannot disagree. A row
//! is data: nothing here looks at the world.

use super::commands::Cmd;
use crate::provider;

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    /// Always one value; the name as help shows it.
    Value(&'static str),
    /// A value, or nothing when another flag or the end follows.
    Optional(&'static str),
}

/// One flag of one or several commands.
#[derive(Debug)]
pub struct Flag {
    /// Without the dashes.
    pub name: &'static str,
    pub short: Option<char>,
    pub takes: Takes,
    /// What the value may be; empty for free text.
    pub choices: &'static [&'static str],
    pub group: Group,
    pub on: &'static [Cmd],
    /// The configuration key that it overrides; empty when it is no setting.
    pub key: &'static str,
    /// Whether the variable [`Flag::variable`] gives it, too.
    pub env: bool,
    /// One or two sentences.
    pub doc: &'static str,
}

/// Under which heading help lists a flag, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Input,
    Model,
    Session,
    Limits,
    Output,
    Settings,
    Arguments,
    Other,
}

impl Group {
    pub const ALL: [Group; 8] = [
        Group::Input,
        Group::Model,
        Group::Arguments,
        Group::Session,
        Group::Limits,
        Group::Output,
        Group::Settings,
        Group::Other,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Group::Input => "Input",
            Group::Model => "Model",
            Group::Session => "Session",
            Group::Limits => "Limits and permissions",
            Group::Output => "Output",
            Group::Settings => "Settings",
            Group::Arguments => "Arguments of the tool",
            Group::Other => "Other",
        }
    }
}

impl Flag {
    /// The environment variable of the same meaning: `ETCH_` and the name in capitals.
    pub fn variable(&self) -> String {
        let mut name = String::from("ETCH_");
        name.extend(self.name.chars().map(|c| match c {
            '-' => '_',
            other => other.to_ascii_uppercase(),
        }));
        name
    }

    /// The value's name, if it takes any.
    pub fn value_name(&self) -> Option<&'static str> {
        match self.takes {
            Takes::Nothing => None,
            Takes::Value(name) | Takes::Optional(name) => Some(name),
        }
    }
}

/// The flags that `cmd` takes, in table order.
pub fn flags_of(cmd: Cmd) -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter().filter(move |flag| flag.on.contains(&cmd))
}

const RUN: &[Cmd] = &[Cmd::Run, Cmd::Resume];
const SETTINGS: &[Cmd] =
    &[Cmd::Run, Cmd::Chat, Cmd::Resume, Cmd::Compact, Cmd::Context, Cmd::Config];
const FILES: &[Cmd] = &[
    Cmd::Run,
    Cmd::Chat,
    Cmd::Resume,
    Cmd::Compact,
    Cmd::Context,
    Cmd::Config,
    Cmd::Sessions,
    Cmd::Show,
    Cmd::Status,
    Cmd::Auth,
];
const PLACES: &[Cmd] = &[
    Cmd::Run,
    Cmd::Chat,
    Cmd::Resume,
    Cmd::Compact,
    Cmd::Context,
    Cmd::Config,
    Cmd::Sessions,
    Cmd::Show,
    Cmd::Status,
];
/// Where it matters which credential is used.
const CREDENTIALS: &[Cmd] =
    &[Cmd::Run, Cmd::Chat, Cmd::Resume, Cmd::Compact, Cmd::Config, Cmd::Auth];
const CHAT: &[Cmd] = &[Cmd::Run, Cmd::Chat, Cmd::Resume];
const TOOLS: &[Cmd] = &[Cmd::Run, Cmd::Chat, Cmd::Resume, Cmd::Context];
const KEEPING: &[Cmd] = &[Cmd::Run, Cmd::Chat, Cmd::Resume, Cmd::Compact];
const AUTH: &[Cmd] = &[Cmd::Auth];
const EVERY: &[Cmd] = &[
    Cmd::Run,
    Cmd::Chat,
    Cmd::Resume,
    Cmd::Compact,
    Cmd::Context,
    Cmd::Sessions,
    Cmd::Show,
    Cmd::Status,
    Cmd::Tool,
    Cmd::Config,
    Cmd::Trust,
    Cmd::Auth,
    Cmd::Demo,
    Cmd::Explain,
    Cmd::Schema,
    Cmd::Completion,
    Cmd::Man,
    Cmd::Help,
    Cmd::Version,
];
const TOOL: &[Cmd] = &[Cmd::Tool];

const fn switch(
    name: &'static str,
    group: Group,
    on: &'static [Cmd],
    env: bool,
    doc: &'static str,
) -> Flag {
    Flag { name, short: None, takes: Takes::Nothing, choices: &[], group, on, key: "", env, doc }
}

const fn value(
    name: &'static str,
    value: &'static str,
    group: Group,
    on: &'static [Cmd],
    key: &'static str,
    doc: &'static str,
) -> Flag {
    let env = !matches!(group, Group::Arguments);
    let takes = Takes::Value(value);
    Flag { name, short: None, takes, choices: &[], group, on, key, env, doc }
}

impl Flag {
    const fn short(mut self, short: char) -> Flag {
        self.short = Some(short);
        self
    }

    const fn choices(mut self, choices: &'static [&'static str]) -> Flag {
        self.choices = choices;
        self
    }
}

/// Every flag, in the order in which help lists them.
pub const FLAGS: &[Flag] = &[
    Flag {
        name: "prompt",
        short: Some('p'),
        takes: Takes::Optional("TEXT"),
        choices: &[],
        group: Group::Input,
        on: &[Cmd::Run, Cmd::Resume],
        key: "",
        env: false,
        doc: "The prompt. '-', or nothing, reads it from standard input; otherwise what is piped \
              in is attached to it.",
    },
    value(
        "file",
        "FILE",
        Group::Input,
        RUN,
        "",
        "Attach a text file to the prompt. May be given several times.",
    )
    .short('f'),
    value(
        "stdin",
        "MODE",
        Group::Input,
        RUN,
        "",
        "Whether standard input is attached: auto (a silent pipe is given up after 10 seconds), \
         always (wait for its end) or never (do not look).",
    )
    .choices(&["auto", "always", "never"]),
    value(
        "provider",
        "NAME",
        Group::Model,
        SETTINGS,
        "provider.name",
        "Who answers: openai (any server that speaks its protocol), local (the server found on this \
         machine), replay or echo.",
    )
    .choices(provider::NAMES),
    value(
        "model",
        "NAME",
        Group::Model,
        SETTINGS,
        "provider.model",
        "The model's name, as the \
          server knows it.",
    ),
    value(
        "base-url",
        "URL",
        Group::Model,
        CREDENTIALS,
        "openai.base_url",
        "The server, up to and \
          including /v1.",
    ),
    value(
        "api-key",
        "KEY",
        Group::Model,
        CREDENTIALS,
        "openai.api_key",
        "The key. Others on the \
          machine can see a command line: prefer OPENAI_API_KEY.",
    ),
    value(
        "auth-file",
        "FILE",
        Group::Model,
        CREDENTIALS,
        "auth.file",
        "Where the sign-in with a ChatGPT subscription is kept.",
    ),
    value(
        "issuer",
        "URL",
        Group::Model,
        AUTH,
        "auth.issuer",
        "Who signs people in and renews their tokens.",
    ),
    value(
        "client-id",
        "ID",
        Group::Model,
        AUTH,
        "auth.client_id",
        "The client that a sign-in is for.",
    ),
    value(
        "codex-base-url",
        "URL",
        Group::Model,
        AUTH,
        "auth.codex_base_url",
        "The server that a sign-in is for.",
    ),
    value("openai-api", "API", Group::Model, SETTINGS, "openai.api", "The dialect to speak.")
        .choices(&["chat", "responses"]),
    value(
        "openai-transport",
        "HOW",
        Group::Model,
        SETTINGS,
        "openai.transport",
        "How requests of the dialect responses travel.",
    )
    .choices(&["http", "websocket", "auto"]),
    value(
        "reasoning-effort",
        "LEVEL",
        Group::Model,
        SETTINGS,
        "openai.reasoning_effort",
        "How long the model may think before it answers, where it can.",
    )
    .choices(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    value(
        "reasoning-summary",
        "KIND",
        Group::Model,
        SETTINGS,
        "openai.reasoning_summary",
        "What a model tells of its thoughts (with --openai-api responses).",
    )
    .choices(&["auto", "concise", "detailed"]),
    value(
        "session",
        "ID|NAME",
        Group::Session,
        &[Cmd::Run, Cmd::Chat, Cmd::Compact],
        "",
        "Continue this session: the start of its id, or its name. A name that is not in use yet \
         begins a session of that name.",
    ),
    switch(
        "continue",
        Group::Session,
        &[Cmd::Run, Cmd::Chat, Cmd::Compact],
        true,
        "Continue the newest session of this \
           project.",
    ),
    switch(
        "fork",
        Group::Session,
        CHAT,
        true,
        "Continue in a copy: the session itself stays as \
           it is.",
    ),
    switch("no-session", Group::Session, &[Cmd::Run, Cmd::Chat], true, "Keep no session file."),
    value(
        "instructions",
        "TEXT",
        Group::Session,
        &[Cmd::Compact],
        "",
        "What the summary should pay attention to.",
    ),
    Flag {
        key: "context.auto_compact",
        ..switch(
            "auto-compact",
            Group::Session,
            CHAT,
            true,
            "Summarise the older part of a conversation that becomes too large; the default where \
             the model's window is known.",
        )
    },
    value(
        "auto-compact-threshold-tokens",
        "N",
        Group::Session,
        CHAT,
        "context.auto_compact_threshold_tokens",
        "The estimated size of a prompt from which it is made smaller.",
    ),
    value(
        "keep-recent-tokens",
        "N",
        Group::Session,
        KEEPING,
        "context.keep_recent_tokens",
        "How much of the latest conversation a summary leaves as it is.",
    ),
    value(
        "keep-messages",
        "N",
        Group::Session,
        KEEPING,
        "session.keep_messages",
        "How many of the latest messages stay where all of them would fit.",
    ),
    value("session-dir", "DIR", Group::Session, PLACES, "session.dir", "Where sessions are kept."),
    value(
        "max-tool-rounds",
        "N",
        Group::Limits,
        SETTINGS,
        "session.max_tool_rounds",
        "How many \
          rounds of tool calls a run may take (32).",
    ),
    value(
        "timeout",
        "TIME",
        Group::Limits,
        RUN,
        "",
        "End the run after this time: seconds, or \
          with a unit as in 90s, 10m, 1h.",
    ),
    value(
        "tools",
        "LIST",
        Group::Limits,
        TOOLS,
        "tools.allow",
        "The tools that the model may use, separated \
          by commas; 'none' for none at all.",
    ),
    Flag {
        on: &[Cmd::Run, Cmd::Chat, Cmd::Resume, Cmd::Tool],
        key: "paths.read_outside",
        ..switch(
            "read-outside",
            Group::Limits,
            RUN,
            true,
            "Let file tools read outside the \
                 working directory.",
        )
    },
    switch(
        "trust",
        Group::Limits,
        SETTINGS,
        true,
        "Trust this project's configuration for this \
           run.",
    ),
    switch(
        "json",
        Group::Output,
        RUN,
        true,
        "Print the session's events as JSON lines, a \
           run.result line last.",
    ),
    switch("json-result", Group::Output, RUN, true, "Print only the run.result line."),
    switch(
        "deltas",
        Group::Output,
        RUN,
        true,
        "With --json: print the answer's pieces as they \
           arrive, too.",
    ),
    switch(
        "print-request",
        Group::Output,
        RUN,
        false,
        "Send nothing: print the first request as it would be sent, without credentials; with \
         --json as one object.",
    ),
    value("output", "FILE", Group::Output, RUN, "", "Also write the final answer to this file.")
        .short('o'),
    switch(
        "quiet",
        Group::Output,
        RUN,
        true,
        "Only the answer and errors: no notices, no status \
           line.",
    )
    .short('q'),
    switch(
        "verbose",
        Group::Output,
        RUN,
        true,
        "Say more on standard error: the model's reasoning, token counts and how to go on (a \
         terminal shows them anyway).",
    )
    .short('v'),
    value(
        "color",
        "WHEN",
        Group::Output,
        &[Cmd::Run, Cmd::Chat, Cmd::Resume, Cmd::Show, Cmd::Demo],
        "",
        "Colours: auto (on a terminal, unless NO_COLOR is set), always or never.",
    )
    .choices(&["auto", "always", "never"]),
    switch(
        "plain",
        Group::Output,
        &[Cmd::Chat, Cmd::Resume],
        true,
        "In the chat: print line by line, without a region that is drawn anew.",
    ),
    switch(
        "stream",
        Group::Output,
        RUN,
        true,
        "Print the answer as it arrives (the default on a \
           terminal).",
    ),
    switch(
        "no-stream",
        Group::Output,
        RUN,
        true,
        "Print the answer when it is whole (the default \
           on a pipe).",
    ),
    switch("json", Group::Output, &[Cmd::Compact], false, "Print what was done as one object."),
    Flag {
        takes: Takes::Optional("FILE"),
        ..switch(
            "dump",
            Group::Output,
            &[Cmd::Context],
            false,
            "Print all of the text instead, or write it to this new file.",
        )
    },
    switch("json", Group::Output, &[Cmd::Context], false, "Print the sizes as one object."),
    switch("json", Group::Output, &[Cmd::Status], false, "Print the sums as one object."),
    switch("json", Group::Output, &[Cmd::Sessions], false, "Print a JSON array of index rows."),
    switch(
        "json",
        Group::Output,
        &[Cmd::Show],
        false,
        "Print a JSON array of the events as they \
           stand in the log.",
    ),
    switch(
        "full",
        Group::Output,
        &[Cmd::Show],
        false,
        "Do not cut long tool results and \
           attachments.",
    ),
    switch(
        "stats",
        Group::Output,
        &[Cmd::Show],
        false,
        "In place of the events: what each model call took, and all of them; with --json as one \
         object.",
    ),
    switch(
        "json",
        Group::Output,
        TOOL,
        false,
        "Print the result as {\"text\", \"status\", \
           \"changed\"}.",
    ),
    switch(
        "json",
        Group::Output,
        &[Cmd::Version],
        false,
        "Print name, version, target and build \
           as JSON.",
    ),
    switch(
        "browser",
        Group::Input,
        AUTH,
        false,
        "With login: sign in with a browser on this machine, instead of by a code.",
    ),
    switch("json", Group::Output, AUTH, false, "With status: print one JSON object."),
    switch(
        "effective",
        Group::Output,
        &[Cmd::Config],
        false,
        "With show: every key with its \
           value in force, defaults included.",
    ),
    switch(
        "origin",
        Group::Output,
        &[Cmd::Config],
        false,
        "With show: where each value comes \
           from.",
    ),
    switch("list", Group::Output, &[Cmd::Trust], false, "List what is trusted."),
    switch("remove", Group::Output, &[Cmd::Trust], false, "Trust the project no longer."),
    value("args", "JSON", Group::Arguments, TOOL, "", "All arguments as one JSON object."),
    value("limit", "N", Group::Arguments, TOOL, "", "ls, read, find, grep: at most this many."),
    value("offset", "N", Group::Arguments, TOOL, "", "read: start at this line, counted from 1."),
    value("context", "N", Group::Arguments, TOOL, "", "grep: lines around each match (0 to 5)."),
    value("timeout", "TIME", Group::Arguments, TOOL, "", "bash: end the command after this time."),
    value(
        "content",
        "TEXT",
        Group::Arguments,
        TOOL,
        "",
        "write: the new content; '-' reads \
          standard input.",
    ),
    value("old", "TEXT", Group::Arguments, TOOL, "", "edit: the text to replace."),
    value("new", "TEXT", Group::Arguments, TOOL, "", "edit: what to put in its place."),
    value("glob", "GLOB", Group::Arguments, TOOL, "", "find, grep: only paths that match."),
    switch(
        "ignore-case",
        Group::Arguments,
        TOOL,
        false,
        "grep: upper and lower case are the \
           same.",
    ),
    switch("regex", Group::Arguments, TOOL, false, "grep: the pattern is a regular expression."),
    switch("hidden", Group::Arguments, TOOL, false, "find, grep: hidden files as well."),
    switch("no-ignore", Group::Arguments, TOOL, false, "find, grep: what git ignores as well."),
    switch("dry-run", Group::Arguments, TOOL, false, "edit: show the change, do not make it."),
    value("directory", "DIR", Group::Settings, EVERY, "", "Work as if started in this directory.")
        .short('C'),
    switch("no-config", Group::Settings, FILES, true, "Read no configuration file."),
    value(
        "set",
        "KEY=VALUE",
        Group::Settings,
        SETTINGS,
        "",
        "Override one key of the \
          configuration, as in openai.api=chat. May be given several times.",
    )
    .short('c'),
    switch("help", Group::Other, EVERY, false, "Say what the command takes.").short('h'),
    switch("version", Group::Other, &[Cmd::Run], false, "Print the version.").short('V'),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::commands::COMMANDS;
    use crate::config::Kind;
    use crate::harness;

    #[test]
    fn rows_of_one_name_agree_and_no_command_has_two() {
        for flag in FLAGS {
            for other in FLAGS.iter().filter(|other| other.name == flag.name) {
                let takes_value = |flag: &Flag| flag.takes != Takes::Nothing;
                assert_eq!(takes_value(flag), takes_value(other), "--{}", flag.name);
                assert_eq!(flag.short, other.short, "--{}", flag.name);
            }
        }
        for row in COMMANDS {
            let mut names: Vec<_> = flags_of(row.cmd).map(|flag| flag.name).collect();
            let mut shorts: Vec<_> = flags_of(row.cmd).filter_map(|flag| flag.short).collect();
            let (count, short_count) = (names.len(), shorts.len());
            names.sort_unstable();
            names.dedup();
            shorts.sort_unstable();
            shorts.dedup();
            assert_eq!((names.len(), shorts.len()), (count, short_count), "{}", row.name);
        }
    }

    #[test]
    fn a_flag_of_a_run_that_takes_a_value_is_a_setting_or_read_by_name() {
        let by_name = ["prompt", "file", "stdin", "session", "timeout", "output", "color"];
        let elsewhere = ["directory", "set"];
        let left: Vec<_> = flags_of(Cmd::Run)
            .filter(|flag| flag.takes != Takes::Nothing && flag.key.is_empty())
            .map(|flag| flag.name)
            .filter(|name| !by_name.contains(name) && !elsewhere.contains(name))
            .collect();
        assert_eq!(left, Vec::<&str>::new());
    }

    #[test]
    fn flags_of_settings_name_keys_and_offer_what_they_take() {
        let keys: Vec<_> = harness::keys().into_iter().chain(provider::KEYS.to_vec()).collect();
        // The key is a secret that no file holds.
        let named = |flag: &&Flag| !flag.key.is_empty() && flag.name != "api-key";
        for flag in FLAGS.iter().filter(named) {
            let key = keys.iter().find(|key| key.name == flag.key);
            let Some(key) = key else { panic!("--{}: no key '{}'", flag.name, flag.key) };
            if let Kind::Choice(choices) = key.kind {
                assert_eq!(flag.choices, choices, "--{}", flag.name);
            }
        }
    }
}
