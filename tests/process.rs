//! Commands: what they get, how they end, what is kept of their output, what is left behind.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use etch::cancel::{Cancel, Cancelled, Reason};
use etch::process::{
    Capture, Command, DRAIN, EndedBy, Error, Output, Process, Status, Stdin, find_program, run,
};

use crate::support::alone::{self, alone};
use crate::support::command::Place;
use crate::support::pty::Pty;

/// No wait of these tests should come near it; reached, something hangs.
const LONG: Duration = Duration::from_secs(60);
const NOBODY: [u32; 0] = [];

fn bash(line: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap();
    let shell = ["bash", "sh"];
    let find = |name: &&str| find_program(OsStr::new(name), Some(&path), Path::new("/"));
    let program = shell.iter().find_map(find).unwrap();
    Command {
        program,
        args: vec!["-c".into(), line.into()],
        cwd: PathBuf::from("/"),
        env: BTreeMap::from([("PATH".into(), path)]),
        stdin: Stdin::Null,
        timeout: LONG,
        grace: Duration::from_millis(200),
        drain: Some(DRAIN),
        head_bytes: 8 * 1024,
        tail_bytes: 24 * 1024,
        mark: None,
    }
}

fn go(command: &Command) -> Output {
    run(command, &Cancel::new()).unwrap()
}

fn text(capture: &Capture) -> String {
    assert_eq!(capture.elided_bytes, 0);
    String::from_utf8([&capture.head[..], &capture.tail[..]].concat()).unwrap()
}

/// What is the same in every run of the same command.
fn facts(output: &Output) -> (Status, Option<EndedBy>, String, String) {
    (output.status, output.ended_by, text(&output.stdout), text(&output.stderr))
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Waits for something that happens soon but not at a known moment.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LONG, "did not happen: {what}");
        std::thread::yield_now();
    }
}

/// A number of seconds that no other `sleep` of this machine has: to be found by.
fn unique_sleep() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("sleep 3{:06}.{count}", std::process::id())
}

/// Running processes with exactly this command line.
fn running(line: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let wanted = |pid: &u32| {
        let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = text.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        words.join(" ").trim_end() == line && is_alive(*pid)
    };
    pids.filter(wanted).collect()
}

/// Ends what a test left on purpose.
fn end(escaped: &[Process]) {
    for process in escaped {
        let pid = process.pid.to_string();
        std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
        until("an escaped process ends", || !is_alive(process.pid));
    }
}

#[test]
fn status_and_both_outputs_are_told_apart() {
    let check = |line: &str, want: (Status, Option<EndedBy>, &str, &str)| {
        let output = go(&bash(line));
        let want = (want.0, want.1, want.2.to_owned(), want.3.to_owned());
        assert_eq!(facts(&output), want, "{line}");
        assert_eq!((&output.left_running, &output.escaped), (&vec![], &vec![]), "{line}");
    };
    check("true", (Status::Exited(0), None, "", ""));
    check("echo out; echo err >&2; exit 3", (Status::Exited(3), None, "out\n", "err\n"));
    check("printf a; printf b >&2", (Status::Exited(0), None, "a", "b"));
    check("kill -SEGV $$", (Status::Signalled(11), None, "", ""));
    check("kill -9 $$", (Status::Signalled(9), None, "", ""));
    check("exec no-such-program 2>/dev/null", (Status::Exited(127), None, "", ""));
    check("exec 0<&- 1>&- 2>&-; exit 4", (Status::Exited(4), None, "", ""));
    check("cat", (Status::Exited(0), None, "", ""));
    check("read x; echo $?", (Status::Exited(0), None, "1\n", ""));
}

#[test]
fn a_child_gets_the_given_environment_and_directory_and_nothing_else() {
    let mut command = bash("env | grep -v -E '^(_|SHLVL|PWD|OLDPWD)=' | sort; pwd");
    command.cwd = PathBuf::from("/usr");
    command.env.insert("ODD".into(), "a b=c".into());
    let path = command.env[OsStr::new("PATH")].to_string_lossy().into_owned();
    assert_eq!(text(&go(&command).stdout), format!("ODD=a b=c\nPATH={path}\n/usr\n"));
    // No descriptor more than any child of this process gets.
    let line = "ls /proc/self/fd | wc -l";
    let other = std::process::Command::new("sh").args(["-c", line]).output().unwrap();
    assert_eq!(text(&go(&bash(line)).stdout).as_bytes(), other.stdout);
}

