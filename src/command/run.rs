//! One prompt from start to exit code: the headless face of a turn.

use super::args::RunArgs;
use super::exit;
use super::out::say;
use crate::host::Host;

pub fn run(_host: Host, _args: &RunArgs) -> u8 {
    say("a prompt is not part of this build");
    exit::FAILED
}
