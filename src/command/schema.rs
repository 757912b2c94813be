//! stub
use super::out::Out;
pub fn run(_what: &str, out: Out) -> u8 {
    out.finish(0)
}
