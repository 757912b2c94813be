//! `/rewind` and `/fork`: the places that a conversation can go on from, and going there.
//!
//! Places have numbers, as the list shows them: of `/rewind` how many prompts back, of `/fork`
//! what was left first, the latest first, then the turns of the conversation.

use std::collections::HashSet;

use super::block::Notice;
use super::worker::{Facts, facts};
use crate::agent::{Conversation, Failure};
use crate::harness::{self, Harness, Moved};
use crate::host::{Host, Timestamp};
use crate::session::{self, Points, Way, title_of};
use crate::text::plural;

/// File names that a notice has.
const NAMES_MAX: usize = 8;

/// Which place is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The person chooses from a list.
    Any,
    /// By its number, from 1.
    Number(usize),
    /// By its key in the list.
    Key(String),
}

/// One place of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Tells it from the others of the list.
    pub key: String,
    /// What was said there, on one line.
    pub text: String,
    pub detail: String,
    /// The event to go on from; `None` where there is none.
    target: Option<String>,
    /// What was said there, to be said anew.
    prompt: Option<String>,
}

#[cfg(test)]
impl Place {
    pub fn new(key: &str, text: &str, detail: &str) -> Place {
        let (key, text, detail) = (key.to_owned(), text.to_owned(), detail.to_owned());
        Place { key, text, detail, target: None, prompt: None }
    }
}

/// The conversation somewhere else.
pub struct Arrived {
    pub way: Way,
    pub facts: Facts,
    /// The calls that belong to the conversation, by their ids.
    pub calls: HashSet<String>,
    /// For the draft.
    pub prompt: Option<String>,
    pub notices: Vec<(Notice, String)>,
}

/// What came of it.
pub enum Found {
    Choose(Vec<Place>),
    Arrived(Box<Arrived>),
}

/// Answers `/rewind` or `/fork`. What goes wrong changes nothing.
pub fn go(
    host: &Host,
    harness: &Harness,
    conversation: &mut Conversation,
    way: Way,
    which: &Which,
) -> Result<Found, Failure> {
    let failed = |error: session::Error| harness::Error::from(error).failure();
    let refused = |message: &str| Failure::new("session", message);
    let points = harness::points(conversation).map_err(failed)?;
    let mut places = list(way, points, host.now());
    if places.is_empty() {
        let is_unkept = conversation.log.path().is_none();
        return Err(match way {
            _ if is_unkept && conversation.log.tip().is_some() => failed(session::Error::NotKept),
            Way::Rewind => refused("there is no prompt to go back to yet"),
            Way::Fork => refused("there is no other place to go on from yet"),
        });
    }
    let count = places.len();
    let at = match which {
        Which::Any => return Ok(Found::Choose(places)),
        Which::Number(number) => number.checked_sub(1),
        Which::Key(key) => places.iter().position(|place| place.key == *key),
    };
    let Some(place) = at.filter(|at| *at < count).map(|at| places.swap_remove(at)) else {
        let known = if count == 1 { "1".to_owned() } else { format!("1 to {count}") };
        return Err(refused(&match way {
            Way::Rewind => format!("/rewind takes {known} here: how many prompts to go back"),
            Way::Fork => format!("/fork takes {known} here: a number of its list"),
        }));
    };
    let Some(target) = &place.target else {
        return Err(refused("nothing stands before this prompt; /new begins a new session"));
    };
    let moved = harness.go_to(conversation, way, target).map_err(failed)?;
    let messages = conversation.projection.messages().iter();
    Ok(Found::Arrived(Box::new(Arrived {
        way,
        facts: facts(harness, conversation),
        calls: messages.flat_map(|message| message.calls()).map(|call| call.id.clone()).collect(),
        notices: notices(way, &place, &moved),
        prompt: place.prompt,
    })))
}

/// The places of a list, in the order of their numbers.
fn list(way: Way, points: Points, now: Timestamp) -> Vec<Place> {
    let Points { prompts, left } = points;
    if way == Way::Rewind {
        let place = |prompt: session::Prompt| Place {
            text: title_of(&prompt.text),
            detail: clock(&prompt.time, now),
            key: prompt.id,
            target: prompt.before,
            prompt: Some(prompt.text),
        };
        return prompts.into_iter().rev().map(place).collect();
    }
    let left = left.into_iter().rev().map(|left| Place {
        key: left.id.clone(),
        text: left.prompt,
        detail: format!("left {}", clock(&left.time, now)).trim_end().to_owned(),
        target: Some(left.id),
        prompt: None,
    });
    // The last turn ends where the conversation is.
    let turns = prompts.windows(2).rev().filter_map(|pair| {
        let end = pair[1].before.clone()?;
        Some(Place {
            key: end.clone(),
            text: title_of(&pair[0].text),
            detail: format!("after this, {}", clock(&pair[0].time, now)),
            target: Some(end),
            prompt: None,
        })
    });
    left.chain(turns).collect()
}

