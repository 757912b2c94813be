//! A terminal's settings and stops, on a real terminal, seen by other programs.

use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use etch::cancel::Cancel;
use etch::chat::run::Look;
use etch::chat::terminal::Terminal;
use etch::chat::worker::Start;
use etch::config::Overrides;
use etch::harness;
use etch::host::Host;
use etch::render::style::Style;
use etch::sys;

use crate::support::alone;
use crate::support::command::Place;
use crate::support::pty::Pty;
use crate::support::server::Server;

/// Plays `test` on a terminal of its own, typing `keys` when it is ready for them.
fn on_a_terminal(test: &str, keys: &str) {
    let mut terminal = Pty::spawn(alone::command(test), 80, 24);
    if !keys.is_empty() {
        terminal.wait_for("type now");
        terminal.type_keys(keys);
    }
    let (status, text) = terminal.wait();
    assert!(status.success() && text.contains("1 passed"), "{text}");
}

/// A mistake on the session's thread, and one while somebody has the terminal.
#[test]
fn after_a_mistake_in_the_chat_itself_the_terminal_is_as_it_was() {
    let test = "terminal::after_a_mistake_in_the_chat_itself_the_terminal_is_as_it_was";
    if !alone::is_alone() {
        let (place, server) = (Place::new(), Server::start([]));
        let mut command = alone::command(test);
        command.current_dir(place.work()).env("HOME", place.home.path()).env("TERM", "xterm");
        let config = format!(
            "[provider]\nname = \"openai\"\nmodel = \"m\"\n[openai]\nbase_url = \"{}\"\n",
            server.base_url()
        );
        place.home.write(".etch/config.toml", config);
        let mut terminal = Pty::spawn(command, 80, 24);
        terminal.wait_for("m · ");
        terminal.type_keys("/tool read x\r");
        let (status, text) = terminal.wait();
        assert!(status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let before = stty("-g");
    let host = Arc::new(Host::from_process());
    let start = Start {
        loaded: harness::load(&host, &Overrides::default()).unwrap(),
        overrides: Overrides::default(),
        host,
        resume: None,
        fork: false,
        pick: false,
        keep: true,
        probe_local: false,
        cancel: Cancel::new(),
        tool: |_, _, _| panic!("a mistake"),
    };
    let look = Look { style: Style::plain(), reflows: false };
    assert_eq!(etch::chat::run::run(start, &look).unwrap().code, 70);
    assert_eq!(stty("-g"), before);
    let ended = std::panic::catch_unwind(|| {
        let mut terminal = Terminal::open().unwrap();
        terminal.enter().unwrap();
        check_modes("-icanon -echo");
        panic!("a mistake");
    });
    assert!(ended.is_err());
    assert_eq!(stty("-g"), before);
}

fn stty(arg: &str) -> String {
    let output = Command::new("stty").arg(arg).stdin(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "this runs on a terminal");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether `stty` names each of these, `-` before what is off.
#[track_caller]
fn check_modes(wanted: &str) {
    let modes = stty("-a");
    let has = |mode: &str| modes.split([' ', ';', '\n']).any(|word| word == mode);
    for mode in wanted.split(' ') {
        assert!(has(mode), "{mode} in {modes}");
    }
}

#[test]
fn a_raw_terminal_gives_every_key_and_is_put_back_as_it_was() {
    const KEYS: &str = "\u{3}\u{1a}\u{1c}\u{13}\u{11}\u{16}\r\n\u{4}é";
    if !alone::is_alone() {
        return on_a_terminal(
            "terminal::a_raw_terminal_gives_every_key_and_is_put_back_as_it_was",
            KEYS,
        );
    }
    let stdin = io::stdin();
    let before = stty("-g");
    let found = sys::settings(stdin.as_fd()).unwrap();
    sys::set_raw(stdin.as_fd(), &found).unwrap();
    check_modes("-icanon -echo -isig -iexten -ixon -icrnl opost onlcr");
    eprintln!("type now");
    let mut got = vec![0; KEYS.len()];
    stdin.lock().read_exact(&mut got).unwrap();
    assert_eq!(got, KEYS.as_bytes());
    sys::restore(stdin.as_fd(), &found.sane()).unwrap();
    assert_eq!(stty("-g"), before);
}

#[test]
fn a_terminal_that_was_left_raw_becomes_fit_for_a_shell() {
    if !alone::is_alone() {
        return on_a_terminal("terminal::a_terminal_that_was_left_raw_becomes_fit_for_a_shell", "");
    }
    let stdin = io::stdin();
    let found = sys::settings(stdin.as_fd()).unwrap();
    // What a program that was killed leaves, and what cbreak modes without an echo are.
    for left in ["raw", "-icanon"] {
        let status = Command::new("stty").args([left, "-echo"]).status().unwrap();
        assert!(status.success());
        let left = sys::settings(stdin.as_fd()).unwrap();
        sys::set_raw(stdin.as_fd(), &left).unwrap();
        check_modes("-icanon -echo -isig -icrnl opost onlcr");
        sys::restore(stdin.as_fd(), &left.sane()).unwrap();
        check_modes("icanon echo isig iexten icrnl opost onlcr");
        sys::restore(stdin.as_fd(), &found).unwrap();
    }
    // A person's own choice stays.
    let status = Command::new("stty").arg("-echo").status().unwrap();
    assert!(status.success());
    let quiet = sys::settings(stdin.as_fd()).unwrap();
    sys::restore(stdin.as_fd(), &quiet.sane()).unwrap();
    check_modes("icanon -echo");
}

const SIGCONT: i32 = 18;

const ROLE: &str = "ETCH_TEST_ROLE";

/// The same test in a job of its own, in the background of this terminal.
fn background_job(test: &str) -> Child {
    alone::command(test).env(ROLE, "job").process_group(0).stderr(Stdio::piped()).spawn().unwrap()
}

fn is_job() -> bool {
    std::env::var_os(ROLE).is_some()
}

enum Seen {
    Ended(ExitStatus),
    Stopped,
}

/// What becomes of a job: its end, or that it stands still.
fn look(job: &mut Child) -> Seen {
    let begun = Instant::now();
    loop {
        if let Some(status) = job.try_wait().unwrap() {
            return Seen::Ended(status);
        }
        if sys::proc_stat(job.id()).is_some_and(|stat| stat.state == 'T') {
            return Seen::Stopped;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the job neither ends nor stops");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn in_the_background_nothing_is_put_back_and_nothing_stops() {
    let test = "terminal::in_the_background_nothing_is_put_back_and_nothing_stops";
    if !alone::is_alone() {
        return on_a_terminal(test, "");
    }
    let stdin = io::stdin();
    let found = sys::settings(stdin.as_fd()).unwrap();
    if is_job() {
        assert!(!sys::is_foreground(stdin.as_fd()));
        sys::restore(stdin.as_fd(), &found).unwrap();
        return;
    }
    assert!(sys::is_foreground(stdin.as_fd()));
    let mut job = background_job(test);
    match look(&mut job) {
        Seen::Ended(status) => assert!(status.success()),
        Seen::Stopped => {
            job.kill().unwrap();
            panic!("putting the settings back stopped the job");
        }
    }
}

#[test]
fn a_suspended_job_stands_still_until_it_is_continued() {
    let test = "terminal::a_suspended_job_stands_still_until_it_is_continued";
    if !alone::is_alone() {
        return on_a_terminal(test, "");
    }
    if is_job() {
        for round in 0..3 {
            eprintln!("round {round}");
            sys::suspend().unwrap();
        }
        return;
    }
    let mut job = background_job(test);
    let mut said = BufReader::new(job.stderr.take().unwrap()).lines();
    for round in 0..3 {
        assert_eq!(said.next().unwrap().unwrap(), format!("round {round}"));
        assert!(matches!(look(&mut job), Seen::Stopped), "round {round}");
        sys::kill(job.id(), SIGCONT).unwrap();
    }
    assert!(job.wait().unwrap().success());
}
