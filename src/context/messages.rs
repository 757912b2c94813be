//! The messages of a conversation with what each costs, counted once and only when asked for.

use crate::context::tokens;
use crate::model::Message;

#[derive(Debug, Clone, Default)]
pub struct Messages {
    all: Vec<Message>,
    /// Estimated tokens of the first ones: the rest is not counted yet.
    costs: Vec<u64>,
    /// The sum of `costs`.
    total: u64,
}

impl Messages {
    pub fn all(&self) -> &[Message] {
        &self.all
    }

    pub fn push(&mut self, message: Message) {
        self.all.push(message);
    }

    pub fn insert(&mut self, at: usize, message: Message) {
        if at < self.costs.len() {
            let cost = tokens::of_message(&message);
            self.costs.insert(at, cost);
            self.total += cost;
        }
        self.all.insert(at, message);
    }

    /// Changes the message at `at`, if there is one.
    pub fn change(&mut self, at: usize, change: impl FnOnce(&mut Message)) {
        let Some(message) = self.all.get_mut(at) else { return };
        change(message);
        if let Some(cost) = self.costs.get_mut(at) {
            let now = tokens::of_message(message);
            self.total = self.total - std::mem::replace(cost, now) + now;
        }
    }

    /// Puts `head` in the place of the first `until` messages.
    pub fn replace_head(&mut self, until: usize, head: Vec<Message>) {
        if until <= self.costs.len() {
            self.costs.splice(..until, head.iter().map(tokens::of_message));
            self.total = self.costs.iter().sum();
        } else {
            (self.costs, self.total) = (Vec::new(), 0);
        }
        self.all.splice(..until, head);
    }

    /// Estimated tokens of each message.
    pub fn costs(&mut self) -> &[u64] {
        for message in &self.all[self.costs.len()..] {
            let cost = tokens::of_message(message);
            self.costs.push(cost);
            self.total += cost;
        }
        &self.costs
    }

    /// Their sum; what was counted before is not counted again.
    pub fn tokens(&mut self) -> u64 {
        self.costs();
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;

    #[test]
    fn the_sum_is_that_of_the_messages_whatever_was_done_and_whenever_it_is_asked_for() {
        let text = |words: usize| Message::text(Role::User, "word ".repeat(words));
        for asks in 0..16_u32 {
            let mut messages = Messages::default();
            let check = |messages: &mut Messages, step: u32| {
                if asks & (1 << step) != 0 {
                    let sum = tokens::of_messages(messages.all());
                    assert_eq!(messages.tokens(), sum, "asks {asks}, step {step}");
                }
            };
            (1..6).for_each(|words| messages.push(text(words)));
            check(&mut messages, 0);
            messages.insert(2, text(70));
            messages.insert(6, text(80));
            check(&mut messages, 1);
            messages.change(3, |message| *message = text(500));
            messages.change(99, |message| *message = text(500));
            check(&mut messages, 2);
            messages.replace_head(4, vec![text(9), text(10)]);
            check(&mut messages, 3);
            assert_eq!(messages.tokens(), tokens::of_messages(messages.all()));
            assert_eq!(messages.all().len(), 5);
        }
    }
}
