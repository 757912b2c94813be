//! Runs commands as whole processes and reads what the system says they used.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
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

/// The first argument of a process that runs the others as a command and prints what it used.
pub const MEASURE: &str = "--measure";

/// A command to measure. It is started by a small process in between, because the peak memory of
/// a process is at least what its parent has when it starts it.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(MEASURE).arg(program);
    command
}

/// Runs a [`command`] to its end with its output thrown away.
pub fn used(command: &mut Command) -> Used {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let &[wall, cpu, rss_kib, exit] = numbers.as_slice() else { panic!("{command:?}: {text}") };
    let (wall, cpu) = (Duration::from_micros(wall), Duration::from_micros(cpu));
    Used { wall, cpu, rss_kib, exit: exit as i32 }
}

/// What the process in between does.
// `wait4` below is the wait.
#[allow(clippy::zombie_processes)]
pub fn measure(mut words: impl Iterator<Item = OsString>) {
    let mut command = Command::new(words.next().unwrap());
    command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let Ok(child) = command.spawn() else { return println!("0 0 0 127") };
    let pid = i32::try_from(child.id()).unwrap();
    let mut status = 0;
    // SAFETY: rusage is plain data, and both pointers are to our own variables.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::wait4(pid, &raw mut status, 0, &raw mut usage), pid);
        usage
    };
    let wall = start.elapsed().as_micros();
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    let cpu = micros(usage.ru_utime) + micros(usage.ru_stime);
    let exit = if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    };
    println!("{wall} {cpu} {} {exit}", usage.ru_maxrss);
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

impl Used {
    pub fn wall_ms(&self) -> f64 {
        self.wall.as_secs_f64() * 1e3
    }

    pub fn cpu_ms(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e3
    }

    /// Peak resident size in millions of bytes.
    pub fn rss_mb(&self) -> f64 {
        self.rss_kib as f64 * 1024.0 / 1e6
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

/// A figure that is promised, and what it has to stay below.
struct Budget {
    work: String,
    measured: f64,
    budget: f64,
    unit: &'static str,
    beside: String,
}

static BUDGETS: Mutex<Vec<Budget>> = Mutex::new(Vec::new());

/// Notes a row of the table at the end. `beside` is what a reference needed in the same run.
pub fn budget(work: &str, measured: f64, budget: f64, unit: &'static str, beside: &str) {
    let (work, beside) = (work.to_owned(), beside.to_owned());
    BUDGETS.lock().unwrap().push(Budget { work, measured, budget, unit, beside });
}

/// Prints the rows that were noted, each with whether it holds.
pub fn print_budgets() {
    println!("| work | measured | budget | | beside it |\n|---|---|---|---|---|");
    for row in BUDGETS.lock().unwrap().iter() {
        let verdict = if row.measured <= row.budget { "pass" } else { "**over**" };
        println!(
            "| {} | {} | {} | {verdict} | {} |",
            row.work,
            quantity(row.measured, row.unit),
            quantity(row.budget, row.unit),
            row.beside
        );
    }
}

/// Three digits, and the unit.
fn quantity(value: f64, unit: &str) -> String {
    let digits = (2 - (value.abs().max(0.01).log10().floor() as i32)).clamp(0, 2) as usize;
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}
