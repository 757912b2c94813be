//! Where a conversation may be cut: before words of the person or an answer, never between a call
//! and its result.

use crate::model::{Message, Role};

/// How much of the end stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// At most this many estimated tokens, but never less than the last answer with its results.
    Tokens(u64),
    /// As `Tokens`; and where all fits into them, about this many messages.
    TokensOrMessages(u64, usize),
    /// The last answer with its results, or the last prompt.
    Least,
}

/// The index of the first message that stays. `None`: nothing can be cut off. `costs` are those of
/// `messages`, the first `head` of which are the checkpoint before.
pub fn cut(messages: &[Message], costs: &[u64], head: usize, keep: Keep) -> Option<usize> {
    let is_place =
        |at: &usize| head < *at && messages.get(*at).is_some_and(|message| begins(message.role));
    let last = (0..messages.len()).rev().find(is_place)?;
    let all: u64 = costs.iter().skip(head).sum();
    match keep {
        Keep::Least => Some(last),
        Keep::Tokens(tokens) if all <= tokens => None,
        Keep::TokensOrMessages(tokens, count) if all <= tokens => {
            let first = messages.len().checked_sub(count).filter(|first| head < *first)?;
            (first..messages.len()).find(is_place)
        }
        Keep::Tokens(tokens) | Keep::TokensOrMessages(tokens, _) => {
            Some(within(messages, costs, head, tokens).unwrap_or(last))
        }
    }
}

fn begins(role: Role) -> bool {
    matches!(role, Role::User | Role::Assistant)
}

/// The first place from which no more than `tokens` follow. A prompt not far behind it is a
/// better one: half of `tokens` may go for that.
fn within(messages: &[Message], costs: &[u64], head: usize, tokens: u64) -> Option<usize> {
    let (mut kept, mut place, mut prompt) = (0_u64, None, None);
    for at in (head + 1..messages.len().min(costs.len())).rev() {
        kept = kept.saturating_add(costs[at]);
        if tokens < kept {
            break;
        }
        match messages[at].role {
            Role::User => (place, prompt) = (Some(at), Some((at, kept))),
            Role::Assistant => place = Some(at),
            Role::System | Role::Tool => {}
        }
    }
    match prompt {
        Some((at, kept)) if tokens / 2 <= kept => Some(at),
        _ => place,
    }
}