/// Hour and minute (UTC), before them the day where it is another one.
fn clock(time: &str, now: Timestamp) -> String {
    let Some(time) = Timestamp::parse(time).map(Timestamp::to_rfc3339) else {
        return String::new();
    };
    let (day, minute) = (time.get(..10).unwrap_or_default(), time.get(11..16).unwrap_or_default());
    if now.to_rfc3339().starts_with(day) { minute.to_owned() } else { format!("{day} {minute}") }
}

fn notices(way: Way, place: &Place, moved: &Moved) -> Vec<(Notice, String)> {
    let text = &place.text;
    let mut said = match way {
        Way::Rewind => format!("back before '{text}'"),
        Way::Fork => format!("on from the end of '{text}'"),
    };
    if 0 < moved.prompts_left {
        let (count, are, them) = match moved.prompts_left {
            1 => ("1 prompt".to_owned(), "is", "it"),
            count => (plural(count as u64, "prompt"), "are", "them"),
        };
        said.push_str(&format!("; {count} {are} left behind, /fork 1 goes on from {them} again"));
    }
    let mut notices = vec![(Notice::Info, said)];
    if !moved.changed.is_empty() {
        let names = moved.changed.iter().take(NAMES_MAX).map(String::as_str);
        let mut names = names.collect::<Vec<_>>().join(", ");
        if NAMES_MAX < moved.changed.len() {
            names.push_str(&format!(" and {} more", moved.changed.len() - NAMES_MAX));
        }
        let text = format!("files stay as they are now: what was left behind changed {names}");
        notices.push((Notice::Warn, text));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Left, Prompt};

    fn points() -> Points {
        let prompt = |id: &str, before: Option<&str>, text: &str, time: &str| Prompt {
            id: id.to_owned(),
            before: before.map(str::to_owned),
            text: text.to_owned(),
            time: time.to_owned(),
        };
        let left = |id: &str, prompt: &str, time: &str| Left {
            id: id.to_owned(),
            prompt: prompt.to_owned(),
            time: time.to_owned(),
        };
        Points {
            prompts: vec![
                prompt("u1", None, "one\nof two lines", "2025-12-31T23:59:58Z"),
                prompt("u2", Some("a1"), "two", "2026-01-01T12:03:00.5Z"),
                prompt("u3", Some("a2"), "three", ""),
            ],
            left: vec![
                left("b1", "left first", "2026-01-01T00:01:00Z"),
                left("b2", "left last", "no time"),
            ],
        }
    }

    fn shown(way: Way) -> Vec<String> {
        let now = Timestamp::parse("2026-01-01T13:00:00Z").unwrap();
        let places = list(way, points(), now).into_iter();
        let target = |place: &Place| place.target.clone().unwrap_or_else(|| "nowhere".to_owned());
        places
            .map(|place| {
                let prompt = place.prompt.as_deref().map(|prompt| format!(" {prompt:?}"));
                let to = target(&place);
                let (text, detail) = (place.text, place.detail);
                format!("{}: {text} ({detail}) to {to}{}", place.key, prompt.unwrap_or_default())
            })
            .collect()
    }

    #[test]
    fn rewinds_are_prompts_the_newest_first() {
        assert_eq!(
            shown(Way::Rewind),
            [
                "u3: three () to a2 \"three\"",
                "u2: two (12:03) to a1 \"two\"",
                "u1: one of two lines (2025-12-31 23:59) to nowhere \"one\\nof two lines\"",
            ]
        );
    }

    #[test]
    fn forks_are_what_was_left_last_and_then_the_turns_before_this_place() {
        assert_eq!(
            shown(Way::Fork),
            [
                "b2: left last (left) to b2",
                "b1: left first (left 00:01) to b1",
                "a2: two (after this, 12:03) to a2",
                "a1: one of two lines (after this, 2025-12-31 23:59) to a1",
            ]
        );
    }

    #[test]
    fn it_is_said_what_was_left_and_that_files_are_not_changed_back() {
        let place = Place::new("", "fix it", "");
        let changed = |count: usize| (1..=count).map(|at| format!("f{at}")).collect::<Vec<_>>();
        let check = |way, prompts_left, files, want: &[&str]| {
            let moved = Moved { prompts_left, changed: changed(files) };
            let got = notices(way, &place, &moved).into_iter().map(|(_, text)| text);
            assert_eq!(got.collect::<Vec<_>>(), want);
        };
        let one = "back before 'fix it'; 1 prompt is left behind, /fork 1 goes on from it again";
        check(Way::Rewind, 1, 0, &[one]);
        let two = "on from the end of 'fix it'; 2 prompts are left behind, /fork 1 goes on from \
                   them again";
        let files = "files stay as they are now: what was left behind changed f1, f2";
        check(Way::Fork, 2, 2, &[two, files]);
        let many = "files stay as they are now: what was left behind changed f1, f2, f3, f4, f5, \
                    f6, f7, f8 and 2 more";
        check(Way::Fork, 0, 10, &["on from the end of 'fix it'", many]);
    }
}
