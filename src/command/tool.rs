//! stub
use super::args::ToolArgs;
use super::parse::Usage;
use crate::host::Host;
pub fn run(_args: &ToolArgs, _host: &Host) -> Result<u8, Usage> {
    Ok(super::not_built("tool"))
}
