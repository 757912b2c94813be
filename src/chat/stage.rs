//! The state of a chat: what keys do to it, what the session's thread tells it, what is on the
//! screen. Pure as far as it can be: what the world has to do is returned as [`Effect`]s.
//!
//! One prompt is worked on at a time. What is typed meanwhile waits in a queue: texts are given
//! to the running turn when it has room for them, commands wait for its end, and nothing passes
//! what stands before it. A turn that did not end well gives the queue back to the editor.

use std::collections::VecDeque;
use std::time::Duration;

use super::block::Notice;
use super::command::{self, Asked, COMMANDS};
use super::complete::{Completed, Completion, Paths};
use super::custom::Custom;
use super::editor::Editor;
use super::footer::Footer;
use super::key::{Input, Key, Mods, Press};
use super::list::Entry;
use super::live::{Frame, Size};
use super::picker::{Item, Picked, Picker};
use super::report;
use super::stream::{Kind, Stream};
use super::tally::Tally;
use super::told::Told;
use super::transcript::Transcript;
use super::worker::{Facts, Job, Said};
use super::working::Working;
use crate::agent::{Failure, Stop};
use crate::cancel::{Cancel, Reason};
use crate::context::project::CUT_OFF;
use crate::model::Metrics;
use crate::render::line;
use crate::render::style::Style;
use crate::session::{self, Way};
use crate::text;

/// Two Ctrl-C within this time leave.
const TWICE: Duration = Duration::from_secs(2);
/// Rows of the queue that are shown.
const QUEUE_ROWS_MAX: usize = 3;
/// Rows of a list to choose from.
const LIST_ROWS_MAX: usize = 10;
/// Messages that wait at most.
const QUEUE_MAX: usize = 64;
/// Lines of the last answer that a resumed session shows.
const RECAP_LINES_MAX: usize = 12;

/// What the world has to do.
pub enum Effect {
    Give(Job),
    /// With this exit code.
    Quit(u8),
    Suspend,
    /// The draft in a program of the person's own.
    EditDraft(String),
    Copy(String),
    /// There is something to choose from: show it with [`Stage::open_picker`].
    Choose,
    /// What is below the working directory, for [`Stage::set_paths`].
    ReadPaths,
    /// All of the screen anew.
    Redraw,
}

/// Waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Queued {
    Text(String),
    Command(String),
}

impl Queued {
    fn text(&self) -> &str {
        match self {
            Queued::Text(text) | Queued::Command(text) => text,
        }
    }
}

/// What there is to choose from.
struct Choices {
    choosing: Choosing,
    items: Vec<Item>,
}

/// What a choice is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choosing {
    Session,
    /// Of this session: where to go on from.
    Place(Way),
}

/// Ctrl-R: the history is searched.
struct Search {
    needle: String,
    /// The index of what is shown, and it.
    found: Option<(usize, String)>,
}

pub struct Stage {
    style: Style,
    size: Size,
    transcript: Transcript,
    editor: Editor,
    completion: Option<Completion>,
    /// Closed by the person for the word at hand.
    is_declined: bool,
    /// `None`: not asked for yet.
    paths: Option<Paths>,
    picker: Option<(Choosing, Picker)>,
    /// Told, not shown yet.
    choices: Option<Choices>,
    search: Option<Search>,
    queue: VecDeque<Queued>,
    working: Working,
    footer: Footer,
    custom: Vec<Custom>,
    /// The running turn.
    turn: Option<Cancel>,
    /// Jobs that are not done.
    jobs: usize,
    /// How the last turn ended well enough to go on by itself.
    went_well: bool,
    /// Output of the person's own commands, for the next prompt.
    attached: Vec<String>,
    session: Option<(String, bool)>,
    stopped_at: Option<Duration>,
    /// Ctrl-X was pressed.
    is_prefixed: bool,
    is_leaving: bool,
    exit_code: u8,
    failure: Option<Failure>,
}

