//! The tool `bash` as a model meets it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etch::cancel::{Cancel, Reason};
use etch::host::Host;
use etch::model::ResultStatus;
use etch::tool::bash::{BashOptions, BashTool};
use etch::tool::{Caller, Need, Overlap, Plan, Tool, ToolContext, ToolOutput};
use etch::workspace::Workspace;

/// A folder of its own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("etch-bash-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path.canonicalize().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A host that knows the programs of this machine and nothing else.
fn host() -> Host {
    Host::fixed().with_var("PATH", std::env::var_os("PATH").unwrap())
}

fn call_with(host: &Host, options: BashOptions, arguments: &str) -> ToolOutput {
    let folder = Folder::new(&format!("{:?}", std::thread::current().id()));
    let workspace = Workspace::new(&folder.0, false).unwrap();
    let cx =
        ToolContext { workspace: &workspace, host, cancel: &Cancel::new(), caller: Caller::Model };
    let tool = BashTool::new(host, options);
    let output = tool.run(arguments, &cx);
    assert!(output.text.len() <= tool.output_bytes_max());
    assert_eq!(output.changed, Vec::<String>::new());
    output
}

fn call(line: &str) -> ToolOutput {
    let arguments = serde_json::json!({ "command": line }).to_string();
    call_with(&host(), BashOptions::default(), &arguments)
}

/// The text of a call that worked, without its first two lines.
fn body(line: &str) -> String {
    let output = call(line);
    assert_eq!(output.status, ResultStatus::Ok, "{}", output.text);
    let start = "exit code: 0\nduration: 0ms\n\n";
    output.text.strip_prefix(start).unwrap_or_else(|| panic!("{}", output.text)).to_owned()
}

#[test]
fn a_command_that_fails_is_a_result() {
    let output = call("echo out; echo err >&2; exit 3");
    let text = "exit code: 3\nduration: 0ms\n\nstdout:\nout\n\nstderr:\nerr";
    assert_eq!(output, ToolOutput::ok(text));
    let output = call("kill -SEGV $$");
    assert_eq!(
        output,
        ToolOutput::ok("exit code: -1\nsignal: 11 (SIGSEGV)\nduration: 0ms\n\n(no output)")
    );
}

#[test]
fn output_is_text_whatever_was_written() {
    let check = |line: &str, want: &str| assert_eq!(body(line), want, "{line}");
    check(r"printf 'ok\xff\xfe\n'", "stdout:\nok\\xff\\xfe");
    check(r"printf 'a\r b\r c\n'", "stdout:\n c");
    check(r"printf '\033[31mred\033[0m\033]0;t\007'", "stdout:\nred");
    check(r"printf 'a\0b'", "stdout:\na\\x00b");
    check("head -c 100000 /dev/zero", "stdout:\n[binary output, 100000 bytes]");
    // A character that comes in two pieces.
    check(r"printf '\xe6'; read -t 0.02 <> <(:); printf '\xbc\xa2'", "stdout:\n漢");
    let lines = body("seq 1 100000");
    assert!(
        lines.starts_with("stdout:\n1\n2\n3\n") && lines.ends_with("\n99999\n100000"),
        "{lines}"
    );
    assert!(lines.len() <= 64 * 1024 + 10 && 60 * 1024 <= lines.len(), "{}", lines.len());
    let note = lines.lines().find(|line| line.starts_with('[')).unwrap();
    assert!(note.contains("left out"), "{note}");
    let shown = lines.lines().filter(|line| line.parse::<u64>().is_ok()).count();
    assert!(note.contains(&format!(" in {} lines ", 100_000 - shown)), "{note}: {shown}");
}