#[test]
fn input_is_written_whole_and_a_child_that_does_not_read_is_no_error() {
    let bytes: Vec<u8> = (0..1_000_000_u32).flat_map(|n| n.to_le_bytes()).collect();
    let mut command = bash("cat");
    (command.head_bytes, command.tail_bytes) = (bytes.len(), 0);
    command.stdin = Stdin::Bytes(bytes.clone());
    assert!(go(&command).stdout.head == bytes, "the bytes came back");
    for line in ["true", "head -c 1 >/dev/null", "exec 0<&-; echo x >/dev/null"] {
        command.args[1] = line.into();
        assert_eq!(go(&command).status, Status::Exited(0), "{line}");
    }
    command.args[1] = "cat; echo end".into();
    command.stdin = Stdin::Bytes(Vec::new());
    assert_eq!(text(&go(&command).stdout), "end\n");
}

#[test]
fn what_cannot_start_says_what_and_where() {
    let folder = std::env::temp_dir().join(format!("etch-start-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, content: &str, mode: u32| {
        let path = folder.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let fails = |command: &Command| run(command, &Cancel::new()).unwrap_err().to_string();
    let mut command = bash("");
    command.args.clear();
    command.program = PathBuf::from("/no/such/program");
    assert_eq!(fails(&command), "program not found: /no/such/program");
    command.program = file("lost", "#!/no/such/shell\n", 0o755);
    let lost = command.program.display();
    let want =
        format!("cannot start {lost}: the interpreter or loader that it names does not exist");
    assert_eq!(fails(&command), want);
    command.program = file("plain", "echo x\n", 0o644);
    let want =
        format!("cannot start {}: Permission denied (os error 13)", command.program.display());
    assert_eq!(fails(&command), want);
    // Without a first line that names one, it is a shell script.
    command.program = file("script", "echo \"script $1\"\n", 0o755);
    command.args = vec!["a b".into()];
    assert_eq!(text(&go(&command).stdout), "script a b\n");
    let mut command = bash("true");
    command.cwd = PathBuf::from("/no/such/place");
    let want = "cannot run in the directory /no/such/place: No such file or directory (os error 2)";
    assert_eq!(fails(&command), want);
    let mut command = bash("a\0b");
    assert_eq!(fails(&command), "a NUL byte in an argument: no program can be given one");
    command.args[1] = "true".into();
    command.env.insert("A".into(), "a\0".into());
    assert_eq!(
        fails(&command),
        "a NUL byte in an environment variable: no program can be given one"
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_time_limit_ends_whatever_is_there_and_keeps_what_was_written() {
    let limit = |line: &str| {
        let mut command = bash(line);
        command.timeout = Duration::from_millis(150);
        command.grace = Duration::from_millis(100);
        let begun = Instant::now();
        let output = go(&command);
        assert!(begun.elapsed() < LONG / 2, "{line}");
        assert!(output.duration >= command.timeout, "{line}");
        output
    };
    let timeout = Some(EndedBy::Timeout { stopped: false });
    let plain = limit("echo before; sleep 1000; echo after");
    assert_eq!(facts(&plain), (Status::Signalled(15), timeout, "before\n".into(), String::new()));
    // A program may clean up.
    let tidy = limit("trap 'echo bye; exit 7' TERM; sleep 1000 & wait");
    assert_eq!(facts(&tidy), (Status::Exited(7), timeout, "bye\n".into(), String::new()));
    // One that does not want to end is made to.
    let line = unique_sleep();
    let deaf = limit(&format!("trap '' TERM INT HUP; echo deaf; {line}; {line}; {line}"));
    assert_eq!(facts(&deaf), (Status::Signalled(9), timeout, "deaf\n".into(), String::new()));
    assert_eq!(running(&line), NOBODY);
    // A stopped one is ended too, and it is said that it was stopped.
    for signal in ["STOP", "TSTP"] {
        let stopped = limit(&format!("trap '' TERM; echo x; kill -{signal} $$; {line}; {line}"));
        // SIGTSTP does not stop a group that no terminal could continue.
        let by = EndedBy::Timeout { stopped: signal == "STOP" };
        assert_eq!(facts(&stopped), (Status::Signalled(9), Some(by), "x\n".into(), String::new()));
        assert_eq!(running(&line), NOBODY);
    }
    // Endless output does not outrun the clock.
    let flood = limit("yes");
    assert_eq!(flood.ended_by, timeout);
    assert_eq!(flood.stdout.head.len() + flood.stdout.tail.len(), 32 * 1024);
}

#[test]
fn a_command_ends_with_its_shell_and_what_it_left_is_named_and_ended() {
    let check = |before: &str, after: &str| {
        let line = unique_sleep();
        let begun = Instant::now();
        let output = go(&bash(&format!("{before}{line}{after}")));
        assert!(begun.elapsed() < LONG / 2);
        let want = (Status::Exited(0), None, "x\n".to_owned(), String::new());
        assert_eq!(facts(&output), want, "{before}…{after}");
        // What was only just started may not have its own name yet.
        let named = |names: &[Process]| names.len() == 1 && !names[0].name.is_empty();
        assert!(named(&output.left_running), "{before}…{after}: {:?}", output.left_running);
        assert_eq!(output.escaped, [], "{before}…{after}");
        assert_eq!(running(&line), NOBODY, "{before}…{after}");
    };
    check("", " & echo x");
    check("", " >/dev/null 2>&1 & echo x");
    check("nohup ", " >/dev/null 2>&1 & echo x");
    check("(", " &) ; echo x");
    check("( (", " &) & ) ; echo x");
    check("set -m; ", " & echo x");
    check("trap '' TERM; ", " & echo x");
    check("", " & kill -STOP $!; echo x");
    let line = unique_sleep();
    let ready = "until grep -q sleep /proc/$!/comm; do :; done";
    let output = go(&bash(&format!("{line} & {ready}")));
    assert_eq!(output.left_running.iter().map(|p| &p.name).collect::<Vec<_>>(), [&line]);
    check("echo x; (trap '' TERM HUP; exec ", ") & disown 2>/dev/null; exit 0");
}

#[test]
fn output_that_is_still_on_its_way_when_the_shell_ends_is_kept() {
    let output = go(&bash("exec > >(cat; echo end); echo x"));
    assert_eq!(facts(&output), (Status::Exited(0), None, "x\nend\n".into(), String::new()));
    let output = go(&bash("(echo late) & exit 2"));
    assert_eq!(text(&output.stdout), "late\n");
}

#[test]
fn who_waits_for_all_output_waits_until_the_limit_and_no_longer() {
    let whole =
        |line: &str, limit: Duration| go(&Command { drain: None, timeout: limit, ..bash(line) });
    let output = whole("(sleep 0.3; echo late) & exit 0", LONG);
    assert_eq!(facts(&output), (Status::Exited(0), None, "late\n".into(), String::new()));
    let sleep = unique_sleep();
    let output = whole(&format!("{sleep} & exit 0"), Duration::from_millis(150));
    assert_eq!(output.ended_by, Some(EndedBy::Timeout { stopped: false }));
    assert_eq!(output.status, Status::Exited(0));
    assert_eq!(running(&sleep), NOBODY);
    // Out of reach, and still holding the output.
    let output = whole(&format!("setsid {sleep} & exit 0"), Duration::from_millis(150));
    assert_eq!(output.ended_by, Some(EndedBy::Timeout { stopped: false }));
    end(&output.escaped);
}

#[test]
fn a_limit_reaches_job_control_groups() {
    for line in
        ["set -m; X & wait", "timeout 1000 X", "set -m; (set -m; timeout 1000 X & wait) & wait"]
    {
        let sleep = unique_sleep();
        let mut command = bash(&line.replace('X', &sleep));
        command.timeout = Duration::from_millis(150);
        let output = go(&command);
        assert_eq!(output.ended_by, Some(EndedBy::Timeout { stopped: false }), "{line}");
        assert_eq!(running(&sleep), NOBODY, "{line}");
    }
}

#[test]
fn what_moves_to_its_own_session_is_named_and_holds_nothing_up() {
    let check = |line: &str, limit: Option<u64>, found: bool| {
        let sleep = unique_sleep();
        let mut command = bash(&line.replace('X', &sleep));
        command.timeout = limit.map_or(LONG, Duration::from_millis);
        command.env.insert("MARK".into(), sleep.clone().into());
        command.mark = Some("MARK".into());
        let begun = Instant::now();
        let output = go(&command);
        assert!(begun.elapsed() < LONG / 2, "{line}");
        assert_eq!(output.ended_by.is_some(), limit.is_some(), "{line}");
        let escaped: Vec<_> = output.escaped.iter().map(|p| p.name.clone()).collect();
        let want: Vec<String> = found.then(|| sleep.clone()).into_iter().collect();
        assert_eq!(escaped, want, "{line}");
        end(&output.escaped);
        assert_eq!(running(&sleep), NOBODY, "{line}");
    };
    check("setsid X & wait", Some(200), true);
    // `setsid` gives itself a session first and becomes the other program then.
    let ready = "& until [ $(cat /proc/$!/comm) = sleep ]; do :; done";
    check(&format!("setsid X {ready}"), None, true);
    check(&format!("setsid X >/dev/null 2>&1 {ready}"), None, true);
    check(&format!("setsid env -u MARK X {ready}"), None, true);
    // Its parent is gone as well, as with a daemon.
    check(&format!("((setsid X {ready}) & wait)"), None, true);
    // Without the output and without the mark nothing tells of it.
    check("true", None, false);
}

#[test]
fn two_outputs_are_read_at_once() {
    let line = "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero; echo done >&2";
    let output = go(&bash(line));
    let (stdout, stderr) = (&output.stdout, &output.stderr);
    assert_eq!((stdout.total_bytes(), stderr.total_bytes()), (1_000_000, 1_000_005));
    assert!(stderr.tail.ends_with(b"\0done\n"));
    assert_eq!((stdout.head.len(), stdout.tail.len()), (8 * 1024, 24 * 1024));
}

#[test]
fn a_cancelled_command_is_gone_at_once() {
    let cancel = Cancel::new();
    cancel.cancel(Reason::Timeout);
    let error = run(&bash("echo x"), &cancel).unwrap_err();
    assert!(matches!(error, Error::Cancelled(Cancelled(Reason::Timeout))), "{error}");

    for line in [
        "echo x; X",
        "echo x; trap '' TERM INT; X; X; X",
        "echo x; X | cat",
        "echo x; set -m; X & wait",
        "echo x; timeout 1000 X",
        "X & echo x; kill -STOP $$; X",
        "X & X & echo x; X",
        "echo x; exec >/dev/null 2>&1; X",
    ] {
        let sleep = unique_sleep();
        let (cancel, line) = (Cancel::new(), line.replace('X', &sleep));
        let (output, cancelled) = std::thread::scope(|scope| {
            let running_command = scope.spawn(|| run(&bash(&line), &cancel).unwrap());
            until("the command runs", || !running(&sleep).is_empty());
            cancel.cancel(Reason::User);
            let cancelled = Instant::now();
            (running_command.join().unwrap(), cancelled.elapsed())
        });
        assert!(cancelled < Duration::from_secs(5), "{line}: {cancelled:?}");
        assert_eq!(output.ended_by, Some(EndedBy::Cancel(Reason::User)), "{line}");
        until("everything is gone", || running(&sleep).is_empty());
    }
}

/// Descriptors, threads and children of this process.
fn holdings() -> (usize, usize, usize) {
    let count = |path: &str| fs::read_dir(path).unwrap().count();
    let own = std::process::id().to_string();
    let children = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        rest.split(' ').nth(1) == Some(&own)
    });
    (count("/proc/self/fd"), count("/proc/self/task"), children.count())
}

#[test]
fn two_hundred_cancels_are_fast_and_leave_nothing() {
    if !alone("process::two_hundred_cancels_are_fast_and_leave_nothing") {
        return;
    }
    let before = holdings();
    let mut times = Vec::new();
    for round in 0..200_u64 {
        let cancel = Cancel::new();
        let (sender, receiver) = crossbeam_channel::bounded(1);
        std::thread::scope(|scope| {
            let command = bash("sleep 1000 | cat | cat");
            let cancel = &cancel;
            scope.spawn(move || {
                let _ = sender.send((run(&command, cancel), Instant::now()));
            });
            // From before the start to well into it.
            let _ = receiver.recv_timeout(Duration::from_micros(round * 40));
            let begun = Instant::now();
            cancel.cancel(Reason::User);
            let (_, ended) = receiver.recv_timeout(LONG).unwrap();
            times.push(ended.saturating_duration_since(begun));
        });
    }
    times.sort();
    println!("200 cancels: p50 {:?}, max {:?}", times[100], times[199]);
    assert!(times[199] < Duration::from_secs(1), "{:?}", times[199]);
    until("nothing is left", || holdings() == before);
}

#[test]
fn every_kind_of_end_leaves_the_process_as_it_was() {
    if !alone("process::every_kind_of_end_leaves_the_process_as_it_was") {
        return;
    }
    let before = holdings();
    let lines = [
        "true",
        "exit 3",
        "kill -9 $$",
        "yes | head -c 300000",
        "sleep 1000 & echo x",
        "sleep 1000 >/dev/null 2>&1 & echo x",
        "sleep 1000",
        "trap '' TERM; sleep 1000; sleep 1000",
    ];
    for line in lines.iter().cycle().take(40) {
        let mut command = bash(line);
        command.timeout = Duration::from_millis(100);
        command.grace = Duration::from_millis(20);
        go(&command);
        assert_eq!(holdings(), before, "{line}");
    }
    let mut command = bash("");
    command.program = PathBuf::from("/no/such/program");
    run(&command, &Cancel::new()).unwrap_err();
    command.cwd = PathBuf::from("/no/such/place");
    run(&command, &Cancel::new()).unwrap_err();
    assert_eq!(holdings(), before);
}

fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn half_a_gigabyte_of_output_costs_no_memory() {
    if !alone("process::half_a_gigabyte_of_output_costs_no_memory") {
        return;
    }
    go(&bash("echo warm"));
    let (before_kb, begun) = (peak_kb(), Instant::now());
    let output = go(&bash("head -c 500000000 /dev/zero"));
    let grown_kb = peak_kb() - before_kb;
    println!("500 MB: {:?}, {grown_kb} kB more than before", begun.elapsed());
    assert_eq!(output.stdout.total_bytes(), 500_000_000);
    assert!(grown_kb < 2048, "{grown_kb} kB");
}

#[test]
fn many_commands_at_once_do_not_mix() {
    std::thread::scope(|scope| {
        for worker in 0..8 {
            scope.spawn(move || {
                for round in 0..20 {
                    let output = go(&bash(&format!("echo {worker}-{round}; exit {round}")));
                    let want = (Status::Exited(round), None, format!("{worker}-{round}\n"));
                    let (status, ended_by, stdout, _) = facts(&output);
                    assert_eq!((status, ended_by, stdout), want);
                    assert_eq!(output.left_running, []);
                }
            });
        }
    });
}

#[test]
fn the_guard_ends_what_is_announced_when_its_pipe_closes() {
    let mut guard = std::process::Command::new(env!("CARGO_BIN_EXE_etch"))
        .arg("--guard-commands")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = guard.stdin.take().unwrap();
    let (kept, ended) = (unique_sleep(), unique_sleep());
    let start = |line: &str| {
        let line = format!("trap '' TERM; set -m; echo x; {line} & {line}");
        std::process::Command::new("setsid")
            .args(["bash", "-c", &line])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let (mut one, mut two) = (start(&kept), start(&ended));
    until("both run", || running(&kept).len() == 2 && running(&ended).len() == 2);
    // What asks it to end does not end it.
    let pid = guard.id().to_string();
    std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    let (one_id, two_id) = (one.id(), two.id());
    write!(pipe, "+{one_id}\n+{two_id}\nrubbish\n+\n-{one_id}\n").unwrap();
    drop(pipe);
    assert!(guard.wait().unwrap().success());
    until("the announced one is gone", || running(&ended).is_empty());
    assert!(!two.wait().unwrap().success());
    assert_eq!(running(&kept).len(), 2);
    for pid in running(&kept) {
        std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    }
    one.kill().unwrap();
    one.wait().unwrap();
    let mut text = String::new();
    BufReader::new(guard.stdout.unwrap()).read_line(&mut text).unwrap();
    assert_eq!(text, "");
}

#[test]
fn a_mark_that_is_not_in_the_environment_marks_nothing() {
    let mut command = bash("true & wait");
    command.mark = Some(OsString::from("NO_SUCH_VARIABLE"));
    assert_eq!(go(&command).escaped, []);
}

#[test]
fn killing_etch_leaves_no_command_whenever_it_happens() {
    let place = Place::new();
    let lines = [
        "X",
        "X | cat",
        "X & X & wait",
        "trap '' TERM HUP INT; X; X",
        "set -m; X & X",
        "timeout 1000 X",
        "nohup X >/dev/null 2>&1",
    ];
    let mut sleeps = Vec::new();
    for round in 0..70_u32 {
        let sleep = unique_sleep();
        let line = lines[round as usize % lines.len()].replace('X', &sleep);
        let etch = place.etch(["tool", "bash", &line]).spawn();
        if round < 21 {
            until("the command runs", || !running(&sleep).is_empty());
        } else {
            // From before the start of anything to after it.
            let begun = Instant::now();
            until("some time passed", || {
                begun.elapsed() > Duration::from_micros(400) * (round - 21)
            });
        }
        etch.signal("KILL");
        let ran = etch.wait();
        assert_eq!(ran.signal, Some(9), "{line}");
        until("everything is gone", || running(&sleep).is_empty());
        sleeps.push(sleep);
    }
    // One that was killed before its shell had begun can have begun since.
    for sleep in sleeps {
        assert_eq!(running(&sleep), NOBODY);
    }
}

#[test]
fn etch_ends_its_guard_and_leaves_no_ended_process() {
    let place = Place::new();
    // The children of etch while a command runs: the guard and the shell.
    let line = "sed -n \"s/^\\([0-9]*\\) (.*) . $PPID .*/\\1/p\" /proc/[0-9]*/stat";
    let ran = place.etch(["tool", "bash", line]).run().exits(0);
    let pids: Vec<u32> = ran.out().lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(pids.len(), 2, "{}", ran.out());
    for pid in pids {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} of {}", ran.out());
    }
}

#[test]
fn a_command_is_ended_with_etch_by_the_signals_that_end_etch() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let place = Place::new();
        let sleep = unique_sleep();
        let etch = place.etch(["tool", "bash", &format!("trap '' {signal}; {sleep}; {sleep}")]);
        let etch = etch.spawn();
        until("the command runs", || !running(&sleep).is_empty());
        etch.signal(signal);
        etch.wait().exits(code);
        assert_eq!(running(&sleep), NOBODY, "{signal}");
    }
}

