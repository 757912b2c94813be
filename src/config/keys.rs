//! The keys that belong to no single module: session, context, prompt, and what a run may touch.
//!
//! Other modules declare theirs beside the code that reads them.

use crate::config::{Key, Kind, Trust};

/// The largest count that a key may have: what a person could mean, far below overflow.
const COUNT_MAX: i64 = 1_000_000_000;

pub const SESSION_DIR: Key = Key {
    name: "session.dir",
    kind: Kind::ProjectPath,
    default: None,
    trust: Trust::User,
    doc: "Where session logs are kept. Unset: `.etch/sessions` of the project's root; without a \
          project, or where that cannot be written, the user's state folder.",
};

pub const SESSION_MAX_TOOL_ROUNDS: Key = Key {
    name: "session.max_tool_rounds",
    kind: Kind::Int { min: 1, max: 100_000 },
    default: Some("32"),
    trust: Trust::Downward,
    doc: "How many rounds (one answer of the model with its tool calls) one prompt may take. A \
          run that reaches it stops and can be continued.",
};

pub const SESSION_KEEP_MESSAGES: Key = Key {
    name: "session.keep_messages",
    kind: Kind::Int { min: 1, max: COUNT_MAX },
    default: Some("12"),
    trust: Trust::Downward,
    doc: "How many of the latest messages a compaction keeps when a token budget gives no place \
          to cut.",
};

pub const CONTEXT_AUTO_COMPACT: Key = Key {
    name: "context.auto_compact",
    kind: Kind::Bool,
    default: None,
    trust: Trust::User,
    doc: "Summarise the older part of a conversation when it passes the threshold. Unset: where \
          the model's window is known, or a threshold is set.",
};

pub const CONTEXT_AUTO_COMPACT_THRESHOLD_PERCENT: Key = Key {
    name: "context.auto_compact_threshold_percent",
    kind: Kind::Int { min: 1, max: 97 },
    default: Some("80"),
    trust: Trust::Downward,
    doc: "The share of the largest prompt that fits, in percent, from which a conversation is \
          folded or compacted.",
};

pub const CONTEXT_FOLD: Key = Key {
    name: "context.fold",
    kind: Kind::Bool,
    default: Some("true"),
    trust: Trust::User,
    doc: "At the threshold, put one line in the place of each result that is no longer needed, \
          where that is enough to do without a summary.",
};

pub const CONTEXT_AUTO_COMPACT_THRESHOLD_TOKENS: Key = Key {
    name: "context.auto_compact_threshold_tokens",
    kind: Kind::Int { min: 1, max: COUNT_MAX },
    default: None,
    trust: Trust::Downward,
    doc: "The estimated size of a prompt, in tokens, from which a conversation is folded or \
          compacted. Unset: a share of the window; and without a known window 120000, where \
          auto_compact is on.",
};

pub const CONTEXT_KEEP_RECENT_TOKENS: Key = Key {
    name: "context.keep_recent_tokens",
    kind: Kind::Int { min: 1, max: COUNT_MAX },
    default: Some("20000"),
    trust: Trust::Downward,
    doc: "How much of the latest conversation, in estimated tokens, a compaction leaves as it is.",
};

pub const CONTEXT_WINDOW_TOKENS: Key = Key {
    name: "context.window_tokens",
    kind: Kind::Int { min: 1, max: COUNT_MAX },
    default: None,
    trust: Trust::User,
    doc: "How many tokens the model takes in, prompt and answer together. Unset: what the server \
          says, else what is known of the model.",
};

pub const CONTEXT_RESERVE_TOKENS: Key = Key {
    name: "context.reserve_tokens",
    kind: Kind::Int { min: 0, max: COUNT_MAX },
    default: Some("16384"),
    trust: Trust::User,
    doc: "How much of the model's context is kept free for its answer, in tokens; never more than \
          a quarter of it.",
};