impl Stage {
    pub fn new(size: Size, style: Style, footer: Footer, custom: Vec<Custom>) -> Stage {
        Stage {
            style,
            size,
            transcript: Transcript::new(size.columns, style),
            editor: Editor::default(),
            completion: None,
            is_declined: false,
            paths: None,
            picker: None,
            choices: None,
            search: None,
            queue: VecDeque::new(),
            working: Working::default(),
            footer,
            custom,
            turn: None,
            jobs: 0,
            went_well: true,
            attached: Vec::new(),
            session: None,
            stopped_at: None,
            is_prefixed: false,
            is_leaving: false,
            exit_code: 0,
            failure: None,
        }
    }

    /// Why the chat could not begin.
    pub fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// 0, or that of the last turn that did not end well.
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// The id of the session, and whether there is a file of it.
    pub fn session(&self) -> Option<(&str, bool)> {
        self.session.as_ref().map(|(id, is_kept)| (id.as_str(), *is_kept))
    }

    /// The last lines of a chat: how to come back to a session that there is a file of.
    pub fn farewell(&self) -> Vec<String> {
        let Some((id, true)) = self.session() else { return Vec::new() };
        let short = id.get(..8).unwrap_or(id);
        vec![format!("session: {id}"), format!("resume: etch resume {short}")]
    }

    pub fn is_busy(&self) -> bool {
        self.jobs > 0
    }

