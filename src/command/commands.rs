//! The one table of commands: names, arguments, what help says of them.

/// A command of etch. [`Cmd::Run`] is what happens with `-p` and no command name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cmd {
    Run,
    Chat,
    Resume,
    Compact,
    Context,
    Sessions,
    Show,
    Status,
    Tool,
    Config,
    Trust,
    Auth,
    Demo,
    Explain,
    Schema,
    Completion,
    Man,
    Help,
    Version,
}

/// A positional argument.
#[derive(Debug)]
pub struct Positional {
    /// In capitals, as help shows it.
    pub name: &'static str,
    pub required: bool,
    /// Takes every following argument as well.
    pub many: bool,
    /// What it may be; empty for free text.
    pub choices: &'static [&'static str],
}

/// One command.
#[derive(Debug)]
pub struct Command {
    pub cmd: Cmd,
    pub name: &'static str,
    /// One line, lower case, for lists.
    pub about: &'static str,
    /// Paragraphs for `help CMD` and the man page; lines of at most 78 columns.
    pub details: &'static str,
    pub positionals: &'static [Positional],
    /// Command lines with what they do.
    pub examples: &'static [(&'static str, &'static str)],
}

/// The row of a command; the prompt itself is listed as `-p`.
pub fn command(cmd: Cmd) -> &'static Command {
    COMMANDS.iter().find(|row| row.cmd == cmd).unwrap_or(&COMMANDS[0])
}

/// Finds a command by what was typed.
pub fn by_name(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|row| row.name == name && row.cmd != Cmd::Run)
}

const fn required(name: &'static str) -> Positional {
    Positional { name, required: true, many: false, choices: &[] }
}

const fn optional(name: &'static str) -> Positional {
    Positional { name, required: false, many: false, choices: &[] }
}

impl Positional {
    const fn of(mut self, choices: &'static [&'static str]) -> Positional {
        self.choices = choices;
        self
    }

    const fn many(mut self) -> Positional {
        self.many = true;
        self
    }
}

/// What `etch config` can do.
pub const CONFIG_ACTIONS: &[&str] = &["check", "show", "schema"];
/// What `etch auth` can do.
pub const AUTH_ACTIONS: &[&str] = &["login", "status", "logout", "import"];
/// The shells that `etch completion` knows.
pub const SHELLS: &[&str] = &["bash", "zsh", "fish"];
/// The schemas that `etch schema` prints.
pub const SCHEMAS: &[&str] = &["events", "result", "config"];

