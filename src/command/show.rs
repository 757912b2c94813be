//! stub
use super::parse::{Typed, Usage};
use crate::host::Host;
pub fn run(_typed: &Typed, _host: &Host) -> Result<u8, Usage> {
    Ok(super::not_built("show"))
}
