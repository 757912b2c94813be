//! What an exit code means and what to do about it.

use super::exit::{self, EXITS, Exit};
use super::help::wrap;
use super::out::Out;
use super::parse::Usage;

pub fn run(code: Option<&str>, mut out: Out) -> Result<u8, Usage> {
    match code {
        None => {
            for exit in EXITS {
                out.line(&format!("{:>3}  {:<11}  {}", exit.code, exit.name, exit.meaning));
            }
        }
        Some(text) => match exit::find(text) {
            Some(exit) => {
                out.text(&explanation(exit));
            }
            None => return Err(unknown(text)),
        },
    }
    Ok(out.finish(exit::OK))
}

fn explanation(exit: &Exit) -> String {
    let head = format!("{} ({}): {}", exit.code, exit.name, exit.meaning);
    let (head, advice) = (wrap(&head, 0, 78), wrap(exit.advice, 0, 78));
    format!("{head}\nstop: {}\n\n{advice}\n", exit.stop)
}

fn unknown(text: &str) -> Usage {
    let advice = match text.parse::<u16>() {
        Ok(code @ 129..=192) => format!("a program that signal {} ended", code - 128),
        _ => "none of etch's own".to_owned(),
    };
    Usage(format!("exit code '{text}' is {advice}; 'etch explain' lists etch's codes"))
}
