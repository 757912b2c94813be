//! How large a prompt may become: the window as it is known, and what is done at which size.
//!
//! Pure. Sizes are estimated tokens of the whole prompt: instructions, conversation, tools. From
//! the threshold on a conversation is folded or compacted; above the floor nothing is sent.

use crate::model::Window;

/// As configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `None`: where the window is known.
    pub auto_compact: Option<bool>,
    /// Set by the person; `None`: a share of the window.
    pub threshold_tokens: Option<u64>,
    pub threshold_percent: u64,
    pub keep_recent: u64,
    pub keep_messages: usize,
    pub reserve: u64,
    pub fold: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            auto_compact: None,
            threshold_tokens: None,
            threshold_percent: 80,
            keep_recent: 20_000,
            keep_messages: 12,
            reserve: 16_384,
            fold: true,
        }
    }
}

/// What holds for a run with one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub window: Option<Window>,
    /// The largest prompt that leaves room for an answer.
    pub prompt_max: Option<u64>,
    /// From here on something is done; `None`: nothing ever is.
    pub threshold: Option<u64>,
    /// More than this is not sent.
    pub floor: Option<u64>,
    /// How much of the latest conversation a compaction leaves as it is.
    pub keep_recent: u64,
    pub keep_messages: usize,
    /// Whether a compaction happens by itself. One for the sake of a server's refusal does so,
    /// too, unless the person said no.
    pub compacts: bool,
    pub compacts_on_overflow: bool,
    pub folds: bool,
}

/// Where the window is not known and compaction is asked for.
const UNKNOWN_WINDOW_THRESHOLD: u64 = 120_000;
/// The share of the largest prompt above which nothing is sent.
const FLOOR_PERCENT: u64 = 97;
/// Behind a compaction there must be room to go on: what is kept is at most this share of the
/// threshold.
const KEEP_SHARE: u64 = 3;

impl Budget {
    pub fn new(settings: &Settings, window: Option<Window>) -> Budget {
        let prompt_max = window.as_ref().map(|window| window.prompt_max(settings.reserve));
        let share = prompt_max.map(|max| percent(max, settings.threshold_percent));
        let asked = settings.auto_compact == Some(true);
        let otherwise = asked.then_some(UNKNOWN_WINDOW_THRESHOLD);
        let set = settings.threshold_tokens;
        let floor = prompt_max.map(|max| percent(max, FLOOR_PERCENT));
        let threshold = match (set, share) {
            (Some(set), Some(_)) => Some(set.min(floor.unwrap_or(set))),
            (set, share) => set.or(share).or(otherwise),
        };
        let compacts = match settings.auto_compact {
            Some(set) => set && threshold.is_some(),
            None => threshold.is_some(),
        };
        let room = threshold.map_or(settings.keep_recent, |threshold| threshold / KEEP_SHARE);
        Budget {
            prompt_max,
            threshold,
            floor,
            keep_recent: settings.keep_recent.min(room.max(1)),
            keep_messages: settings.keep_messages.max(1),
            compacts,
            compacts_on_overflow: settings.auto_compact != Some(false),
            folds: settings.fold && threshold.is_some(),
            window,
        }
    }

    /// Whether a prompt of this size is to be made smaller.
    pub fn is_full(&self, tokens: u64) -> bool {
        self.threshold.is_some_and(|threshold| threshold <= tokens)
    }

    /// Whether a prompt of this size may not be sent.
    pub fn is_over(&self, tokens: u64) -> bool {
        self.floor.is_some_and(|floor| floor < tokens)
    }
}

fn percent(of: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(percent) / 100).unwrap_or(of)
}
