//! Assembly: from settings to a ready agent; the only module that names every part.

pub mod access;
mod model;
mod places;
mod sessions;

pub use places::{Moved, points};
pub use sessions::{Resume, SessionRequest, store};

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::{
    self, Agent, Compacted, Conversation, Failure, NotCompacted, Observer, Order, Outcome, Trigger,
};
use crate::cancel::Cancel;
use crate::config::{self, Config, Key, Loaded, Overrides, keys};
use crate::context::budget::{self, Budget};
use crate::context::compact::Keep;
use crate::context::instructions::{self, Instructions};
use crate::context::project::Projection;
use crate::context::report::Sight;
use crate::hook::{self, Hooks};
use crate::host::Host;
use crate::model::{ErrorKind, Message, Model, ModelError, Preview, Window, WindowSource};
use crate::policy::{self, Limits};
use crate::process;
use crate::provider;
use crate::provider::openai::access::Access;
use crate::provider::openai::auth::{self, vault::Vault};
use crate::session;
use crate::tool::bash::{BashOptions, BashTool};
use crate::tool::{self, Registry};
use crate::workspace::Workspace;

/// How deep etch runs inside etch: a shell command that starts it counts one.
pub const DEPTH_VARIABLE: &str = "ETCH_DEPTH";
/// At this depth a run is refused: something calls itself.
const DEPTH_MAX: u32 = 3;
/// A conversation below this fits any model: how much it takes does not matter yet.
const ASK_TOKENS_MIN: u64 = 3_000;
/// The session that started a shell command, for scripts that want to know.
pub const SESSION_VARIABLE: &str = "ETCH_PARENT_SESSION";

/// Every key of the configuration: the one table by which files are parsed, shown and described.
pub fn keys() -> Vec<Key> {
    keys::KEYS
        .iter()
        .chain(provider::KEYS)
        .chain(auth::KEYS)
        .chain([&model::API_KEY])
        .copied()
        .collect()
}

