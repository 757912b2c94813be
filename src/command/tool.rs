//! stub
use super::args::ToolArgs;
use super::parse::Usage;
use crate::host::Host;
/// The built-in tools, sorted.
pub const NAMES: &[&str] = &["bash", "edit", "find", "grep", "ls", "read", "write"];

pub fn run(_args: &ToolArgs, _host: &Host) -> Result<u8, Usage> {
    Ok(super::not_built("tool"))
}