pub const PROMPT_SYSTEM_PROMPT: Key = Key {
    name: "prompt.system_prompt",
    kind: Kind::Text,
    default: None,
    trust: Trust::Anyone,
    doc: "Text that is added to the built-in instructions. Not together with \
          `prompt.system_prompt_file`.",
};

pub const PROMPT_SYSTEM_PROMPT_FILE: Key = Key {
    name: "prompt.system_prompt_file",
    kind: Kind::Path,
    default: None,
    trust: Trust::Anyone,
    doc: "A file whose text is added to the built-in instructions. In a project that is not \
          trusted it must lie within the project.",
};

pub const SUBAGENTS_ENABLED: Key = Key {
    name: "subagents.enabled",
    kind: Kind::Bool,
    default: Some("false"),
    trust: Trust::User,
    doc: "Offer the profiles of `[[subagents.profile]]` to the model. Needs at least one that is \
          not disabled.",
};

pub const SUBAGENTS_MAX_PER_TURN: Key = Key {
    name: "subagents.max_per_turn",
    kind: Kind::Int { min: 1, max: 1000 },
    default: Some("4"),
    trust: Trust::Downward,
    doc: "How many subagents one answer of the model may start.",
};

pub const SUBAGENTS_MAX_CONCURRENT: Key = Key {
    name: "subagents.max_concurrent",
    kind: Kind::Int { min: 1, max: 1000 },
    default: Some("2"),
    trust: Trust::Downward,
    doc: "How many subagents run at the same time.",
};

pub const BASH_TIMEOUT_SECONDS_MAX: Key = Key {
    name: "bash.timeout_seconds_max",
    kind: Kind::Int { min: 1, max: 86_400 },
    default: Some("600"),
    trust: Trust::Downward,
    doc: "The longest time, in seconds, that the model may give a shell command.",
};

pub const BASH_LOGIN_SHELL: Key = Key {
    name: "bash.login_shell",
    kind: Kind::Bool,
    default: Some("false"),
    trust: Trust::User,
    doc: "Run shell commands in a login shell. It reads the profile files, which may reset PATH \
          under an activated environment.",
};

pub const BASH_ENV: Key = Key {
    name: "bash.env",
    kind: Kind::List,
    default: Some("[]"),
    trust: Trust::User,
    doc: "Names of environment variables that shell commands get although they hold a key of a \
          model provider, such as OPENAI_API_KEY. All others they get anyway, but for ETCH_*.",
};

pub const TOOLS_ALLOW: Key = Key {
    name: "tools.allow",
    kind: Kind::List,
    default: None,
    trust: Trust::Downward,
    doc: "The only tools that the model may use. Unset: every tool. A project's file can shorten \
          the list, never extend it.",
};

pub const PATHS_READ_OUTSIDE: Key = Key {
    name: "paths.read_outside",
    kind: Kind::Bool,
    default: Some("false"),
    trust: Trust::User,
    doc: "Let file tools read (never write) outside the working directory.",
};

/// All of the above, in the order of the sample file.
pub const KEYS: &[Key] = &[
    SESSION_DIR,
    SESSION_MAX_TOOL_ROUNDS,
    SESSION_KEEP_MESSAGES,
    CONTEXT_AUTO_COMPACT,
    CONTEXT_AUTO_COMPACT_THRESHOLD_TOKENS,
    CONTEXT_AUTO_COMPACT_THRESHOLD_PERCENT,
    CONTEXT_FOLD,
    CONTEXT_KEEP_RECENT_TOKENS,
    CONTEXT_WINDOW_TOKENS,
    CONTEXT_RESERVE_TOKENS,
    PROMPT_SYSTEM_PROMPT,
    PROMPT_SYSTEM_PROMPT_FILE,
    TOOLS_ALLOW,
    PATHS_READ_OUTSIDE,
    BASH_TIMEOUT_SECONDS_MAX,
    BASH_LOGIN_SHELL,
    BASH_ENV,
    SUBAGENTS_ENABLED,
    SUBAGENTS_MAX_PER_TURN,
    SUBAGENTS_MAX_CONCURRENT,
];
