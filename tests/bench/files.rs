//! Files: two lines of a huge one, edits of large ones, explanations of near misses.

use std::fs::File;
use std::io::{BufWriter, Write};

use crate::measure::{Used, binary, budget, command, median, row, used};
use crate::support::command::Place;

/// Lines of 50 bytes; four million of them are 200 MB.
const LINES: usize = 4_000_000;

pub fn print() {
    let place = Place::new();
    write_lines(&place, "huge", LINES);
    let run = |program: &std::path::Path, args: &[&str]| -> Used {
        used(command(program).args(args).current_dir(place.work()).env("HOME", "/"))
    };
    let etch = |args: &[&str]| run(&binary(), args);
    row("etch --version", median(10, || etch(&["--version"])));
    for (what, line) in [("first", "1"), ("middle", "2000000"), ("last", "3999999")] {
        let read = || etch(&["tool", "read", "huge", "--offset", line, "--limit", "2"]);
        let ours = median(5, read);
        row(&format!("read 2 lines of 200 MB, {what}"), ours);
        let script = format!("{line},+1p;{line}q");
        let sed = median(5, || run("sed".as_ref(), &["-n", &script, "huge"]));
        row("  sed -n", sed);
        if what == "last" {
            let beside = format!("sed: {:.0} ms", sed.wall_ms());
            budget("last two lines of 200 MB: wall", ours.wall_ms(), 50.0, "ms", &beside);
            budget("last two lines of 200 MB: peak memory", ours.rss_mb(), 6.0, "MB", "");
        }
    }
    let output = median(3, || etch(&["tool", "bash", "head -c 500000000 /dev/zero"]));
    row("500 MB of shell output", output);
    budget("500 MB of shell output: peak memory", output.rss_mb(), 8.0, "MB", "");
    row("  wc -l", median(5, || run("wc".as_ref(), &["-l", "huge"])));
    for (what, lines) in [("1 MB", 20_000), ("20 MB", 400_000)] {
        write_lines(&place, "large", lines);
        let last = format!("line {:>8}", lines - 1);
        let dry = |old: &str| {
            etch(&["tool", "edit", "large", "--old", old, "--new", "other", "--dry-run"])
        };
        row(&format!("edit {what}, one match"), median(5, || dry(&last)));
        row(&format!("edit {what}, differs in case"), median(5, || dry(&last.to_uppercase())));
        row(&format!("edit {what}, nothing near"), median(5, || dry("something else entirely")));
        row(&format!("edit {what}, a match in every line"), median(5, || dry("padding")));
    }
    let script = "head -c 50000000 huge | \"$0\" tool write copy --content -";
    let path = binary();
    let write = || run("sh".as_ref(), &["-c", script, path.to_str().unwrap()]);
    row("write 50 MB from a pipe", median(3, write));
}

fn write_lines(place: &Place, name: &str, count: usize) {
    let mut out = BufWriter::new(File::create(place.work().join(name)).unwrap());
    for number in 0..count {
        writeln!(out, "line {number:>8} padding padding padding padding abcde").unwrap();
    }
    out.flush().unwrap();
}