    /// Something on the screen changes by itself.
    pub fn is_moving(&self) -> bool {
        self.working.is_busy()
    }

    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.transcript.set_columns(size.columns);
    }

    /// Lines that are finished since the last call.
    pub fn take_lines(&mut self) -> Vec<String> {
        self.transcript.take()
    }

    pub fn notice(&mut self, kind: Notice, text: &str) {
        self.transcript.notice(kind, text);
    }

    /// Ends the turn that runs, if one does.
    pub fn cancel(&mut self, reason: Reason) {
        if let Some(turn) = &self.turn {
            turn.cancel(reason);
        }
    }

    // Keys.

    pub fn input(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        match input {
            Input::Press(press) => self.press(press, now),
            Input::Paste(text) => {
                self.stopped_at = None;
                match (&mut self.picker, &mut self.search) {
                    (Some((_, picker)), _) => picker.paste(&text),
                    (_, Some(search)) => {
                        search.needle.push_str(text.lines().next().unwrap_or_default());
                        self.find(usize::MAX);
                    }
                    _ => {
                        self.editor.paste(&text);
                        self.completion = None;
                    }
                }
                Vec::new()
            }
            Input::Ignored => Vec::new(),
        }
    }

    fn press(&mut self, press: Press, now: Duration) -> Vec<Effect> {
        if press != Press::ctrl('c') {
            self.stopped_at = None;
        }
        let is_prefixed = std::mem::take(&mut self.is_prefixed);
        if press == Press::ctrl('c') {
            return self.interrupt(now);
        }
        if let Some((choosing, picker)) = &mut self.picker {
            let (choosing, picked) = (*choosing, picker.press(press));
            return self.picked(choosing, picked);
        }
        if self.search.is_some() && self.press_search(press) {
            return Vec::new();
        }
        if self.press_completion(press) {
            return Vec::new();
        }
        let Press { key, mods } = press;
        match (key, mods) {
            (Key::Char('e'), Mods::CTRL) if is_prefixed => {
                return vec![Effect::EditDraft(self.editor.text())];
            }
            (Key::Char('u'), Mods::CTRL) if is_prefixed => drop(self.editor.undo()),
            (Key::Char('x'), Mods::CTRL) => self.is_prefixed = true,
            (Key::Enter, Mods::NONE) => return self.submit(now),
            (Key::Escape, Mods::NONE) => self.escape(),
            (Key::Char('d'), Mods::CTRL) if self.editor.is_empty() => return self.end_of_input(),
            (Key::Char('l'), Mods::CTRL) => return vec![Effect::Redraw],
            (Key::Char('z'), Mods::CTRL) => return vec![Effect::Suspend],
            (Key::Char('o'), Mods::CTRL) => self.show(0),
            (Key::Char('r'), Mods::CTRL) => {
                self.search = Some(Search { needle: String::new(), found: None });
            }
            (Key::Up, Mods::NONE) if self.editor.is_empty() && !self.queue.is_empty() => {
                self.take_back();
            }
            _ => {
                self.editor.press(press);
                return self.complete(press);
            }
        }
        self.completion = None;
        Vec::new()
    }

    // Completion.

    /// True: the key was the list's.
    fn press_completion(&mut self, press: Press) -> bool {
        let Some(completion) = &mut self.completion else { return false };
        match completion.press(press) {
            Completed::Ignored => return false,
            Completed::Moved => {}
            Completed::Take { bytes, with } => {
                self.editor.replace_before_cursor(bytes, &with);
                self.completion = None;
                if with.ends_with('/') {
                    // Into the folder.
                    drop(self.complete(Press::plain(Key::Tab)));
                }
            }
            Completed::Closed => {
                self.completion = None;
                self.is_declined = true;
            }
        }
        true
    }

    /// After a key that the editor took: is there something to complete now?
    fn complete(&mut self, press: Press) -> Vec<Effect> {
        let is_word_end = matches!(press.key, Key::Char(c) if c.is_whitespace());
        self.is_declined &= !(is_word_end || self.editor.is_empty());
        self.completion = None;
        if self.is_declined {
            return Vec::new();
        }
        let before = self.editor.before_cursor();
        let commands = COMMANDS.iter().map(|each| Entry { text: each.name, detail: each.about });
        let own = self.custom.iter().map(|own| Entry { text: &own.name, detail: &own.about });
        let entries: Vec<Entry<'_>> = commands.chain(own).collect();
        let none = Paths::default();
        let paths = self.paths.as_ref().unwrap_or(&none);
        self.completion = Completion::open(before, &entries, paths);
        if self.paths.is_none() && Completion::is_of_path(before) {
            self.paths = Some(none);
            return vec![Effect::ReadPaths];
        }
        Vec::new()
    }

    /// What there is to complete `@` with.
    pub fn set_paths(&mut self, paths: Paths) {
        self.paths = Some(paths);
        drop(self.complete(Press::plain(Key::Insert)));
    }

    /// Ctrl-C: the turn, then the draft, then the chat.
    pub fn interrupt(&mut self, now: Duration) -> Vec<Effect> {
        let is_second = self.stopped_at.is_some_and(|at| now.saturating_sub(at) < TWICE);
        self.stopped_at = Some(now);
        if is_second {
            return self.leave();
        }
        self.completion = None;
        if self.picker.take().is_some() || self.search.take().is_some() {
            return Vec::new();
        }
        if self.turn.is_some() {
            self.cancel(Reason::User);
        } else if !self.editor.is_empty() {
            self.editor.set("");
        } else {
            self.notice(Notice::Info, "Ctrl-C again leaves, as Ctrl-D does");
        }
        Vec::new()
    }

    fn escape(&mut self) {
        if self.turn.is_some() {
            self.cancel(Reason::User);
        } else if !self.attached.is_empty() && self.editor.is_empty() {
            self.attached.clear();
            self.notice(Notice::Info, "the output of your command is not sent along");
        } else {
            self.editor.set("");
        }
    }

    /// Ctrl-D: leaves, behind all that waits.
    fn end_of_input(&mut self) -> Vec<Effect> {
        if self.is_busy() {
            self.enqueue(Queued::Command("/exit".to_owned()));
            return Vec::new();
        }
        self.leave()
    }

    fn leave(&mut self) -> Vec<Effect> {
        self.is_leaving = true;
        self.cancel(Reason::User);
        vec![Effect::Quit(0)]
    }

    /// The last of what waits goes back into the editor.
    fn take_back(&mut self) {
        if let Some(queued) = self.queue.pop_back() {
            self.editor.set(queued.text());
        }
    }

    fn enqueue(&mut self, queued: Queued) {
        if self.queue.len() < QUEUE_MAX {
            self.queue.push_back(queued);
        } else {
            let kept = self.editor.text();
            self.editor.set(&[kept.as_str(), queued.text()].concat());
            self.notice(Notice::Warn, "too much waits already: nothing was added");
        }
    }

    // The search in the history.

    /// False: the search is over and the key means what it always means.
    fn press_search(&mut self, press: Press) -> bool {
        let Some(search) = &mut self.search else { return false };
        match (press.key, press.mods) {
            (Key::Char('r'), Mods::CTRL) => {
                let before = search.found.as_ref().map_or(usize::MAX, |(idx, _)| *idx);
                self.find(before);
            }
            (Key::Char(c), mods) if !mods.has(Mods::CTRL) && !mods.has(Mods::ALT) => {
                search.needle.push(c);
                self.find(usize::MAX);
            }
            (Key::Backspace, _) => {
                search.needle.pop();
                self.find(usize::MAX);
            }
            (Key::Escape, _) | (Key::Char('g'), Mods::CTRL) => self.search = None,
            (key, _) => {
                if let Some((_, text)) = self.search.take().and_then(|search| search.found) {
                    self.editor.set(&text);
                }
                // Enter takes what was found, so that it can be read before it is sent.
                return key == Key::Enter || key == Key::Tab;
            }
        }
        true
    }

    fn find(&mut self, before: usize) {
        let Some(search) = &mut self.search else { return };
        let found = self.editor.history().search(&search.needle, before);
        if let Some((idx, text)) = found {
            search.found = Some((idx, text.to_owned()));
        } else if before == usize::MAX {
            search.found = None;
        }
    }

    // What is submitted.

    fn submit(&mut self, now: Duration) -> Vec<Effect> {
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        self.completion = None;
        let text = self.editor.take();
        self.submit_text(text, now)
    }

    /// As typed and sent by Enter.
    pub fn submit_text(&mut self, text: String, now: Duration) -> Vec<Effect> {
        if self.is_busy() {
            let is_command = command::is_command(&text) || text.starts_with('!');
            let queued = if is_command { Queued::Command(text) } else { Queued::Text(text) };
            self.enqueue(queued);
            return Vec::new();
        }
        self.act(&text, now)
    }

    fn act(&mut self, text: &str, now: Duration) -> Vec<Effect> {
        if let Some(line) = text.strip_prefix('!').map(str::trim).filter(|line| !line.is_empty()) {
            self.transcript.prompt(text);
            return self.shell(line, now);
        }
        if command::is_command(text) {
            return self.command(text, now);
        }
        self.prompt(text, now)
    }

    fn prompt(&mut self, text: &str, now: Duration) -> Vec<Effect> {
        self.transcript.prompt(text);
        let mut prompt = text.to_owned();
        for output in self.attached.drain(..) {
            prompt.push_str("\n\n");
            prompt.push_str(&output);
        }
        let cancel = self.begin(now);
        vec![self.give(Job::Turn { prompt, cancel })]
    }

    fn shell(&mut self, line: &str, now: Duration) -> Vec<Effect> {
        let cancel = self.begin(now);
        vec![self.give(Job::Shell { line: line.to_owned(), cancel })]
    }

    fn begin(&mut self, now: Duration) -> Cancel {
        let cancel = Cancel::new();
        self.turn = Some(cancel.clone());
        self.working.begin(now);
        cancel
    }

    fn give(&mut self, job: Job) -> Effect {
        self.jobs += 1;
        Effect::Give(job)
    }

    fn command(&mut self, text: &str, now: Duration) -> Vec<Effect> {
        let names: Vec<String> = self.custom.iter().map(|custom| custom.name.clone()).collect();
        match command::parse(text, &names) {
            Err(message) => self.notice(Notice::Error, &message),
            Ok(Asked::Exit) => return self.leave(),
            Ok(Asked::Help) => self.help(),
            Ok(Asked::Show(number)) => self.show(number),
            Ok(Asked::Copy) => match self.transcript.last_answer() {
                "" => self.notice(Notice::Error, "there is no answer to copy yet"),
                answer => return vec![Effect::Copy(answer.to_owned())],
            },
            Ok(Asked::Custom { name, arguments }) => {
                let known = self.custom.iter().find(|custom| custom.name == name);
                match known.map(|custom| custom.prompt(&arguments)) {
                    Some(Ok(prompt)) => return self.prompt(&prompt, now),
                    Some(Err(message)) => self.notice(Notice::Error, &message),
                    None => {}
                }
            }
            Ok(Asked::Tool(words)) => {
                let cancel = self.begin(now);
                return vec![self.give(Job::Tool { words, cancel })];
            }
            Ok(Asked::Compact(focus)) => {
                let cancel = self.begin(now);
                self.working.compact(now);
                return vec![self.give(Job::Compact { focus, cancel })];
            }
            Ok(Asked::Question(question)) => return vec![self.give(Job::Ask(question))],
        }
        Vec::new()
    }

    fn help(&mut self) {
        let mut lines = report::commands(&self.custom);
        lines.extend(report::keys());
        self.report(&lines);
    }

    fn report(&mut self, lines: &[report::Line]) {
        let painted = report::paint(lines, self.size.columns, self.style);
        self.transcript.lines(painted);
    }

    fn show(&mut self, number: usize) {
        let number = if number == 0 { self.transcript.last_output() } else { number };
        match self.transcript.shown(number) {
            Some(shown) => {
                let lines = shown.lines(self.size.columns, self.style);
                self.transcript.lines(lines);
            }
            None if number == 0 => self.notice(Notice::Info, "no output was cut"),
            None => self.notice(Notice::Error, &format!("there is no output {number}")),
        }
    }

    fn picked(&mut self, choosing: Choosing, picked: Picked) -> Vec<Effect> {
        match picked {
            Picked::Open => Vec::new(),
            Picked::Closed => {
                self.picker = None;
                Vec::new()
            }
            Picked::Item(key) => {
                self.picker = None;
                vec![self.give(Job::Ask(choosing.question(key)))]
            }
        }
    }

    // What the session's thread tells.

    pub fn hear(&mut self, said: Said, now: Duration) -> Vec<Effect> {
        match said {
            Said::Told(told) => self.told(&told, now),
            Said::Steer(reply) => drop(reply.send(self.steer())),
            Said::Session(facts) => self.take_up(*facts),
            Said::Window(window) => self.footer.window = window,
            Said::Notice(text) => self.notice(Notice::Info, &text),
            Said::Failed(failure) => self.notice(Notice::Error, &failure.to_string()),
            Said::Hopeless(code, failure) => {
                self.failure = Some(failure);
                self.is_leaving = true;
                return vec![Effect::Quit(code)];
            }
            Said::Report(lines) => self.report(&lines),
            Said::Output { line, text } => self.output(&line, &text),
            Said::Sessions(rows) => return self.choose_session(&rows),
            Said::Places(way, places) => return self.choose_place(way, places),
            Said::Arrived(arrived) => self.arrive(*arrived),
            Said::Done => return self.done(now),
        }
        Vec::new()
    }

    fn told(&mut self, told: &Told, now: Duration) {
        if let Told::TurnEnded { outcome, .. } = told {
            self.went_well = matches!(outcome.stop, Stop::Final);
            // Keys mean what they mean without a turn as soon as its end is seen.
            self.turn = None;
            if !self.went_well {
                self.exit_code = outcome.stop.exit_code();
            }
        }
        self.transcript.tell(told, now);
        self.working.tell(told, now);
        self.footer.tell(told);
    }

    /// The texts at the head of the queue; a command there lets nothing pass.
    fn steer(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(Queued::Text(_)) = self.queue.front() {
            if let Some(Queued::Text(text)) = self.queue.pop_front() {
                self.transcript.prompt(&text);
                texts.push(text);
            }
        }
        texts
    }

    fn take_up(&mut self, facts: Facts) {
        let is_other = self.session.as_ref().is_none_or(|(id, _)| *id != facts.id);
        let was_none = self.session.is_none();
        self.footer.model.clone_from(&facts.model);
        self.footer.effort.clone_from(&facts.effort);
        self.footer.window = facts.window;
        self.footer.auth = (facts.auth != "none").then(|| facts.auth.clone());
        if is_other {
            self.footer.tally = Tally::of(facts.counters.usage, metrics(&facts.counters));
            self.editor.history().seed(&facts.prompts);
            self.recap(&facts, was_none);
        }
        self.session = Some((facts.id, facts.is_kept));
    }

    /// Where a person is after a session was taken up.
    fn recap(&mut self, facts: &Facts, is_first: bool) {
        let short = facts.id.get(..8).unwrap_or(&facts.id);
        match &facts.last {
            Some((prompt, answer)) => {
                let count = text::plural(facts.prompts.len() as u64, "prompt");
                self.notice(Notice::Info, &format!("session {short}, {count} so far; the last:"));
                self.transcript.prompt(prompt);
                self.recap_answer(answer);
            }
            None if is_first => {}
            None => self.notice(Notice::Info, &format!("a new session, {short}")),
        }
    }

    /// The end of an answer as it looked when it was given.
    fn recap_answer(&mut self, answer: &str) {
        let partial = answer.strip_suffix(CUT_OFF);
        let mut stream = Stream::new(Kind::Text, self.size.columns, self.style);
        let mut lines = stream.push(partial.unwrap_or(answer).trim_end());
        lines.extend(stream.finish());
        let from = lines.len().saturating_sub(RECAP_LINES_MAX);
        if 0 < from {
            drop(lines.splice(..from, [self.style.dim("• …")]));
        }
        self.transcript.lines(lines);
        if partial.is_some() {
            self.notice(Notice::Warn, "the answer above is incomplete");
        }
    }

    /// What a command of the person's own gave out.
    fn output(&mut self, line: &str, text: &str) {
        self.report(&report::plain(text));
        self.attached.push(format!("Output of the command `{line}`:\n\n{text}"));
        self.notice(Notice::Info, "this goes along with your next prompt; Esc drops it");
        self.went_well = true;
    }

    fn choose_session(&mut self, rows: &[session::Row]) -> Vec<Effect> {
        let open = self.session.as_ref().map(|(id, _)| id.as_str());
        let others = rows.iter().rev().filter(|row| Some(row.id.as_str()) != open);
        let items: Vec<Item> = others
            .map(|row| Item {
                key: row.id.clone(),
                text: row.label().to_owned(),
                detail: format!("{} {}", row.short_id(), row.minute()),
            })
            .collect();
        if items.is_empty() {
            self.notice(Notice::Info, "this project has no other session");
            return Vec::new();
        }
        self.choices = Some(Choices { choosing: Choosing::Session, items });
        vec![Effect::Choose]
    }

    pub fn open_picker(&mut self) {
        let picker = |Choices { choosing, items }| (choosing, Picker::new(choosing.title(), items));
        self.picker = self.choices.take().map(picker);
    }

    /// A job is over: on with what waits.
    fn done(&mut self, now: Duration) -> Vec<Effect> {
        self.jobs = self.jobs.saturating_sub(1);
        if self.jobs > 0 || self.is_leaving {
            return Vec::new();
        }
        let was_stopped = self.turn.take().is_some_and(|turn| turn.is_cancelled());
        self.working.end();
        if was_stopped || !self.went_well {
            self.went_well = true;
            self.give_back();
            return Vec::new();
        }
        if self.picker.is_some() {
            // It was not typed for what is chosen now.
            self.give_back();
            return Vec::new();
        }
        let mut effects = Vec::new();
        while self.jobs == 0 && !self.is_leaving {
            let texts = self.leading_texts();
            if !texts.is_empty() {
                effects.extend(self.prompt(&texts.join("\n\n"), now));
            } else if let Some(queued) = self.queue.pop_front() {
                effects.extend(self.act(queued.text(), now));
            } else {
                break;
            }
        }
        effects
    }

    fn leading_texts(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(Queued::Text(text)) = self.queue.front() {
            texts.push(text.clone());
            self.queue.pop_front();
        }
        texts
    }

    /// What waited behind a turn that did not end well is the person's to decide on.
    fn give_back(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        let mut texts: Vec<String> =
            self.queue.drain(..).map(|each| each.text().to_owned()).collect();
        let draft = self.editor.text();
        texts.extend(Some(draft).filter(|draft| !draft.trim().is_empty()));
        self.editor.set(&texts.join("\n"));
        self.notice(Notice::Info, "what waited is in the editor again: it was not sent");
    }

    // What is on the screen.

    /// The live region, no higher than the screen less a row.
    pub fn frame(&mut self, now: Duration) -> Frame {
        let Size { columns, rows } = self.size;
        let rows_max = rows.saturating_sub(1).max(1);
        let is_low = rows_max < 5;
        let footer = (!is_low).then(|| self.footer.line(columns, self.style));
        let mut above: Vec<String> = Vec::new();
        if let Some(line) = self.working.line(now, columns, self.style) {
            above.push(line);
        }
        above.extend(self.queue_rows(columns));
        let room = rows_max.saturating_sub(above.len() + usize::from(footer.is_some()));
        let (rows, cursor) = self.input_view(columns, room.clamp(1, rows_max.div_ceil(2).max(3)));
        let used = rows.len() + above.len() + usize::from(footer.is_some());
        let left = rows_max.saturating_sub(used + 1);
        let mut all = self.transcript.tail(now, left);
        // A blank line stands between what is said and what is being done about it.
        if used < rows_max {
            all.push(String::new());
        }
        all.extend(above);
        let cut = (all.len() + rows.len() + usize::from(footer.is_some())).saturating_sub(rows_max);
        all.drain(..cut.min(all.len()));
        let cursor = (cursor.0 + all.len(), cursor.1);
        all.extend(rows);
        all.extend(footer);
        Frame { rows: all, cursor }
    }

    fn queue_rows(&self, columns: usize) -> Vec<String> {
        let from = self.queue.len().saturating_sub(QUEUE_ROWS_MAX);
        let shown = self.queue.iter().skip(from).map(|queued| {
            let first = queued.text().lines().next().unwrap_or_default();
            self.style.dim(&line::fit(&format!("  waits: {first}"), columns))
        });
        shown.collect()
    }

    fn input_view(&mut self, columns: usize, rows_max: usize) -> (Vec<String>, (usize, usize)) {
        if let Some((_, picker)) = &self.picker {
            let view = picker.view(columns, LIST_ROWS_MAX.min(rows_max), self.style);
            return (view.rows, view.cursor);
        }
        if let Some(search) = &self.search {
            let found = search.found.as_ref().map_or("", |(_, text)| text.as_str());
            let head = line::fit(&format!("search {}", search.needle), columns);
            let at = text::width(&head).min(columns.saturating_sub(1));
            let first = found.lines().next().unwrap_or_default();
            let row = line::fit(&format!("{head}: {first}"), columns);
            return (vec![row], (0, at));
        }
        let view = self.editor.view(columns, rows_max, "› ", self.style);
        let mut rows = view.rows;
        if let Some(completion) = &self.completion {
            let left = rows_max.saturating_sub(rows.len()).min(LIST_ROWS_MAX);
            rows.extend(completion.view(columns, left, self.style));
        }
        (rows, view.cursor)
    }

    /// The editor's draft, changed elsewhere.
    pub fn set_draft(&mut self, text: &str) {
        self.editor.set(text);
    }
}

fn metrics(counters: &session::Counters) -> Metrics {
    Metrics {
        requests: counters.requests,
        request_bytes: counters.request_bytes,
        response_bytes: counters.response_bytes,
        ..Metrics::default()
    }
}

mod places;
#[cfg(test)]
mod tests;
