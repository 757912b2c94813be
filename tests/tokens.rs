//! The estimate of tokens, held against public tokenizers.

use crate::support::tokens::{percent_off, samples};

#[test]
fn every_kind_of_text_is_within_15_percent_of_the_mean_of_public_tokenizers() {
    let (names, samples) = samples();
    assert!(names.len() >= 6 && samples.len() >= 24);
    let far: Vec<String> = samples
        .iter()
        .filter(|sample| sample.error().abs() > 15.0)
        .map(|sample| format!("{}: {:+.1} %", sample.kind, sample.error()))
        .collect();
    assert!(far.is_empty(), "{far:?}");
}

#[test]
fn english_and_code_are_within_15_percent_of_each_tokenizer() {
    let (names, samples) = samples();
    let kinds = [
        "english",
        "markdown",
        "rust",
        "python",
        "javascript",
        "json",
        "jsonl",
        "diff",
        "shell",
        "numbers",
    ];
    for kind in kinds {
        let sample = samples.iter().find(|sample| sample.kind == kind).unwrap();
        let estimate = etch::text::estimate_tokens(&sample.text);
        for (name, count) in names.iter().zip(&sample.counts) {
            let off = percent_off(estimate, *count);
            assert!(off.abs() <= 15.0, "{kind} by {name}: {off:+.1} %");
        }
    }
}
