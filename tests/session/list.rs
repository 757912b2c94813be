//! The folder of sessions: where it is, what it lists, what a name finds.

use super::*;
use etch::session::{Error, default_dir, title_of};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

fn titles(store: &Store) -> Vec<String> {
    store.list().unwrap().into_iter().map(|row| format!("{}: {}", row.id, row.title)).collect()
}

fn named(dir: &Path, name: Option<&str>, cwd: &Path, prompt: &str) -> Row {
    let host = Host::from_process();
    let store = Store::open(dir);
    let data = EventData::SessionStarted {
        cwd: cwd.to_string_lossy().into_owned(),
        version: "0.1.0".into(),
        name: name.map(str::to_owned),
        fork_session_path: None,
        fork_event_id: None,
    };
    let mut log = Log::create(&store, &host, data, prompt);
    log.append(&host, &EventData::user(prompt)).unwrap();
    store.find(log.id()).unwrap()
}

const WORK: &str = "/w";

fn work() -> &'static Path {
    Path::new(WORK)
}

#[test]
fn folder_and_files_are_private_and_git_ignores_them() {
    let temp = TempDir::new();
    let dir = temp.path().join(".etch/sessions");
    let row = named(&dir, None, work(), "hello");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&row.path)), (0o700, 0o600));
    assert_eq!(mode(&dir.join("index.jsonl")), 0o600);
    assert_eq!(fs::read_to_string(dir.join(".gitignore")).unwrap(), "*\n");
}

#[test]
fn sessions_are_listed_with_and_without_their_rows() {
    let temp = TempDir::new();
    for entry in fs::read_dir(fixture("")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "jsonl") {
            temp.write(path.file_name().unwrap().to_str().unwrap(), fs::read(&path).unwrap());
        }
    }
    temp.write("empty.jsonl", "");
    temp.write("noise.jsonl", "no event\n");
    temp.write("notes.txt", "no session\n");
    let store = Store::open(temp.path());
    let mut got = titles(&store);
    got.sort();
    let want = [
        "document-shape: fix tests",
        "go-child: Find b.txt",
        "go-glued: first",
        "go-plain: hi",
        "go-reasoning: think, then list",
        "go-summary: read a.txt",
        "go-tools: what is in a.txt?",
        "go-two-writers: start",
        "pointer-fork: and now?",
        "pointer: what is in a.txt?",
    ];
    assert_eq!(got, want);
    let child = store.find("go-child").unwrap();
    assert!(child.parent_session_id.is_some());
    assert_eq!(child.path, temp.path().join("go-child.jsonl"));
    // A torn row does not swallow the next one.
    let row = named(temp.path(), None, work(), "new one");
    let index = fs::read_to_string(temp.path().join("index.jsonl")).unwrap();
    let last = index.lines().next_back().unwrap();
    assert_eq!(serde_json::from_str::<Row>(last).unwrap(), row);
    let before = store.list().unwrap();
    assert_eq!((before.len(), before.last()), (11, Some(&row)));
    // And the whole index can go.
    fs::remove_file(temp.path().join("index.jsonl")).unwrap();
    assert_eq!(store.list().unwrap(), before);
    assert_eq!(store.rebuild_index(&Host::from_process()).unwrap(), 11);
    assert_eq!(store.list().unwrap(), before);
    let index = fs::read_to_string(temp.path().join("index.jsonl")).unwrap();
    assert_eq!(index.lines().count(), 11);
    let names = fs::read_dir(temp.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden = names.filter(|name| name.to_str().unwrap().starts_with(".index")).count();
    assert_eq!(hidden, 0);
}

