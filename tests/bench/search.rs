//! Searching a large tree, beside ripgrep and fd with the same ignore rules.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::measure::{Used, binary, budget, command, median, row, used, wall_ratio};
use crate::support::command::Place;

/// Copies of this project's sources; some 25,000 files and 250 MB.
const COPIES: usize = 150;
const RUNS: usize = 9;

pub fn print() {
    let place = Place::new();
    let files = plant(place.work().as_ref());
    println!("a tree of {files} files");
    let etch = |args: &[&str]| run(&place, &binary(), &[&["tool"], args].concat());
    let peer = |name: &str, args: &[&str]| run(&place, Path::new(name), args);
    let rg: Option<&str> = installed(&["rg"]);
    let fd: Option<&str> = installed(&["fd", "fdfind"]);
    let rows: [(&str, &[&str], &[&str]); 4] = [
        ("no match", &["grep", "zzqqxxyy"], &["zzqqxxyy", "."]),
        ("many matches", &["grep", "pub fn", "--limit", "1000"], &["pub fn", "."]),
        ("expression, no match", &["grep", r"fn \w+_zzqq\(", "--regex"], &[r"fn \w+_zzqq\(", "."]),
        ("any case, no match", &["grep", "zzqqXXyy", "--ignore-case"], &["-i", "zzqqXXyy", "."]),
    ];
    for (what, ours, theirs) in rows {
        row(&format!("grep, {what}"), median(RUNS, || etch(ours)));
        if let Some(rg) = rg {
            row("  ripgrep", median(RUNS, || peer(rg, theirs)));
            ratio(
                &format!("grep, {what}"),
                wall_ratio(RUNS, || etch(ours), || peer(rg, theirs)),
                "ripgrep",
            );
        }
    }
    for (what, query, pattern) in
        [("by name", "batch.rs", r"batch\.rs"), ("no match", "zzqqxx", "zzqqxx")]
    {
        row(&format!("find, {what}"), median(RUNS, || etch(&["find", query])));
        if let Some(fd) = fd {
            row("  fd", median(RUNS, || peer(fd, &[pattern])));
            let ratio_to = wall_ratio(RUNS, || etch(&["find", query]), || peer(fd, &[pattern]));
            ratio(&format!("find, {what}"), ratio_to, "fd");
        }
    }
    place.file("many", "a matching line\n".repeat(60_000));
    let first = ["grep", "matching", "many", "--limit", "1"];
    let figures = median(RUNS, || etch(&first));
    row("60,000 matching lines of one file, limit 1", figures);
    budget("60,000 matching lines in one file, limit 1: CPU", figures.cpu_ms(), 10.0, "ms", "");
    row("  etch --version", median(RUNS, || run(&place, &binary(), &["--version"])));
}

fn ratio(work: &str, ratio: f64, peer: &str) {
    println!("  wall, as a multiple of it: {ratio:.2}");
    budget(&format!("{work}: wall, as a multiple of {peer}"), ratio, 1.0, "", "");
}

fn run(place: &Place, program: &Path, args: &[&str]) -> Used {
    used(command(program).args(args).current_dir(place.work()).env("HOME", "/"))
}

fn installed<'a>(names: &[&'a str]) -> Option<&'a str> {
    let starts = |name: &&&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let found = names.iter().find(starts).copied();
    if found.is_none() {
        println!("{} is not installed", names.join(", "));
    }
    found
}

/// Fills a folder with copies of the sources and files that its rules leave out.
fn plant(root: &Path) -> usize {
    fs::write(root.join(".gitignore"), "target/\n*.log\n/copy-7/tests\n").unwrap();
    fs::create_dir(root.join(".git")).unwrap();
    let mut sources = Vec::new();
    for top in ["src", "tests"] {
        gather(Path::new(env!("CARGO_MANIFEST_DIR")), Path::new(top), &mut sources);
    }
    let mut count = 0;
    for copy in 0..COPIES {
        for (path, content) in &sources {
            let path = root.join(format!("copy-{copy}")).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
            count += 1;
        }
        fs::create_dir(root.join(format!("copy-{copy}/target"))).unwrap();
        fs::write(root.join(format!("copy-{copy}/target/build.log")), "zzqqxxyy\n").unwrap();
    }
    count
}

fn gather(root: &Path, folder: &Path, out: &mut Vec<(std::path::PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        if root.join(&path).is_dir() {
            gather(root, &path, out);
        } else {
            let content = fs::read(root.join(&path)).unwrap();
            out.push((path, content));
        }
    }
}
