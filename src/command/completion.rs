//! stub
use super::out::Out;
pub fn run(_shell: &str, out: Out) -> u8 {
    out.finish(0)
}