#[test]
fn commands_neither_read_the_keys_nor_change_the_terminal() {
    const LINES: &[&str] = &[
        "cat",
        "read -p 'ok? ' x",
        "read y </dev/tty",
        "cat /dev/tty",
        "stty raw -echo </dev/tty",
        "stty sane",
        "stty -F /dev/tty -echo",
        "printf '\\033[2J' >/dev/tty",
        "script -qc 'stty -echo; read x' /dev/null </dev/null",
        "command -v python3 >/dev/null && python3",
        "(read z </dev/tty; cat /dev/tty) & wait",
        "exec 3<>/dev/tty; head -c 1 <&3",
        "kill -TTIN $$; kill -TSTP $$",
    ];
    if alone::is_alone() {
        let modes =
            || std::process::Command::new("stty").arg("-g").stdin(Stdio::inherit()).output();
        let before = modes().unwrap();
        assert!(before.status.success(), "this runs on a terminal");
        eprintln!("type now");
        for line in LINES {
            let mut command = bash(line);
            command.timeout = Duration::from_secs(20);
            let output = go(&command);
            assert_eq!(output.ended_by, None, "{line}");
            assert_eq!(modes().unwrap(), before, "{line}");
        }
        let mut keys = String::new();
        std::io::stdin().read_line(&mut keys).unwrap();
        eprintln!("got <{}>", keys.trim_end());
        return;
    }
    let test = "process::commands_neither_read_the_keys_nor_change_the_terminal";
    let mut terminal = Pty::spawn(alone::command(test), 80, 24);
    terminal.wait_for("type now");
    terminal.type_keys("every key of this line\r");
    let screen = terminal.wait_for("got <");
    let (status, rest) = terminal.wait();
    assert!(status.success(), "{rest}");
    assert!(rest.contains("got <every key of this line>"), "{rest}");
    assert!(!screen.contains("\u{1b}[2J"), "{screen}");
}
