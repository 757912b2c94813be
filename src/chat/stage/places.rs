//! Places of the session to go on from: chosen from a list, and what the stage is there.

use super::{Choices, Choosing, Effect, Stage, metrics};
use crate::chat::block::Notice;
use crate::chat::picker::Item;
use crate::chat::places::{Arrived, Place, Which};
use crate::chat::report::Line;
use crate::chat::tally::Tally;
use crate::chat::worker::Question;
use crate::session::Way;

impl Choosing {
    /// What a chosen key asks for.
    pub(super) fn question(self, key: String) -> Question {
        match self {
            Choosing::Session => Question::Resume(Some(key)),
            Choosing::Place(way) => Question::Go(way, Which::Key(key)),
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Choosing::Session => "resume",
            Choosing::Place(Way::Rewind) => "back before",
            Choosing::Place(Way::Fork) => "on from the end of",
        }
    }
}

impl Stage {
    pub(super) fn choose_place(&mut self, way: Way, places: Vec<Place>) -> Vec<Effect> {
        let item = |place: Place| Item { key: place.key, text: place.text, detail: place.detail };
        let items = places.into_iter().map(item).collect();
        self.choices = Some(Choices { choosing: Choosing::Place(way), items });
        vec![Effect::Choose]
    }

    /// What there is to choose from, where keys choose nothing: by numbers.
    pub fn list_choices(&mut self) {
        let Some(Choices { choosing, items }) = self.choices.take() else { return };
        let usage = match choosing {
            Choosing::Session => {
                let text = "say which: /sessions lists them, /resume ID takes one";
                return self.notice(Notice::Info, text);
            }
            Choosing::Place(Way::Rewind) => "/rewind N goes back before the prompt N",
            Choosing::Place(Way::Fork) => "/fork N goes on from the end of N",
        };
        let mut lines = vec![Line::Title(choosing.title().to_owned())];
        lines.extend(items.iter().enumerate().map(|(idx, item)| {
            let text = format!("{:3}  {}  {}", idx + 1, item.text, item.detail);
            Line::Text(text.trim_end().to_owned())
        }));
        lines.push(Line::Text(usage.to_owned()));
        self.report(&lines);
    }

    /// The conversation goes on from another place: so do the sums, the history and what can be
    /// shown and copied again.
    pub(super) fn arrive(&mut self, arrived: Arrived) {
        let Arrived { way, facts, calls, prompt, notices } = arrived;
        self.footer.tally = Tally::of(facts.counters.usage, metrics(&facts.counters));
        self.editor.history().put_last(&facts.prompts);
        let answer = facts.last.as_ref().map_or("", |(_, answer)| answer.as_str());
        self.transcript.go_to(answer, calls);
        for (kind, text) in notices {
            self.notice(kind, &text);
        }
        if let (Way::Fork, Some((prompt, answer))) = (way, &facts.last) {
            self.transcript.prompt(prompt);
            self.recap_answer(answer);
        }
        self.session = Some((facts.id, facts.is_kept));
        if let Some(mut text) = prompt {
            let draft = self.editor.text();
            if !draft.trim().is_empty() {
                text = format!("{text}\n{draft}");
            }
            self.editor.set(&text);
        }
    }
}