#[test]
fn an_id_a_beginning_a_name_and_a_path_find_a_session() {
    let temp = TempDir::new();
    let head = "{\"type\":\"session.started\",\"id\":\"x\",\"time\":\"2026-01-01T00:00:00Z\",\
                \"data\":{\"cwd\":\"/w\"}}\n";
    for id in ["abcd1111", "abcd2222", "ef"] {
        temp.write(&format!("{id}.jsonl"), head);
    }
    let one = named(temp.path(), Some("fix"), work(), "a");
    let two = named(temp.path(), Some("twin"), work(), "b");
    // Two of one name, as file systems without locks can still bring about.
    let three = named(temp.path(), Some("other"), work(), "c");
    for path in [&three.path, &temp.path().join("index.jsonl")] {
        let text = fs::read_to_string(path).unwrap();
        fs::write(path, text.replace("\"other\"", "\"twin\"")).unwrap();
    }
    let store = Store::open(temp.path());
    let id = |wanted: &str| store.find(wanted).map(|row| row.id).map_err(|error| error.to_string());
    assert_eq!(id("abcd1111").unwrap(), "abcd1111");
    assert_eq!(id("ABCD2").unwrap(), "abcd2222");
    assert_eq!(id("ef").unwrap(), "ef");
    assert_eq!(id("fix").unwrap(), one.id);
    assert_eq!(id(&two.id[..20]).unwrap(), two.id);
    assert_eq!(
        id("abcd").unwrap_err(),
        "'abcd' matches 2 sessions (abcd2222, abcd1111); type more of the id"
    );
    let unknown = "no session 'nothing'; run 'etch sessions' to list them";
    assert_eq!(id("nothing").unwrap_err(), unknown);
    assert_eq!(id("").unwrap_err(), unknown.replace("nothing", ""));
    let Err(Error::Ambiguous { count, matches, .. }) = store.find("twin") else { panic!("one") };
    assert_eq!((count, &matches[..]), (2, &[three.id[..12].into(), two.id[..12].into()][..]));
    // One whose head cannot be read is not listed, but found: opening it tells what is wrong.
    temp.write("0badc0de.jsonl", "\0\0\0\n");
    temp.write("notes.jsonl", "\0\0\0\n");
    assert_eq!(id("0bad").unwrap(), "0badc0de");
    assert_eq!(id("notes").unwrap_err(), unknown.replace("nothing", "notes"));
    assert_eq!(id(temp.path().join("ef.jsonl").to_str().unwrap()).unwrap(), "ef");
    assert_eq!(Store::open(temp.path().join("none")).list().unwrap(), []);
}

#[test]
fn the_latest_session_is_the_one_written_to_last_in_this_project() {
    let temp = TempDir::new();
    fs::create_dir_all(temp.path().join("repo/.git")).unwrap();
    fs::create_dir_all(temp.path().join("repo/deep")).unwrap();
    let (repo, deep) = (temp.path().join("repo"), temp.path().join("repo/deep"));
    let (other, shared) = (temp.path().join("other"), temp.path().join("state"));
    let first = named(&shared, None, &deep, "first");
    let second = named(&shared, None, &repo, "second");
    let third = named(&shared, None, &other, "third");
    let now = SystemTime::now();
    let touch = |row: &Row, ago: u64| {
        let file = fs::File::options().append(true).open(&row.path).unwrap();
        file.set_modified(now - Duration::from_secs(ago)).unwrap();
    };
    touch(&first, 10);
    touch(&second, 20);
    touch(&third, 0);
    let store = Store::open(&shared);
    let at = |dir: &Path| {
        let host = Host::fixed().with_cwd(dir);
        store.latest(&host).map(|row| row.title).map_err(|error| error.to_string())
    };
    assert_eq!(at(&repo).as_deref(), Ok("first"));
    touch(&second, 5);
    assert_eq!(at(&deep).as_deref(), Ok("second"));
    assert_eq!(at(&other).as_deref(), Ok("third"));
    assert_eq!(
        at(temp.path()).unwrap_err(),
        format!(
            "no session of this project in {}; start one with 'etch -p', or name one with --session",
            shared.display()
        )
    );
    // A name that is no UTF-8 is written as it is shown.
    use std::os::unix::ffi::OsStrExt;
    let odd = temp.path().join(std::ffi::OsStr::from_bytes(b"odd \xff"));
    for dir in [odd.clone(), odd.join("repo")] {
        fs::create_dir_all(&dir).unwrap();
        named(&shared, None, &dir, &format!("in {}", dir.display()));
        assert_eq!(at(&dir), Ok(format!("in {}", dir.display())));
        fs::create_dir_all(odd.join("repo/.git")).unwrap();
    }
    // In the project's own folder all are the project's, wherever it stood when they were made.
    let own = repo.join(".etch/sessions");
    named(&own, None, Path::new("/moved/from/here"), "own");
    let host = Host::fixed().with_cwd(&deep);
    assert_eq!(Store::open(&own).latest(&host).unwrap().title, "own");
}

