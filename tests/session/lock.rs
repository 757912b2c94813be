//! One writer at a time, full disks and folders that cannot be written.

use super::kill::Child;
use super::*;
use etch::session::Error;

#[test]
fn a_second_writer_is_refused_and_told_who_holds_the_session() {
    let temp = TempDir::new();
    let path = write_session(temp.path(), &[EventData::user("one")]);
    let row = row_of(&path);
    let (mut log, _) = Log::open(&row, &mut ()).unwrap();
    let error = Log::open(&row, &mut ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "session {} is in use by process {}; wait for it, or continue a copy with --fork",
            row.id,
            std::process::id()
        )
    );
    assert_eq!(error.exit_code(), 9);
    // Reading needs no lock, and the refused one changed nothing.
    log.append(&Host::from_process(), &answers("1")).unwrap();
    assert_eq!(said(&project(&path).0), ["user: one", "assistant: 1"]);
    drop(log);
    assert!(Log::open(&row, &mut ()).is_ok());
    assert!(!path.with_extension("lock").exists());
}

#[test]
fn a_new_session_is_locked_from_its_first_event() {
    let temp = TempDir::new();
    let host = Host::from_process();
    let mut log = Log::create(&Store::open(temp.path()), &host, started("/work"), "t");
    log.append(&host, &EventData::user("one")).unwrap();
    let row = row_of(log.path().unwrap());
    assert!(matches!(Log::open(&row, &mut ()), Err(Error::Locked { pid: Some(_), .. })));
}

#[test]
fn a_killed_holder_holds_nothing() {
    let temp = TempDir::new();
    let mut child = Child::start(temp.path(), None, 0, 4);
    child.wait_for(3);
    let row = Store::open(temp.path()).list().unwrap().pop().unwrap();
    match Log::open(&row, &mut ()) {
        Err(Error::Locked { pid, .. }) => assert_eq!(pid, Some(child.pid())),
        other => panic!("{other:?}"),
    }
    child.kill();
    // The number it left behind is nobody's, or another program's by now.
    let holder = row.path.with_extension("lock");
    assert!(holder.exists());
    fs::write(&holder, "1\n").unwrap();
    let (log, _) = Log::open(&row, &mut ()).unwrap();
    assert_eq!(fs::read_to_string(&holder).unwrap(), format!("{}\n", std::process::id()));
    drop(log);
}

#[test]
fn sessions_begun_at_the_same_moment_are_separate_and_all_listed() {
    let temp = TempDir::new();
    let paths: Vec<PathBuf> = std::thread::scope(|scope| {
        let one = || write_session(temp.path(), &[EventData::user("one"), answers("1")]);
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for path in &paths {
        assert_eq!(said(&project(path).0), ["user: one", "assistant: 1"]);
    }
    let index = fs::read_to_string(temp.path().join("index.jsonl")).unwrap();
    let rows = index.lines().filter(|line| serde_json::from_str::<Row>(line).is_ok()).count();
    assert_eq!((Store::open(temp.path()).list().unwrap().len(), rows), (16, 16));
}

#[test]
fn a_full_disk_costs_only_the_line_that_did_not_fit() {
    let temp = TempDir::new();
    // Files of the child end at 8 KiB: the system takes a part of the line that crosses that.
    let mut child = Child::start(temp.path(), Some(8), 0, 1000);
    let lines = child.finish();
    let acknowledged = lines.iter().filter(|line| line.starts_with("ok ")).count();
    let errors: Vec<&String> = lines.iter().filter(|line| line.starts_with("error ")).collect();
    assert_eq!(errors.len(), 2, "{lines:?}");
    let cut = " bytes were taken; make room there, then resume it: what was saved before is whole";
    assert!(errors[0].contains("error cannot write session ") && errors[0].ends_with(cut));
    assert!(errors[1].contains("takes no more events after a failed write"), "{errors:?}");
    let path = row_of_only(temp.path());
    let (events, notices) = messages_of(&path);
    assert_eq!((events, notices), (acknowledged, 1));
    resume_and_add(&path, &[EventData::user("room again")]);
    assert_eq!(messages_of(&path), (acknowledged + 1, 0));
}

/// How many messages the session has, and how many notices its reading gives.
fn messages_of(path: &Path) -> (usize, usize) {
    let mut count = 0;
    let replayed = etch::session::each_event(path, &mut |event| {
        count += usize::from(event.kind.starts_with("message."));
    });
    (count, replayed.unwrap().notices.len())
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_and_may_be_tried_again() {
    let temp = TempDir::new();
    let blocker = temp.write("file", "");
    let host = Host::from_process();
    let dir = blocker.join("sessions");
    let mut log = Log::create(&Store::open(&dir), &host, started("/work"), "t");
    let error = log.append(&host, &EventData::user("one")).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot create {}: Not a directory (os error 20); use --session-dir DIR, or \
             --no-session to keep no log",
            dir.display()
        )
    );
    fs::remove_file(&blocker).unwrap();
    log.append(&host, &EventData::user("one")).unwrap();
    assert_eq!(said(&project(log.path().unwrap()).0), ["user: one"]);
}

/// The one session of a folder.
pub fn row_of_only(dir: &Path) -> PathBuf {
    let mut rows = Store::open(dir).list().unwrap();
    assert_eq!(rows.len(), 1);
    rows.pop().unwrap().path
}

#[test]
fn of_many_that_begin_a_session_of_one_name_at_once_one_has_it_and_the_others_are_told() {
    let temp = TempDir::new();
    let store = Store::open(temp.path());
    let begin = std::sync::Barrier::new(8);
    let first_append = || {
        let host = Host::from_process();
        let started = EventData::SessionStarted {
            cwd: "/work".into(),
            version: "0.1.0".into(),
            name: Some("nightly".into()),
            fork_session_path: None,
            fork_event_id: None,
        };
        let mut log = Log::create(&store, &host, started, "t");
        begin.wait();
        log.append(&host, &EventData::user("one")).map(|_| ()).map_err(|error| error.to_string())
    };
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(first_append)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let row = store.find("nightly").unwrap();
    let want = format!(
        "another process has just begun a session 'nightly' ({}); run again to continue it, or \
         take another name",
        &row.id[..12]
    );
    let (begun, told): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!((begun.len(), told), (1, vec![Err(want); 7]));
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn the_holders_number_is_never_written_through_a_link() {
    let temp = TempDir::new();
    let elsewhere = temp.write("elsewhere/keys", "mine\n");
    let path = write_session(&temp.path().join("sessions"), &[EventData::user("one")]);
    let note = path.with_extension("lock");
    let own = format!("{}\n", std::process::id());
    std::os::unix::fs::symlink(&elsewhere, &note).unwrap();
    let (log, _) = Log::open(&row_of(&path), &mut ()).unwrap();
    assert_eq!(fs::read_to_string(&note).unwrap(), own);
    drop(log);
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine\n");
    // A pipe that nobody reads does not hold it up, and a folder is no reason not to work.
    assert!(std::process::Command::new("mkfifo").arg(&note).status().unwrap().success());
    let (log, _) = Log::open(&row_of(&path), &mut ()).unwrap();
    assert_eq!(fs::read_to_string(&note).unwrap(), own);
    drop(log);
    fs::create_dir(&note).unwrap();
    assert!(Log::open(&row_of(&path), &mut ()).is_ok() && note.is_dir());
}
