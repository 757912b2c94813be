//! The tool `bash`: runs a command line in a shell, bounded in time and output.
//!
//! A command that fails is a result, not a failure of the tool. The shell is looked for once, at
//! the start; where there is none, every call says so. Commands get no setting of etch's own and
//! no secret that is named to it, have no terminal, and find their input at its end.

mod report;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use crate::host::Host;
use crate::model::{ResultStatus, ToolSpec};
use crate::process::{self, Command, EndedBy, Error, Stdin, environment, find_program};
use crate::text::human_bytes;
use crate::tool::arguments::{Arguments, arguments, schema_text};
use crate::tool::{Need, Overlap, Plan, Tool, ToolContext, ToolOutput};
use report::Limits;

/// Of one output stream, as text for the model.
const STREAM_BYTES_MAX: usize = 64 * 1024;
/// What is kept of the start of a stream; errors and summaries stand at the end.
const HEAD_BYTES: usize = 20 * 1024;
const TAIL_BYTES: usize = STREAM_BYTES_MAX - HEAD_BYTES - MARKER_BYTES;
/// Room for the line that says what was left out.
const MARKER_BYTES: usize = 128;
/// Status, notes and names beside the two streams.
const FRAME_BYTES_MAX: usize = 8 * 1024;
/// Linux takes no longer word (`MAX_ARG_STRLEN`, with its end).
const COMMAND_BYTES_MAX: usize = 128 * 1024 - 1;
/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_millis(150);
/// Where programs are looked for when there is no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

arguments! {
    /// Arguments of `bash`.
    pub struct BashArguments {
        command("command", "cmd", "script"): String = "",
        timeout_seconds("timeoutSeconds", "timeout_seconds", "timeout"): Option<u64> = "",
    }
}

/// How commands are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BashOptions {
    /// `-lc` instead of `-c`: the shell reads the profile files first.
    pub login_shell: bool,
    pub timeout_seconds: u64,
    pub timeout_seconds_max: u64,
    /// Names of variables that commands do not get.
    pub secrets: Vec<String>,
    /// Names that they get all the same.
    pub keep: Vec<String>,
    /// Variables that are set for commands, whatever the above says.
    pub set: Vec<(String, String)>,
    /// One of `set` whose value no other program has: by it, processes are recognised that went
    /// to a session of their own.
    pub mark: Option<String>,
}

/// The variables that hold a key of a model provider.
pub const PROVIDER_SECRETS: &[&str] =
    &["CODEX_ACCESS_TOKEN", "OPENAI_API_KEY", "OPENROUTER_API_KEY"];

impl Default for BashOptions {
    fn default() -> BashOptions {
        BashOptions {
            login_shell: false,
            timeout_seconds: 120,
            timeout_seconds_max: 600,
            secrets: PROVIDER_SECRETS.iter().map(ToString::to_string).collect(),
            keep: Vec::new(),
            set: Vec::new(),
            mark: None,
        }
    }
}

pub struct BashTool {
    spec: ToolSpec,
    options: BashOptions,
    shell: Option<PathBuf>,
}

impl BashTool {
    /// Looks for `bash`, else `sh`, in the host's `PATH`.
    pub fn new(host: &Host, mut options: BashOptions) -> BashTool {
        options.timeout_seconds_max = options.timeout_seconds_max.max(1);
        options.timeout_seconds = options.timeout_seconds.clamp(1, options.timeout_seconds_max);
        let path = host.vars().find(|(name, _)| *name == "PATH").map(|(_, path)| path);
        let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
        let find = |name: &str| find_program(OsStr::new(name), Some(path), host.cwd());
        let shell = find("bash").or_else(|| find("sh"));
        let spec = ToolSpec {
            name: "bash".to_owned(),
            description: describe(&shell, &options),
            parameters: schema_text::<BashArguments>(),
        };
        BashTool { spec, options, shell }
    }

    /// The name of the shell, `bash` or `sh`; `None` where there is none.
    pub fn shell(&self) -> Option<&str> {
        self.shell.as_ref()?.file_name()?.to_str()
    }