#[test]
fn a_limit_says_so_and_keeps_what_was_written() {
    let options = BashOptions { timeout_seconds_max: 2, ..BashOptions::default() };
    let late = call_with(
        &host(),
        options.clone(),
        r#"{"command":"echo part; sleep 1000","timeoutSeconds":1}"#,
    );
    let want = "exit code: -1\nsignal: 15 (SIGTERM)\nduration: 0ms\ntimed out: true\n\n\
                stdout:\npart\n\n\
                [ended after its limit of 1 s; give timeoutSeconds, at most 2, for more]";
    assert_eq!(late, ToolOutput::ok(want));
    // More than is allowed is the most that is allowed.
    let late = call_with(&host(), options, r#"{"command":"sleep 1000","timeout":"9999"}"#);
    let want = "[ended after its limit of 2 s; no call may take longer: do it in smaller steps]";
    assert_eq!(late.text.lines().last(), Some(want));
}

#[test]
fn what_was_left_in_the_background_is_named() {
    let text =
        call("sleep 1234 >/dev/null & until grep -q sleep /proc/$!/comm; do :; done; echo $!").text;
    let pid = text.lines().nth(4).unwrap();
    let want =
        format!("[still running when the command ended, so ended with it: sleep 1234 (pid {pid})]");
    assert_eq!(text.lines().last(), Some(&*want));
}

#[test]
fn commands_get_no_secret_and_no_setting_of_etch() {
    let host = host()
        .with_var("HOME", "/home/me")
        .with_var("ETCH_MODEL", "m")
        .with_var("ETCH_DEPTH", "1")
        .with_var("ETCHED", "yes")
        .with_var("ONE_KEY", "sk-1")
        .with_var("OTHER_KEY", "sk-2")
        .with_var("GITHUB_TOKEN", "t");
    let options = BashOptions {
        secrets: vec!["ONE_KEY".into(), "OTHER_KEY".into()],
        keep: vec!["OTHER_KEY".into()],
        set: vec![("ETCH_DEPTH".into(), "2".into()), ("ETCH_PARENT".into(), "s1".into())],
        ..BashOptions::default()
    };
    let line = r#"{"command":"env | grep -v -E '^(_|SHLVL|PWD|OLDPWD|PATH)=' | sort"}"#;
    let want = "exit code: 0\nduration: 0ms\n\nstdout:\nETCHED=yes\nETCH_DEPTH=2\nETCH_PARENT=s1\n\
                GITHUB_TOKEN=t\nHOME=/home/me\nOTHER_KEY=sk-2";
    assert_eq!(call_with(&host, options, line), ToolOutput::ok(want));
}

#[test]
fn the_shell_is_bash_else_sh_and_the_description_says_which() {
    let folder = Folder::new("shells");
    let line = r#"{"command":"echo $0 ${BASH_VERSION:+bash}"}"#;
    let try_path = |path: &Path, options: BashOptions| {
        let host = Host::fixed().with_var("PATH", path);
        let tool = BashTool::new(&host, options.clone());
        (tool.spec().description.clone(), call_with(&host, options, line))
    };
    let (description, output) = try_path(&folder.0, BashOptions::default());
    assert_eq!(
        description,
        "Run a shell command. There is no shell on this machine: every call fails."
    );
    assert_eq!(output, ToolOutput::error("no shell exists here (looked for bash and sh in PATH)"));
    std::os::unix::fs::symlink("/bin/sh", folder.0.join("sh")).unwrap();
    let (description, output) = try_path(&folder.0, BashOptions::default());
    assert!(
        description.starts_with("Run a command with sh -c in the working directory"),
        "{description}"
    );
    assert_eq!(output.status, ResultStatus::Ok);
    let full = PathBuf::from(std::env::var_os("PATH").unwrap());
    let (description, output) = try_path(&full, BashOptions::default());
    let want = "Run a command with bash -c in the working directory; no terminal, no input. \
                Default limit 120 s, at most 600 s. Background processes end with the command.";
    assert_eq!(description, want);
    assert!(output.text.ends_with(" bash"), "{}", output.text);
    let (description, _) =
        try_path(&full, BashOptions { login_shell: true, ..BashOptions::default() });
    assert!(description.starts_with("Run a command with bash -lc in"), "{description}");
}

#[test]
fn a_login_shell_reads_the_profile_and_a_plain_one_does_not() {
    let folder = Folder::new("home");
    fs::write(folder.0.join(".bash_profile"), "echo from the profile\n").unwrap();
    let host = host().with_home(&folder.0).with_var("HOME", &folder.0);
    let run = |login_shell| {
        let options = BashOptions { login_shell, ..BashOptions::default() };
        call_with(&host, options, r#"{"command":"echo x"}"#).text
    };
    assert!(!run(false).contains("from the profile"));
    assert!(run(true).contains("from the profile"));
}

#[test]
fn a_plan_says_what_would_run_and_bad_arguments_say_what_is_wrong() {
    let host = host();
    let folder = Folder::new("plan");
    let workspace = Workspace::new(&folder.0, false).unwrap();
    let cx = ToolContext {
        workspace: &workspace,
        host: &host,
        cancel: &Cancel::new(),
        caller: Caller::Model,
    };
    let tool = BashTool::new(&host, BashOptions::default());
    let want = Plan {
        overlap: Overlap::Serial,
        lane: None,
        needs: vec![Need::Shell("rm -rf build".to_owned())],
    };
    assert_eq!(tool.plan(r#"{"command":"rm -rf build"}"#, &cx), Ok(want.clone()));
    assert_eq!(tool.plan(r#"{"cmd":"rm -rf build","timeout_seconds":"5"}"#, &cx), Ok(want));
    let check = |arguments: &str, want: &str| {
        assert_eq!(tool.plan(arguments, &cx), Err(want.to_owned()));
        assert_eq!(tool.run(arguments, &cx), ToolOutput::error(want));
    };
    check("{}", "'command' is missing: it must be a string");
    check(r#"{"command":" "}"#, "'command' is empty: it must be a command line for the shell");
    check(
        r#"{"command":"true","cwd":"/"}"#,
        "'cwd' is no argument; known are command, timeoutSeconds",
    );
    let call = |bytes: usize| serde_json::json!({"command": "#".repeat(bytes)}).to_string();
    check(
        &call(128 * 1024),
        "'command' has 128.0KB, more than one argument of a program can have (128.0KB): put what \
         is long into a file with write, and use that",
    );
    assert_eq!(tool.run(&call(128 * 1024 - 1), &cx).status, ResultStatus::Ok);
    let spec = tool.spec();
    let size = spec.name.len() + spec.description.len() + spec.parameters.len();
    assert!(size <= 350, "{size}: {}", spec.parameters);
}

#[test]
fn a_cancelled_call_is_interrupted_and_keeps_what_was_written() {
    let host = host();
    let folder = Folder::new("cancel");
    let workspace = Workspace::new(&folder.0, false).unwrap();
    let tool = BashTool::new(&host, BashOptions::default());
    let cancel = Cancel::new();
    let cx =
        ToolContext { workspace: &workspace, host: &host, cancel: &cancel, caller: Caller::Model };
    let output = std::thread::scope(|scope| {
        let call =
            scope.spawn(|| tool.run(r#"{"command":"echo part; touch ready; sleep 1000"}"#, &cx));
        while !folder.0.join("ready").exists() && !call.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        cancel.cancel(Reason::Interrupt);
        call.join().unwrap()
    });
    let text = "tool error: interrupted before it finished\n\nexit code: -1\nsignal: 9 (SIGKILL)\n\
                duration: 0ms\n\nstdout:\npart";
    assert_eq!((output.status, &*output.text), (ResultStatus::Interrupted, text));
    // A call that had not begun.
    assert_eq!(tool.run(r#"{"command":"touch late"}"#, &cx), ToolOutput::interrupted());
    assert!(!folder.0.join("late").exists());
}
