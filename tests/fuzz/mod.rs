//! Mutated inputs against everything that reads bytes from outside.
//!
//! In the suite each target runs a few thousand inputs from a fixed seed. For a long run:
//! `ETCH_FUZZ_SECONDS=600 cargo test --test scenarios fuzz::toml`, which takes a new seed each
//! time and prints it when it fails; `ETCH_FUZZ_SEED=N` repeats such a run.
//!
//! A new target is a file here with one test that calls [`fuzz`]. It panics on what is wrong and
//! returns what kind of outcome it saw: an input with an outcome of a new kind is mutated further.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::random::Random;

mod answers;
mod clean;
mod diff;
mod edit;
mod log;
mod render;
mod responses;
mod sse;
mod toml;
mod transcript;
mod websocket;

const ITERATIONS: u64 = 3_000;
const INPUT_BYTES_MAX: usize = 1 << 13;
const CORPUS_MAX: usize = 4_096;

/// Far more than any input of this size may take, even on a busy machine.
const INPUT_TIME_MAX: Duration = Duration::from_secs(10);

/// Feeds `target` with mutations of `seeds`; `tokens` are pieces that the format gives meaning to.
pub fn fuzz<K: Hash>(
    name: &str,
    seeds: impl IntoIterator<Item = Vec<u8>>,
    tokens: &[&str],
    target: impl Fn(&[u8]) -> K,
) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let long_run = number("ETCH_FUZZ_SECONDS").map(Duration::from_secs);
    let fresh = || Instant::now().hash_to(DefaultHasher::new()) ^ u64::from(std::process::id());
    let seed = number("ETCH_FUZZ_SEED").or(long_run.map(|_| fresh())).unwrap_or(1).max(1);
    let mut mutator = Mutator { random: Random(seed), tokens };
    let mut corpus: Vec<Vec<u8>> = seeds.into_iter().collect();
    let seed_count = corpus.len() as u64;
    let mut kinds = HashSet::new();
    let start = Instant::now();
    let mut count = 0;
    while long_run.map_or(count < ITERATIONS, |limit| start.elapsed() < limit) {
        // The seeds themselves come first.
        let input = match count < seed_count {
            true => corpus[count as usize].clone(),
            false => mutator.mutate(&corpus),
        };
        count += 1;
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
        let took = began.elapsed();
        let shown = || format!("{name}: seed {seed}, input {count}: b\"{}\"", input.escape_ascii());
        match outcome {
            Err(panic) => {
                eprintln!("{}", shown());
                resume_unwind(panic);
            }
            Ok(_) if INPUT_TIME_MAX < took => panic!("took {took:?}: {}", shown()),
            Ok(kind) => {
                if kinds.insert(kind.hash_to(DefaultHasher::new())) && corpus.len() < CORPUS_MAX {
                    corpus.push(input);
                }
            }
        }
    }
    if long_run.is_some() {
        eprintln!("{name}: seed {seed}: {count} inputs, {} kinds of outcome", kinds.len());
    }
}

/// Every recorded answer of a server in a folder of `fixtures`.
pub fn recorded_streams(folder: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder);
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "sse"));
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Some ways of cutting the same bytes: every byte alone, two halves, and pieces of many lengths.
pub fn cuts(bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut random = Random(bytes.hash_to(DefaultHasher::new()).max(1));
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let longest = if random.below(4) == 0 { 200 } else { 5 };
        let (piece, others) = rest.split_at((1 + random.below(longest)).min(rest.len()));
        pieces.push(piece);
        rest = others;
    }
    let (one, two) = bytes.split_at(random.below(bytes.len() + 1));
    vec![bytes.chunks(1).collect(), vec![one, two], pieces]
}

trait HashTo: Hash {
    fn hash_to(&self, mut hasher: DefaultHasher) -> u64 {
        self.hash(&mut hasher);
        hasher.finish()
    }
}

impl<T: Hash + ?Sized> HashTo for T {}

struct Mutator<'a> {
    random: Random,
    tokens: &'a [&'a str],
}

impl Mutator<'_> {
    fn mutate(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = corpus.get(self.random.below(corpus.len())).cloned().unwrap_or_default();
        for _ in 0..=self.random.below(6) {
            self.mutate_once(&mut input, corpus);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn mutate_once(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.random.below(input.len() + 1);
        let length_max = self.random_length(input.len());
        let length = self.random.below(1 + length_max);
        let end = (at + length).min(input.len());
        match self.random.below(9) {
            0 => input[at..end].iter_mut().for_each(|byte| *byte ^= 1 << (at % 8)),
            1 => input.insert(at, self.random.below(256) as u8),
            2 => drop(input.drain(at..end)),
            3 => {
                let piece = input[at..end].to_vec();
                let target = self.random.below(input.len() + 1);
                input.splice(target..target, piece);
            }
            4 => {
                let piece = input[at..end].repeat(1 + self.random.below(40));
                input.splice(at..at, piece);
            }
            5 => input.truncate(at),
            6 => {
                let other = &corpus[self.random.below(corpus.len())];
                let from = self.random.below(other.len() + 1);
                input.splice(at..end, other[from..].iter().copied());
            }
            _ if self.tokens.is_empty() => {}
            _ => {
                let token = self.tokens[self.random.below(self.tokens.len())];
                input.splice(at..at, token.bytes());
            }
        }
        input.truncate(2 * INPUT_BYTES_MAX);
    }

    /// Short pieces mostly, long ones now and then.
    fn random_length(&mut self, length: usize) -> usize {
        match self.random.below(4) {
            0 => length,
            1 => length.min(64),
            _ => length.min(6),
        }
    }
}