/// Why a run could not begin.
#[derive(Debug)]
pub enum Error {
    Config(Vec<config::Error>),
    /// A hook that cannot be used: they guard, so a run without it would be worse than none.
    Hooks(String),
    Depth(u32),
    /// The base addresses of the model servers on this machine, when there are several.
    NoProvider(Vec<String>),
    Provider(ModelError),
    Session(session::Error),
    Tools(String),
    Tree {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl From<session::Error> for Error {
    fn from(error: session::Error) -> Error {
        Error::Session(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(errors) => {
                let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
            Error::Hooks(message) => f.write_str(message),
            Error::Depth(depth) => write!(
                f,
                "etch runs inside etch inside etch ({DEPTH_VARIABLE} is {depth}): refused, since \
                 nothing would end it"
            ),
            Error::NoProvider(several) => {
                f.write_str(
                    "no model provider is configured. One of:\n- a local server: etch -p TEXT ",
                )?;
                match several.as_slice() {
                    [] => f.write_str("--provider local (Ollama, llama.cpp, vLLM, LM Studio)")?,
                    several => {
                        write!(f, "--base-url URL --model NAME (here are {})", several.join(", "))?
                    }
                }
                f.write_str(
                    "\n- a key: OPENAI_API_KEY=... etch -p TEXT --provider openai --model NAME\n\
                     - a ChatGPT subscription: etch auth login\n\
                     - to see it work first, with no model at all: etch demo",
                )
            }
            Error::Provider(error) => f.write_str(&error.message),
            Error::Session(error) => error.fmt(f),
            Error::Tools(message) => f.write_str(message),
            Error::Tree { path, source } => {
                write!(f, "cannot work in {}: {source}", path.display())
            }
        }
    }
}

impl Error {
    /// The value of `stop` in `run.result`.
    pub fn stop(&self) -> &'static str {
        match self {
            Error::Provider(error) if error.kind == ErrorKind::Network => "network",
            Error::Depth(_) => "limit",
            Error::Config(_)
            | Error::Hooks(_)
            | Error::NoProvider(_)
            | Error::Provider(_)
            | Error::Session(_)
            | Error::Tools(_)
            | Error::Tree { .. } => "error",
        }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            // All of it was typed.
            Error::Config(errors) if errors.iter().all(config::Error::is_usage) => 2,
            Error::Config(_) | Error::Hooks(_) | Error::NoProvider(_) | Error::Tools(_) => 3,
            Error::Provider(error) => match error.kind {
                ErrorKind::Network => 8,
                ErrorKind::Cancelled => 130,
                _ => 3,
            },
            Error::Depth(_) => 5,
            Error::Session(error) => error.exit_code(),
            Error::Tree { .. } => 2,
        }
    }

    pub fn failure(&self) -> Failure {
        let (kind, hint) = match self {
            Error::Config(errors) if errors.iter().all(config::Error::is_usage) => ("usage", ""),
            Error::Config(_) => ("config", "'etch config check' lists every mistake"),
            Error::Hooks(_) => ("config", "correct it, or set 'disabled = true' to run without"),
            Error::NoProvider(_) | Error::Tools(_) => ("config", ""),
            Error::Provider(error) => (error.kind.as_str(), error.hint.as_str()),
            Error::Depth(_) => ("limit", "unset the variable if this is meant"),
            Error::Session(_) => ("session", ""),
            Error::Tree { .. } => ("usage", ""),
        };
        Failure { kind, message: self.to_string(), hint: hint.to_owned() }
    }
}

/// Refuses a run that was started from inside too many others.
pub fn check_depth(host: &Host) -> Result<(), Error> {
    let depth = depth(host);
    if depth >= DEPTH_MAX { Err(Error::Depth(depth)) } else { Ok(()) }
}

fn depth(host: &Host) -> u32 {
    host.var(DEPTH_VARIABLE).and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// The keys that decide which credential is used: commands about credentials read these alone, so
/// that mistakes elsewhere in a file do not keep anybody from signing in.
pub fn access_keys() -> Vec<Key> {
    let is_one = |key: &&Key| matches!(key.name, "openai.base_url" | "openai.api");
    let all = provider::KEYS.iter().filter(is_one).chain(auth::KEYS);
    all.chain([&model::API_KEY]).copied().collect()
}

/// Reads the settings of a run.
pub fn load(host: &Host, overrides: &Overrides) -> Result<Loaded, Error> {
    let mut loaded = config::load(host, &keys(), overrides).map_err(Error::Config)?;
    // A slip of the pen on the command line must not quietly leave the model without a tool. In
    // a file it may be a tool of a newer etch.
    let faults = config::check_tool_names(&loaded, tool::NAMES);
    let (typed, filed): (Vec<_>, Vec<_>) = faults.into_iter().partition(config::Error::is_usage);
    if !typed.is_empty() {
        return Err(Error::Config(typed));
    }
    loaded.warnings.extend(filed.iter().map(ToString::to_string));
    if loaded.tables.plugins.iter().any(|plugin| !plugin.is_disabled()) {
        loaded.warnings.push("plugins are configured; this version does not run them".to_owned());
    }
    if loaded.config.flag(&keys::SUBAGENTS_ENABLED) {
        loaded.warnings.push("subagents are enabled; this version has none".to_owned());
    }
    Ok(loaded)
}

/// What a run is given beside its settings.
pub struct Options {
    /// A recorded model in place of the configured one.
    pub recording: Option<Vec<Vec<u8>>>,
    /// With no provider configured, look for a model server on this machine.
    pub probe_local: bool,
}

/// Where a line for the person goes.
pub type Say<'a> = &'a mut dyn FnMut(&str);

/// A ready agent with all that it owns.
pub struct Harness {
    host: Arc<Host>,
    config: Config,
    model: Box<dyn Model>,
    model_name: String,
    access: Access,
    vault: Vault,
    tools: Registry,
    hooks: Hooks,
    workspace: Workspace,
    instructions: Instructions,
    /// Folders outside the tree that the instructions name.
    readable: Vec<PathBuf>,
    system: Vec<Message>,
    context: budget::Settings,
}

impl Harness {
    /// Assembles everything and begins or resumes the session.
    pub fn build(
        host: &Arc<Host>,
        loaded: &Loaded,
        options: Options,
        request: &SessionRequest,
        cancel: &Cancel,
        say: Say<'_>,
    ) -> Result<(Harness, Conversation), Error> {
        let workspace = workspace(host, loaded)?;
        let chosen = model::choose(host, &loaded.config, options, cancel, say)?;
        let conversation = sessions::open(host, loaded, request, say)?;
        let harness = Harness::assemble(host, loaded, workspace, chosen, &conversation, say)?;
        Ok((harness, conversation))
    }

    /// Another one for a session that goes on: with other settings, or as its files are now.
    pub fn rebuild(
        host: &Arc<Host>,
        loaded: &Loaded,
        options: Options,
        conversation: &Conversation,
        cancel: &Cancel,
        say: Say<'_>,
    ) -> Result<Harness, Error> {
        let workspace = workspace(host, loaded)?;
        let chosen = model::choose(host, &loaded.config, options, cancel, say)?;
        Harness::assemble(host, loaded, workspace, chosen, conversation, say)
    }

    fn assemble(
        host: &Arc<Host>,
        loaded: &Loaded,
        mut workspace: Workspace,
        chosen: model::Chosen,
        conversation: &Conversation,
        say: Say<'_>,
    ) -> Result<Harness, Error> {
        let config = &loaded.config;
        let model::Chosen { model, name: model_name, access } = chosen;
        let options = bash_options(host, config, Some(conversation.log.id()));
        let setup = || hook_setup(host, &options, workspace.root());
        let hooks = Hooks::new(&loaded.tables.hooks, setup).map_err(Error::Hooks)?;
        let bash = BashTool::new(host, options);
        let instructions = instructions::load(host, loaded, bash.shell());
        for warning in &instructions.warnings {
            say(warning);
        }
        let readable = instructions.readable();
        readable.iter().for_each(|dir| workspace.allow_reading(dir));
        let mut tools = tool::built_in(bash);
        if let Some(allowed) = config.list(&keys::TOOLS_ALLOW) {
            tools.retain(|tool| allowed.contains(&tool.spec().name));
        }
        Ok(Harness {
            host: Arc::clone(host),
            config: config.clone(),
            model,
            model_name,
            vault: access::vault(host, config, &access),
            access,
            tools: Registry::new(tools).map_err(Error::Tools)?,
            hooks,
            workspace,
            readable,
            system: instructions.to_messages(),
            instructions,
            context: context_settings(config),
        })
    }

    /// The model's name in requests.
    pub fn model_name(&self) -> &str {
        &self.model_name
    }

    pub fn model(&self) -> &dyn Model {
        &*self.model
    }

    /// How much the model takes in: as configured, as the server says, or as is known of the
    /// model. The server is asked once, and not before this is called; see [`Model::window`].
    pub fn window(&self, cancel: &Cancel) -> Option<Window> {
        self.configured_window().or_else(|| self.model.window(&self.model_name, cancel))
    }

    /// The same for a conversation of about so many tokens: for a small one no server is asked.
    pub fn window_for(&self, tokens: u64, cancel: &Cancel) -> Option<Window> {
        if tokens < ASK_TOKENS_MIN { self.known_window() } else { self.window(cancel) }
    }

    /// The same as far as it is known by now: nobody is asked.
    pub fn known_window(&self) -> Option<Window> {
        self.configured_window().or_else(|| self.model.known_window(&self.model_name))
    }

    fn configured_window(&self) -> Option<Window> {
        let tokens = u64::try_from(self.config.int(&keys::CONTEXT_WINDOW_TOKENS)?).ok()?;
        Some(Window::new(tokens, WindowSource::Configured))
    }

    pub fn reasoning_effort(&self) -> Option<&str> {
        model::reasoning_effort(&self.config)
    }

    pub fn instructions(&self) -> &Instructions {
        &self.instructions
    }

    pub fn tools(&self) -> &Registry {
        &self.tools
    }

    /// How the server is told who calls.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Runs one turn. `steering` is asked after each batch of calls for what the person typed
    /// meanwhile.
    pub fn turn(
        &self,
        conversation: &mut Conversation,
        prompt: &str,
        steering: &mut dyn FnMut() -> Vec<String>,
        cancel: &Cancel,
        mut observer: impl Observer,
    ) -> Outcome {
        self.with_agent(|agent| {
            agent::run_turn(agent, conversation, prompt, steering, cancel, &mut observer)
        })
    }

    /// Compacts a conversation for the person; `focus` is what they want to be looked at.
    pub fn compact(
        &self,
        conversation: &mut Conversation,
        focus: &str,
        cancel: &Cancel,
        mut observer: impl Observer,
    ) -> Result<Compacted, NotCompacted> {
        let window = self.window(cancel);
        let compacted = self.with_agent(|agent| {
            let budget = agent.budget(conversation, window);
            let keep = Keep::TokensOrMessages(budget.keep_recent, budget.keep_messages);
            let order = Order { trigger: Trigger::Manual, focus, keep, waiting: 0 };
            agent::compact(agent, conversation, &budget, &order, cancel, &mut observer)
        })?;
        match conversation.log.sync() {
            Ok(()) => Ok(compacted),
            Err(error) => Err(NotCompacted::LogFailed(error.to_string())),
        }
    }

    /// Lets somebody look at all that the model sees of a conversation.
    pub fn see<R>(&self, conversation: &Conversation, look: impl Fn(&Sight<'_>) -> R) -> R {
        look(&Sight {
            layers: &self.instructions.layers,
            skills: &self.instructions.skills,
            tools: &self.tools.specs(),
            projection: &conversation.projection,
            session_id: Some(conversation.log.id()),
            model: &self.model_name,
            budget: &self.budget(conversation),
        })
    }

    /// What holds for the size of `conversation`, as far as it is known without asking anybody.
    pub fn budget(&self, conversation: &Conversation) -> Budget {
        self.with_agent(|agent| agent.budget(conversation, self.known_window()))
    }

    /// What a turn would send first; `None` where nothing goes over a wire. Nothing is sent.
    /// Keys and tokens are not shown, wherever they stand: a person may have attached one.
    pub fn preview(&self, conversation: &Conversation, prompt: &str) -> Option<Preview> {
        let mut preview = self.with_agent(|agent| agent::preview(agent, conversation, prompt))?;
        let values = preview.headers.iter_mut().map(|(_, value)| value);
        for text in values.chain([&mut preview.url, &mut preview.body]) {
            *text = self.vault.redact(text);
        }
        Some(preview)
    }

    fn with_agent<R>(&self, work: impl FnOnce(&Agent<'_>) -> R) -> R {
        let limits = Limits {
            tools: self.config.list(&keys::TOOLS_ALLOW),
            root: self.workspace.root(),
            read_outside: self.config.flag(&keys::PATHS_READ_OUTSIDE),
            readable: &self.readable,
        };
        let rounds = self.config.int(&keys::SESSION_MAX_TOOL_ROUNDS).unwrap_or(32);
        work(&Agent {
            host: &self.host,
            model: &*self.model,
            model_name: &self.model_name,
            reasoning_effort: model::reasoning_effort(&self.config),
            reasoning_summary: model::reasoning_summary(&self.config),
            max_output_tokens: None,
            window: &|tokens, cancel| self.window_for(tokens, cancel),
            context: &self.context,
            tools: &self.tools,
            workspace: &self.workspace,
            decide: &|name, plan| policy::decide(name, plan, &limits),
            redact: &|text| self.vault.redact(text),
            hooks: &self.hooks,
            system: &self.system,
            rounds_max: u32::try_from(rounds).unwrap_or(u32::MAX),
        })
    }
}

/// What a first prompt would see, found out without a model: nobody is asked, nothing is written.
pub struct View {
    pub instructions: Instructions,
    pub tools: Vec<crate::model::ToolSpec>,
    /// As configured; may be empty.
    pub model: String,
    provider: String,
    settings: budget::Settings,
    window: Option<Window>,
}

impl View {
    pub fn new(host: &Arc<Host>, loaded: &Loaded) -> Result<View, Error> {
        let config = &loaded.config;
        let bash = BashTool::new(host, bash_options(host, config, None));
        let instructions = instructions::load(host, loaded, bash.shell());
        let mut tools = tool::built_in(bash);
        if let Some(allowed) = config.list(&keys::TOOLS_ALLOW) {
            tools.retain(|tool| allowed.contains(&tool.spec().name));
        }
        let configured = config.int(&keys::CONTEXT_WINDOW_TOKENS);
        let window = configured.and_then(|tokens| u64::try_from(tokens).ok());
        let text = |name: &str| {
            let key = provider::KEYS.iter().find(|key| key.name == name);
            key.and_then(|key| config.text(key)).unwrap_or_default().to_owned()
        };
        Ok(View {
            instructions,
            tools: Registry::new(tools).map_err(Error::Tools)?.specs(),
            model: text("provider.model"),
            provider: text("provider.name"),
            settings: context_settings(config),
            window: window.map(|tokens| Window::new(tokens, WindowSource::Configured)),
        })
    }

    /// What holds for the size of a conversation, in which a server may have told its window.
    pub fn budget(&self, projection: &Projection) -> Budget {
        let provider = if self.provider.is_empty() { "openai" } else { &self.provider };
        let learned = projection.window_of(provider, &self.model);
        let learned = learned.map(|tokens| Window::new(tokens, WindowSource::Overflow));
        Budget::new(&self.settings, self.window.or(learned))
    }
}

/// When conversations are folded and compacted, as configured.
pub fn context_settings(config: &Config) -> budget::Settings {
    let number = |key: &Key| config.int(key).and_then(|value| u64::try_from(value).ok());
    let is_set = |key: &Key| config.origin(key).is_some();
    let auto = &keys::CONTEXT_AUTO_COMPACT;
    let defaults = budget::Settings::default();
    budget::Settings {
        auto_compact: is_set(auto).then(|| config.flag(auto)),
        threshold_tokens: number(&keys::CONTEXT_AUTO_COMPACT_THRESHOLD_TOKENS),
        threshold_percent: number(&keys::CONTEXT_AUTO_COMPACT_THRESHOLD_PERCENT)
            .unwrap_or(defaults.threshold_percent),
        keep_recent: number(&keys::CONTEXT_KEEP_RECENT_TOKENS).unwrap_or(defaults.keep_recent),
        keep_messages: number(&keys::SESSION_KEEP_MESSAGES)
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(defaults.keep_messages),
        reserve: number(&keys::CONTEXT_RESERVE_TOKENS).unwrap_or(defaults.reserve),
        fold: config.flag(&keys::CONTEXT_FOLD),
    }
}

fn workspace(host: &Host, loaded: &Loaded) -> Result<Workspace, Error> {
    Workspace::new(host.cwd(), loaded.config.flag(&keys::PATHS_READ_OUTSIDE))
        .map_err(|source| Error::Tree { path: host.cwd().to_owned(), source })
}

/// Hooks as they run by hand: in the working directory, for no session.
pub fn hooks_by_hand(host: &Host, loaded: &Loaded) -> Result<Hooks, Error> {
    let setup = || hook_setup(host, &bash_options(host, &loaded.config, None), host.cwd());
    Hooks::new(&loaded.tables.hooks, setup).map_err(Error::Hooks)
}

/// What a hook gets is what a command of the bash tool gets.
fn hook_setup(host: &Host, options: &BashOptions, cwd: &Path) -> hook::Setup {
    let BashOptions { secrets, keep, set, mark, .. } = options;
    let env = process::environment(host, secrets, keep, set);
    hook::Setup { cwd: cwd.to_owned(), env, mark: mark.as_ref().map(Into::into) }
}

/// What commands of the bash tool get and do not get.
fn bash_options(host: &Host, config: &Config, session_id: Option<&str>) -> BashOptions {
    let seconds = |key: &Key, default: u64| {
        config.int(key).and_then(|value| u64::try_from(value).ok()).unwrap_or(default)
    };
    let defaults = BashOptions::default();
    BashOptions {
        login_shell: config.flag(&keys::BASH_LOGIN_SHELL),
        timeout_seconds_max: seconds(&keys::BASH_TIMEOUT_SECONDS_MAX, defaults.timeout_seconds_max),
        keep: config.list(&keys::BASH_ENV).unwrap_or_default().to_vec(),
        set: [(DEPTH_VARIABLE.to_owned(), (depth(host) + 1).to_string())]
            .into_iter()
            .chain(session_id.map(|id| (SESSION_VARIABLE.to_owned(), id.to_owned())))
            .collect(),
        mark: session_id.map(|_| SESSION_VARIABLE.to_owned()),
        ..defaults
    }
}