    fn seconds(&self, asked: Option<u64>) -> u64 {
        match asked {
            None | Some(0) => self.options.timeout_seconds,
            Some(seconds) => seconds.min(self.options.timeout_seconds_max),
        }
    }

    fn run_in(
        &self,
        shell: &std::path::Path,
        line: &str,
        seconds: u64,
        cx: &ToolContext<'_>,
    ) -> ToolOutput {
        let options = &self.options;
        let flag = if options.login_shell { "-lc" } else { "-c" };
        let command = Command {
            program: shell.to_owned(),
            args: vec![flag.into(), line.into()],
            cwd: cx.workspace.root().to_owned(),
            env: environment(cx.host, &options.secrets, &options.keep, &options.set),
            stdin: Stdin::Null,
            timeout: Duration::from_secs(seconds),
            grace: GRACE,
            drain: Some(process::DRAIN),
            head_bytes: HEAD_BYTES,
            tail_bytes: TAIL_BYTES,
            mark: options.mark.as_ref().map(OsString::from),
        };
        let begun = cx.host.elapsed();
        let output = match process::run(&command, cx.cancel) {
            Ok(output) => output,
            Err(Error::Cancelled(_)) => return ToolOutput::interrupted(),
            Err(error) => return ToolOutput::error(error),
        };
        let limits = Limits {
            seconds,
            seconds_max: options.timeout_seconds_max,
            stream_bytes: STREAM_BYTES_MAX,
            duration: cx.host.elapsed().saturating_sub(begun),
        };
        let mut result = ToolOutput::ok(report::render(&output, &limits));
        if let Some(EndedBy::Cancel(_)) = output.ended_by {
            result.text = format!("{}\n\n{}", ToolOutput::interrupted().text, result.text);
            result.status = ResultStatus::Interrupted;
        }
        result
    }
}

fn describe(shell: &Option<PathBuf>, options: &BashOptions) -> String {
    let Some(shell) = shell else {
        return "Run a shell command. There is no shell on this machine: every call fails."
            .to_owned();
    };
    let name = shell.file_name().unwrap_or_default().to_string_lossy();
    let flag = if options.login_shell { "-lc" } else { "-c" };
    format!(
        "Run a command with {name} {flag} in the working directory; no terminal, no input. \
         Default limit {} s, at most {} s. Background processes end with the command.",
        options.timeout_seconds, options.timeout_seconds_max
    )
}

fn parse(arguments: &str) -> Result<BashArguments, String> {
    let arguments = BashArguments::parse(arguments)?;
    match arguments.command.trim() {
        "" => Err("'command' is empty: it must be a command line for the shell".to_owned()),
        _ if arguments.command.len() > COMMAND_BYTES_MAX => Err(format!(
            "'command' has {}, more than one argument of a program can have ({}): put what is \
             long into a file with write, and use that",
            human_bytes(arguments.command.len() as u64),
            human_bytes(COMMAND_BYTES_MAX as u64)
        )),
        _ => Ok(arguments),
    }
}

impl Tool for BashTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(self.options.timeout_seconds_max)
    }

    fn output_bytes_max(&self) -> usize {
        2 * STREAM_BYTES_MAX + FRAME_BYTES_MAX
    }

    fn plan(&self, arguments: &str, _cx: &ToolContext<'_>) -> Result<Plan, String> {
        let command = parse(arguments)?.command;
        Ok(Plan { overlap: Overlap::Serial, lane: None, needs: vec![Need::Shell(command)] })
    }

    fn run(&self, arguments: &str, cx: &ToolContext<'_>) -> ToolOutput {
        let arguments = match parse(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return ToolOutput::error(error),
        };
        let Some(shell) = &self.shell else {
            return ToolOutput::error("no shell exists here (looked for bash and sh in PATH)");
        };
        let seconds = self.seconds(arguments.timeout_seconds);
        self.run_in(shell, &arguments.command, seconds, cx)
    }
}
