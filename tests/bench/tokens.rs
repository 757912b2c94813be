//! The estimate of tokens: how far from public tokenizers, and how fast.

use std::hint::black_box;
use std::time::Instant;

use crate::support::tokens::{percent_off, samples};

/// Read again and again until so many bytes were read.
const BYTES: usize = 64 << 20;

pub fn print() {
    let (names, samples) = samples();
    println!("percent off the mean, and off each; millions of bytes a second");
    println!("{:<12} {:>7} {:>8}  {}", "kind", "mean", "MB/s", names.join(" "));
    for sample in &samples {
        let estimate = etch::text::estimate_tokens(&sample.text);
        let cells = names.iter().zip(&sample.counts).map(|(name, count)| {
            format!(
                "{:>width$}",
                format!("{:+.0}", percent_off(estimate, *count)),
                width = name.len()
            )
        });
        let cells: Vec<String> = cells.collect();
        let (mean, speed) = (format!("{:+.1}", sample.error()), speed(&sample.text));
        println!("{:<12} {mean:>7} {speed:>8.0}  {}", sample.kind, cells.join(" "));
    }
}

fn speed(text: &str) -> f64 {
    let times = BYTES / text.len();
    let start = Instant::now();
    for _ in 0..times {
        black_box(etch::text::estimate_tokens(black_box(text)));
    }
    (times * text.len()) as f64 / start.elapsed().as_secs_f64() / 1e6
}