/// Every command, in the order in which help lists them.
pub const COMMANDS: &[Command] = &[
    Command {
        cmd: Cmd::Run,
        name: "-p",
        about: "run one prompt: the answer on standard output",
        details: "\
Sends the prompt to the model, runs the tools that the model asks for in the
working directory, and prints the final answer. Notices go to standard error.

'-p -', or '-p' with nothing after it, reads the prompt from standard input.
With a prompt given, text that is piped in is attached to it, up to 256 KiB.
A pipe that stays open and silent is given up after 10 seconds and the run goes
on without it: --stdin always waits for its end, --stdin never does not look.

Every flag has a variable: ETCH_ and its name in capitals, as in ETCH_MODEL or
ETCH_MAX_TOOL_ROUNDS. A flag wins over the variable, the variable over the
configuration. Keys come from OPENAI_API_KEY or OPENROUTER_API_KEY; 'etch auth
login' uses a ChatGPT subscription instead.",
        positionals: &[],
        examples: &[
            ("etch -p \"make the failing test pass\"", "work in this directory"),
            ("git diff | etch -p \"review this\"", "with attached input"),
            ("etch -p --continue \"now the docs\"", "go on with the newest session"),
            ("etch -p \"list the TODOs\" --json-result | jq -r .answer", "from a script"),
        ],
    },
    Command {
        cmd: Cmd::Chat,
        name: "chat",
        about: "talk at the terminal; the same as etch alone",
        details: "\
Answers stream into the terminal's own scrollback; only the lines at the bottom
are drawn anew. What you type during a turn waits for its next step. Esc stops
the turn, Ctrl-C twice leaves, /help lists commands and keys. Nothing that goes
wrong in a turn ends the chat.

Without a terminal, or with --plain, every line of standard input is a prompt or
a command, and what happens is printed line by line.",
        positionals: &[],
        examples: &[
            ("etch", "on a terminal"),
            ("etch chat --continue", "the newest session of this project"),
            ("printf 'one\\ntwo\\n' | etch chat", "two prompts, one after the other"),
        ],
    },
    Command {
        cmd: Cmd::Resume,
        name: "resume",
        about: "go on with a session",
        details: "\
Continues the session whose id begins with ID: with the prompt of -p, else in
the chat. Without ID it is the newest one of this project; the chat on a terminal
lets you choose.",
        positionals: &[optional("ID")],
        examples: &[
            ("etch resume", "choose one"),
            ("etch resume 4f2a91c0 -p \"and now the other one\"", "by id"),
        ],
    },
    Command {
        cmd: Cmd::Compact,
        name: "compact",
        about: "summarise the older part of a session",
        details: "\
Asks the model for a summary of all but the latest part of a session and puts
it in the place of that part: the next turn sees the summary and what follows.
The session's file keeps everything. When there is too little to summarise, that
is said, nothing is sent, and the exit code is 0.

A run and the chat do the same by themselves when a conversation becomes too
large for the model, see context.auto_compact.",
        positionals: &[],
        examples: &[
            ("etch compact --continue", "the newest session of this project"),
            ("etch compact --session 4f2a --instructions \"the parser\"", "with a focus"),
        ],
    },
    Command {
        cmd: Cmd::Context,
        name: "context",
        about: "show what the model sees, layer by layer",
        details: "\
Lists all that the next prompt of a session brings along: instructions and
where they come from, skills, the conversation, the tools; each with its bytes
and estimated tokens. Then how much the model takes, as far as that is known
without asking anybody, and what happens at which size. ID is the start of a
session's id; without it the newest session of this project is meant, or, where
there is none, a first prompt. No model and no network is needed.

--dump prints the whole text instead, or writes it to a new file that only you
can read.",
        positionals: &[optional("ID")],
        examples: &[
            ("etch context", "the newest session"),
            ("etch context 4f2a --dump seen.txt", "all of it, into a file"),
            ("etch context --json | jq .tokens", "for a script"),
        ],
    },
    Command {
        cmd: Cmd::Sessions,
        name: "sessions",
        about: "list the sessions of this project",
        details: "\
One line for each session, the newest last: date, time (UTC), the start of its
id, and its title.",
        positionals: &[],
        examples: &[("etch sessions | tail -5", "the newest five")],
    },
    Command {
        cmd: Cmd::Show,
        name: "show",
        about: "print a session",
        details: "\
Prints what happened in a session in the order in which it happened: prompts,
reasoning, answers, tool calls, results, errors and retries. ID is the start of
a session's id; without it the newest session of this project is shown.

--json prints an array of the events, each exactly as it stands in the log,
events of unknown types included.",
        positionals: &[optional("ID")],
        examples: &[
            ("etch show 4f2a91c0", "as text"),
            ("etch show --json | jq '.[].type'", "the newest, for a script"),
        ],
    },
    Command {
        cmd: Cmd::Status,
        name: "status",
        about: "show what a session took",
        details: "\
The same as 'etch show --stats': what each model call of a session took, tokens,
bytes, times, retries, and the sums. ID is the start of a session's id; without
it the newest session of this project is meant.",
        positionals: &[optional("ID")],
        examples: &[("etch status", "the newest"), ("etch status 4f2a --json", "for a script")],
    },
    Command {
        cmd: Cmd::Tool,
        name: "tool",
        about: "run one of the model's tools by hand",
        details: "\
Runs a tool as the model would, needing neither a configuration nor a network,
and prints its result. Exit code 1 when the tool reports an error.

  etch tool ls [PATH]              etch tool write PATH --content TEXT
  etch tool read PATH              etch tool edit PATH --old TEXT --new TEXT
  etch tool find [QUERY [PATH]]    etch tool bash WORDS...
  etch tool grep PATTERN [PATH]

Any tool takes its arguments as one JSON object, too: --args JSON. The words of
bash are joined by blanks; flags of etch stand before the first of them.
'etch tool' alone lists the tools.",
        positionals: &[optional("NAME"), optional("ARG").many()],
        examples: &[
            ("etch tool read src/main.rs --offset 10 --limit 5", "five lines"),
            ("etch tool edit a.txt --old x --new y --dry-run", "show the change only"),
            ("etch tool bash 'cargo test 2>&1 | tail'", "a command line"),
        ],
    },
    Command {
        cmd: Cmd::Config,
        name: "config",
        about: "check or show the configuration",
        details: "\
check    reads the files that apply here and names each mistake with its place
show     prints the settings; --effective with defaults, --origin with sources
schema   prints the JSON Schema of the configuration

Files: ~/.etch/config.toml, then .etch/config.toml of the project. What a
project that is not trusted may set is limited: see 'etch help trust'.",
        positionals: &[required("ACTION").of(CONFIG_ACTIONS)],
        examples: &[("etch config show --effective --origin", "all that is in force, and why")],
    },
    Command {
        cmd: Cmd::Trust,
        name: "trust",
        about: "trust this project's configuration",
        details: "\
A project's .etch/config.toml comes with the checkout. Until you trust it, it
may only set display, lower limits, a model's name, and prompt text within the
project: never an endpoint, a source of keys, hooks or plugins. 'etch trust'
shows the file and records its content (as a hash, outside the project); a
changed file has to be trusted again. --trust does it for one run. PATH is
another project's folder.",
        positionals: &[optional("PATH")],
        examples: &[("etch trust", "after reading the file")],
    },
    Command {
        cmd: Cmd::Auth,
        name: "auth",
        about: "sign in with a ChatGPT subscription",
        details: "\
login    prints an address and a code to enter there, on any machine; with
         --browser a browser on this one comes back by itself
status   says which credential a run uses here, whose it is, and how much of
         the plan is used
logout   ends the sign-in and removes its file
import   uses the sign-in of the Codex CLI in place (~/.codex/auth.json, or
         PATH): both programs share it

A run takes the first of: --api-key, the sign-in, CODEX_ACCESS_TOKEN,
OPENAI_API_KEY or OPENROUTER_API_KEY. Each is sent only to the server that it
belongs to.",
        positionals: &[required("ACTION").of(AUTH_ACTIONS), optional("PATH")],
        examples: &[
            ("etch auth login", "works over SSH"),
            ("etch auth status --json", "for a script"),
        ],
    },
    Command {
        cmd: Cmd::Demo,
        name: "demo",
        about: "watch a real run, without a key or a network",
        details: "\
Copies a small broken project into a temporary directory and plays a recorded
model against it: everything but the model is real.",
        positionals: &[],
        examples: &[("etch demo", "about a second")],
    },
    Command {
        cmd: Cmd::Explain,
        name: "explain",
        about: "say what an exit code means and what to do",
        details: "\
CODE is a number or a name; without it every code is listed.",
        positionals: &[optional("CODE")],
        examples: &[("etch explain 5", ""), ("etch -p ... || etch explain $?", "")],
    },
    Command {
        cmd: Cmd::Schema,
        name: "schema",
        about: "print the JSON Schema of what etch reads and writes",
        details: "\
events   one line of a session or of --json
result   the run.result line that ends --json and --json-result
config   the configuration file",
        positionals: &[required("WHAT").of(SCHEMAS)],
        examples: &[("etch schema result", "")],
    },
    Command {
        cmd: Cmd::Completion,
        name: "completion",
        about: "print completions for a shell",
        details: "\
bash  etch completion bash >~/.local/share/bash-completion/completions/etch
zsh   etch completion zsh >\"${fpath[1]}/_etch\"
fish  etch completion fish >~/.config/fish/completions/etch.fish",
        positionals: &[required("SHELL").of(SHELLS)],
        examples: &[],
    },
    Command {
        cmd: Cmd::Man,
        name: "man",
        about: "print the manual page",
        details: "The page is roff on standard output.",
        positionals: &[],
        examples: &[("etch man | man -l -", "read it")],
    },
    Command {
        cmd: Cmd::Help,
        name: "help",
        about: "say what etch, or a command, takes",
        details: "'etch help run' lists the flags of a prompt.",
        positionals: &[optional("COMMAND").many()],
        examples: &[],
    },
    Command {
        cmd: Cmd::Version,
        name: "version",
        about: "print the version",
        details: "The same as 'etch --version'.",
        positionals: &[],
        examples: &[("etch --version --json", "with target and build")],
    },
];