#[test]
fn the_folder_is_the_projects_or_the_users() {
    let temp = TempDir::new();
    let (repo, home) = (temp.path().join("repo"), temp.path().join("home"));
    fs::create_dir_all(&repo).unwrap();
    let host = Host::fixed().with_home(&home).with_cwd(&repo);
    let state = home.join(".local/state/etch/sessions");
    assert_eq!(default_dir(&host, Some(&repo)), repo.join(".etch/sessions"));
    assert_eq!(default_dir(&host, None), state);
    assert_eq!(default_dir(&Host::fixed().with_cwd(&repo), None), repo.join(".etch/sessions"));
    // Where the project cannot hold one, the user can.
    let blocked = temp.path().join("blocked");
    fs::create_dir(&blocked).unwrap();
    fs::write(blocked.join(".etch"), "a file").unwrap();
    assert_eq!(default_dir(&host, Some(&blocked)), state);
    let host = host.with_var("XDG_STATE_HOME", "/s");
    assert_eq!(default_dir(&host, None), Path::new("/s/etch/sessions"));
}

#[test]
fn a_title_is_the_prompt_on_one_short_line() {
    let check = |prompt: &str, want: &str| assert_eq!(title_of(prompt), want);
    check("", "untitled");
    check(" \n\t ", "untitled");
    check("  a\n\n b\tc \u{1b}[0m", "a b c [0m");
    check("fix it\n\n--- attached: file a.txt ---\nx\n--- end of file a.txt ---", "fix it");
    check("what is --- attached: here?", "what is --- attached: here?");
    let sixty = "x".repeat(60);
    check(&sixty, &sixty);
    check(&"x".repeat(61), &format!("{}...", "x".repeat(57)));
    check(&"é".repeat(40), &format!("{}...", "é".repeat(28)));
    check(&"word ".repeat(30), &format!("{}wo...", "word ".repeat(11)));
    check(&"\u{1f600}".repeat(100), &format!("{}...", "\u{1f600}".repeat(14)));
}

#[test]
fn a_prompt_longer_than_the_head_still_gives_its_title() {
    let temp = TempDir::new();
    for prompt in ["\"é\\ \u{1f600}".repeat(20_000), "word ".repeat(50_000)] {
        let row = named(temp.path(), None, work(), &prompt);
        fs::remove_file(temp.path().join("index.jsonl")).unwrap();
        assert_eq!(row_of(&row.path).title, title_of(&prompt));
    }
}

#[test]
fn a_list_reads_no_more_than_heads() {
    let temp = TempDir::new();
    let head = "{\"type\":\"session.started\",\"id\":\"a\",\"time\":\"2026-01-01T00:00:00Z\",\
                \"data\":{\"cwd\":\"/w\"}}\n\
                {\"type\":\"message.user\",\"id\":\"b\",\"data\":{\"content\":\"big\"}}\n";
    for at in 0..200 {
        let path = temp.write(&format!("s{at:03}.jsonl"), head);
        // Sparse: a gigabyte that is nowhere, behind the head.
        fs::File::options().append(true).open(path).unwrap().set_len(1 << 30).unwrap();
    }
    let read_before = bytes_read();
    let rows = Store::open(temp.path()).list().unwrap();
    let read = bytes_read() - read_before;
    assert_eq!((rows.len(), rows[199].title.as_str()), (200, "big"));
    // Other tests read in this process as well; whole files would be 200 GB.
    assert!(read < 2 << 30, "{read} bytes were read");
}

fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn an_index_that_a_repository_has_replaced_is_neither_read_nor_written_to() {
    let temp = TempDir::new();
    let elsewhere = temp.write("elsewhere/profile", "mine\n");
    let dir = temp.path().join("sessions");
    let index = dir.join("index.jsonl");
    fs::create_dir(&dir).unwrap();
    let link = |target: &Path| {
        let _ = fs::remove_file(&index);
        std::os::unix::fs::symlink(target, &index).unwrap();
    };
    link(&elsewhere);
    named(&dir, None, work(), "one");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine\n");
    link(Path::new("/dev/zero"));
    named(&dir, None, work(), "two");
    fs::remove_file(&index).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&index).status().unwrap().success());
    named(&dir, None, work(), "three");
    let mut titles: Vec<_> =
        Store::open(&dir).list().unwrap().into_iter().map(|row| row.title).collect();
    titles.sort();
    assert_eq!(titles, ["one", "three", "two"]);
    // A session that is no file is none, even if a row names it.
    let gone = named(&dir, None, work(), "gone");
    fs::remove_file(&index).unwrap();
    let row = serde_json::to_string(&gone).unwrap();
    fs::write(&index, row + "\n").unwrap();
    fs::remove_file(&gone.path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&gone.path).status().unwrap().success());
    let error = Log::open(&gone, &mut ()).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}
