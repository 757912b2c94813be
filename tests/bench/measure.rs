//! Runs commands as whole processes and reads what the system says they used.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One finished process.
#[derive(Debug, Clone, Copy)]
pub struct Used {
    pub wall: Duration,
    /// User and system time, waited-for children included.
    pub cpu: Duration,
    /// Peak resident size, in KiB.
    pub rss_kib: u64,
    /// As a shell has it: 128 and the number when a signal ended it.
    pub exit: i32,
}

/// The binary under measurement: `ETCH_BENCH_BINARY`, else the one cargo built.
pub fn binary() -> PathBuf {
    let given = std::env::var_os("ETCH_BENCH_BINARY");
    given.map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_etch")), PathBuf::from)
}

/// Runs a command to its end with its output thrown away.
// `wait4` below is the wait.
#[allow(clippy::zombie_processes)]
pub fn used(command: &mut Command) -> Used {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let child = command.spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let mut status = 0;
    // SAFETY: rusage is plain data, and both pointers are to our own variables.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::wait4(pid, &raw mut status, 0, &raw mut usage), pid);
        usage
    };
    let wall = start.elapsed();
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    let exit = if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    };
    Used {
        wall,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        rss_kib: usage.ru_maxrss as u64,
        exit,
    }
}

/// The median of `runs` runs, each figure for itself; one run before them is not counted.
pub fn median(runs: usize, mut run: impl FnMut() -> Used) -> Used {
    run();
    let all: Vec<Used> = (0..runs).map(|_| run()).collect();
    let middle = |mut values: Vec<Duration>| {
        values.sort();
        values[values.len() / 2]
    };
    Used {
        wall: middle(all.iter().map(|used| used.wall).collect()),
        cpu: middle(all.iter().map(|used| used.cpu).collect()),
        rss_kib: {
            let mut sizes: Vec<u64> = all.iter().map(|used| used.rss_kib).collect();
            sizes.sort_unstable();
            sizes[sizes.len() / 2]
        },
        exit: all.iter().map(|used| used.exit).max().unwrap(),
    }
}

/// Median ratio of the wall times of two commands run in turn.
pub fn wall_ratio(
    runs: usize,
    mut ours: impl FnMut() -> Used,
    mut peer: impl FnMut() -> Used,
) -> f64 {
    let mut ratios: Vec<f64> =
        (0..=runs).map(|_| ours().wall.as_secs_f64() / peer().wall.as_secs_f64()).skip(1).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// One row of figures.
pub fn row(what: &str, used: Used) {
    println!(
        "{what:<44} wall {:>9.2} ms  cpu {:>9.2} ms  rss {:>6.1} MB  exit {}",
        used.wall.as_secs_f64() * 1e3,
        used.cpu.as_secs_f64() * 1e3,
        used.rss_kib as f64 / 1024.0,
        used.exit
    );
}
