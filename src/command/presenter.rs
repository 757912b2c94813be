//! The observer of a run for people: turns events into what a [`Screen`] shows.
//!
//! Where a status line is kept going a thread owns the screen; else the turn's thread writes.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, select, tick};

use super::screen::{Screen, Show};
use crate::agent::{Event, Observer};
use crate::cancel::Cancel;
use crate::model::{ModelEvent, ResultStatus};
use crate::render::call::{call_subject, result_summary};

/// How often the status line's clock is looked at.
const TICK: Duration = Duration::from_millis(250);
/// A full queue makes the turn wait: the person's terminal is slower than the model.
const QUEUE: usize = 256;
/// A terminal may have less room; then the screen cuts further.
const SUBJECT_COLUMNS_MAX: usize = 120;
const SUMMARY_COLUMNS_MAX: usize = 100;

pub struct Presenter {
    target: Target,
    cancel: Cancel,
    /// What a model says stands somewhere before its answer is whole.
    shows_pieces: bool,
}

enum Target {
    /// No clock to keep: the turn's thread writes itself.
    Direct(Box<Screen>),
    Thread {
        sender: Sender<Show>,
        thread: JoinHandle<Option<Screen>>,
    },
}

impl Presenter {
    /// `cancel` is told when stdout goes away.
    pub fn start(screen: Screen, cancel: &Cancel) -> Presenter {
        let (cancel, look) = (cancel.clone(), screen.look());
        let shows_pieces = look.stream || look.err_terminal || 0 < look.verbose;
        if !look.live {
            let target = Target::Direct(Box::new(screen));
            return Presenter { target, cancel, shows_pieces };
        }
        let (sender, shows) = bounded(QUEUE);
        let (hand_over, take_over) = bounded::<Screen>(1);
        let token = cancel.clone();
        let work = move || take_over.recv().ok().map(|screen| run_screen(screen, &shows, &token));
        // Without a thread the run goes on all the same; only the clock stands still.
        let thread = thread::Builder::new().name("screen".to_owned()).spawn(work);
        let target = match thread {
            Ok(thread) => {
                // The thread waits for it.
                drop(hand_over.send(screen));
                Target::Thread { sender, thread }
            }
            Err(_) => Target::Direct(Box::new(screen)),
        };
        Presenter { target, cancel, shows_pieces }
    }

    fn show(&mut self, show: Show) {
        match &mut self.target {
            Target::Direct(screen) => {
                let shown = screen.show(&show);
                screen.note(shown, &self.cancel);
            }
            Target::Thread { sender, .. } => drop(sender.send(show)),
        }
    }

    /// Waits for what is still to be shown and gives the screen back, closed.
    pub fn finish(self) -> Option<Screen> {
        let mut screen = match self.target {
            Target::Direct(screen) => *screen,
            Target::Thread { sender, thread } => {
                drop(sender);
                thread.join().ok()??
            }
        };
        let closed = screen.close();
        screen.note(closed, &self.cancel);
        Some(screen)
    }
}

/// Ends when the sender is dropped.
fn run_screen(mut screen: Screen, shows: &Receiver<Show>, cancel: &Cancel) -> Screen {
    let clock = tick(TICK);
    loop {
        select! {
            recv(shows) -> show => match show {
                Ok(show) => {
                    let shown = screen.show(&show);
                    screen.note(shown, cancel);
                }
                Err(_) => return screen,
            },
            recv(clock) -> _ => screen.tick(TICK),
        }
    }
}

impl Observer for Presenter {
    fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Logged { .. } => {}
            Event::RoundStarted { .. } => self.show(Show::Status("working")),
            Event::Model(event) => self.observe_model(event),
            Event::ToolStarted { .. } => {
                self.show(Show::ToolStarted);
                self.show(Show::Status("running tools"));
            }
            Event::ToolFinished { call, end } => {
                let failed = end.output.status != ResultStatus::Ok;
                self.show(Show::ToolFinished {
                    name: call.name.clone(),
                    subject: call_subject(&call.name, &call.arguments, SUBJECT_COLUMNS_MAX),
                    summary: result_summary(
                        &call.name,
                        &end.output.text,
                        failed,
                        SUMMARY_COLUMNS_MAX,
                    ),
                    failed,
                    text: end.output.text.clone(),
                });
            }
            Event::CompactionStarted { .. } => self.show(Show::Status("compacting")),
            Event::CompactionEnded(Ok(compacted)) => {
                self.show(Show::Notice(compacted.to_string()));
            }
            Event::CompactionEnded(Err(reason)) => self.show(Show::Notice(reason.to_string())),
            Event::Notice(message) => self.show(Show::Notice(message.to_owned())),
        }
    }
}

impl Presenter {
    fn observe_model(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::TextStart => self.show(Show::Status("responding")),
            ModelEvent::TextDelta(delta) => self.show(Show::Text(delta.clone())),
            ModelEvent::TextEnd => self.show(Show::TextEnd),
            ModelEvent::ReasoningStart => self.show(Show::Status("thinking")),
            ModelEvent::ReasoningDelta(delta) => self.show(Show::Reasoning(delta.clone())),
            ModelEvent::ReasoningEnd(_) => self.show(Show::ReasoningEnd),
            ModelEvent::Retry(retry) => {
                let is_void = retry.output_discarded && self.shows_pieces;
                let void = if is_void { " (the text above is void)" } else { "" };
                let message = format!("{retry}{void}");
                self.show(Show::Discard(message));
                self.show(Show::Status("waiting to try again"));
            }
            ModelEvent::Notice(message) => self.show(Show::Notice(message.clone())),
            ModelEvent::TextIs(_)
            | ModelEvent::ToolCallStart { .. }
            | ModelEvent::ToolCallDelta { .. }
            | ModelEvent::ToolCallEnd { .. }
            | ModelEvent::Usage(_)
            | ModelEvent::Response { .. }
            | ModelEvent::ProviderItem(_)
            | ModelEvent::Metrics(_) => {}
        }
    }
}
