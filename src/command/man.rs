//! stub
use super::out::Out;
pub fn run(out: Out) -> u8 {
    out.finish(0)
}
