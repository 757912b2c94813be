//! Figures: `cargo bench` prints them, `cargo bench -- TOPIC` one topic of them.
//!
//! The last table says of each promised figure whether it holds. Machines are noisy, so a figure
//! stands beside a reference measured in the same run where there is one, and nothing fails.
//! Peers that are not installed are left out. `ETCH_BENCH_BINARY` names another binary to
//! measure, such as the static one.
#![allow(unsafe_code, clippy::unwrap_used)]

mod cancel;
mod chat;
mod files;
mod log;
mod measure;
mod run;
mod search;
mod stream;
mod tokens;

#[path = "../support/mod.rs"]
mod support;

/// A topic's name and what prints its figures.
const TOPICS: &[(&str, fn())] = &[
    ("run", run::print),
    ("stream", stream::print),
    ("log", log::print),
    ("files", files::print),
    ("search", search::print),
    ("cancel", cancel::print),
    ("chat", chat::print),
    ("tokens", tokens::print),
];

fn main() {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == measure::MEASURE) {
        return measure::measure(words);
    }
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, print) in TOPICS {
        if wanted.is_empty() || wanted.iter().any(|want| want == name) {
            println!("\n## {name}");
            print();
        }
    }
    // The processes that measure this program itself have nothing to say.
    if std::env::vars_os()
        .any(|(name, _)| name == log::REPLAY || name == log::LIST || name == stream::CALL)
    {
        return;
    }
    println!("\n## budgets");
    measure::print_budgets();
}
