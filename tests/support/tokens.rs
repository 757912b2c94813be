//! The texts of `fixtures/tokens` with what public tokenizers make of them.

use std::path::Path;

/// A text of one kind and its counts, in the order of the tokenizers.
pub struct Sample {
    pub kind: String,
    pub text: String,
    pub counts: Vec<f64>,
}

impl Sample {
    pub fn mean(&self) -> f64 {
        self.counts.iter().sum::<f64>() / self.counts.len() as f64
    }

    /// What the estimate is too much, in percent of the mean; below zero: too little.
    pub fn error(&self) -> f64 {
        percent_off(etch::text::estimate_tokens(&self.text), self.mean())
    }
}

pub fn percent_off(estimate: usize, truth: f64) -> f64 {
    (estimate as f64 / truth - 1.0) * 100.0
}

/// The names of the tokenizers, and the samples by their kinds.
pub fn samples() -> (Vec<String>, Vec<Sample>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tokens");
    let table = std::fs::read_to_string(folder.join("counts.tsv")).unwrap();
    let mut rows = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let names = rows.next().unwrap()[2..].iter().map(ToString::to_string).collect();
    let samples = rows.map(|row| {
        let text = std::fs::read_to_string(folder.join(format!("{}.txt", row[0]))).unwrap();
        assert_eq!(text.len().to_string(), row[1], "{} is not the text that was counted", row[0]);
        let counts = row[2..].iter().map(|count| count.parse().unwrap()).collect();
        Sample { kind: row[0].to_owned(), text, counts }
    });
    (names, samples.collect())
}
