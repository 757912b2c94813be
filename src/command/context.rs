//! `etch context`: what a model sees of a session, by layers. No model is needed and nobody is
//! asked.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use super::args::ContextArgs;
use super::exit;
use super::out::{Out, say};
use crate::chat::report as lines;
use crate::context::project::Projection;
use crate::context::report::{self, Sight};
use crate::harness::{self, View};
use crate::host::Host;
use crate::render::style::Style;
use crate::session::{self, Error, Row};

/// Prints it and returns the exit code.
pub fn run(host: Host, args: &ContextArgs) -> u8 {
    let host = Arc::new(host);
    let looked = look(&host, args);
    looked.unwrap_or_else(|error| {
        say(&error.failure().to_string());
        error.exit_code()
    })
}

fn look(host: &Arc<Host>, args: &ContextArgs) -> Result<u8, harness::Error> {
    let loaded = harness::load(host, &args.overrides)?;
    let view = View::new(host, &loaded)?;
    loaded.warnings.iter().chain(&view.instructions.warnings).for_each(|warning| say(warning));
    let mut projection = Projection::new();
    let row = find(&harness::store(host, &loaded), host, args)?;
    if let Some(row) = &row {
        let replayed = session::replay(&row.path, &mut projection)?;
        replayed.notices.iter().for_each(|notice| say(notice));
        projection.settle();
    }
    let budget = view.budget(&projection);
    let sight = Sight {
        layers: &view.instructions.layers,
        skills: &view.instructions.skills,
        tools: &view.tools,
        projection: &projection,
        session_id: row.as_ref().map(|row| row.id.as_str()),
        model: &view.model,
        budget: &budget,
    };
    Ok(print(host, args, &sight))
}

/// The session that was named, else the newest; none at all is no mistake.
fn find(store: &session::Store, host: &Host, args: &ContextArgs) -> Result<Option<Row>, Error> {
    match &args.session {
        Some(wanted) => store.find(wanted).map(Some),
        None => match store.list()?.is_empty() {
            true => Ok(None),
            false => store.latest(host).map(Some),
        },
    }
}

fn print(host: &Host, args: &ContextArgs, sight: &Sight<'_>) -> u8 {
    let mut out = Out::stdout();
    match &args.dump {
        Some(path) if path.as_os_str().is_empty() => {
            out.foreign(&report::dump(sight));
        }
        Some(path) => match lines::dump(host, &report::dump(sight), Some(path)) {
            Ok(_) => {}
            Err(message) => {
                say(&message);
                return exit::USAGE;
            }
        },
        None if args.json => {
            let sizes = report::report(sight);
            out.json(&serde_json::to_string(&sizes).unwrap_or_default());
            out.text("\n");
        }
        None => {
            let sizes = report::report(sight);
            let on_terminal = io::stdout().is_terminal();
            let style = Style::decide(args.color.into(), host, on_terminal);
            let shown = lines::context(&sizes, sight.skills);
            for line in lines::paint(&shown, usize::MAX, style) {
                out.line(&line);
            }
        }
    }
    out.finish(exit::OK)
}
