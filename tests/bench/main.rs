//! Figures: `cargo bench` prints them, `cargo bench -- TOPIC` one topic of them.
//!
//! Nothing here passes or fails: machines are noisy, so each figure stands beside a reference
//! measured in the same run where there is one, and counts (bytes, system calls) beside times.
//! Peers that are not installed are left out. `ETCH_BENCH_BINARY` names another binary to
//! measure, such as the static one.
#![allow(unsafe_code, clippy::unwrap_used)]

mod files;
mod log;
mod measure;
mod run;
mod search;
mod stream;

#[path = "../support/mod.rs"]
mod support;

/// A topic's name and what prints its figures.
const TOPICS: &[(&str, fn())] = &[
    ("run", run::print),
    ("stream", stream::print),
    ("log", log::print),
    ("files", files::print),
    ("search", search::print),
];

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, print) in TOPICS {
        if wanted.is_empty() || wanted.iter().any(|want| want == name) {
            println!("\n## {name}");
            print();
        }
    }
}
