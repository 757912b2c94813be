//! A real run with a recorded model.

use super::exit;
use super::out::say;
use crate::host::Host;

pub fn run(_host: &Host) -> u8 {
    say("the demo is not part of this build");
    exit::FAILED
}
