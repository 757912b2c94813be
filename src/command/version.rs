//! Which etch this is.

use super::exit;
use super::out::Out;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `etch 0.1.0`.
pub fn text(mut out: Out) -> u8 {
    out.line(concat!("etch ", env!("CARGO_PKG_VERSION")));
    out.finish(exit::OK)
}

pub fn run(json: bool, mut out: Out) -> u8 {
    if !json {
        return text(out);
    }
    let value = serde_json::json!({
        "name": env!("CARGO_PKG_NAME"),
        "version": VERSION,
        "target": target(),
        "static": cfg!(target_feature = "crt-static"),
        "debug": cfg!(debug_assertions),
        "license": env!("CARGO_PKG_LICENSE"),
        "logVersion": 1,
    });
    out.line(&value.to_string());
    out.finish(exit::OK)
}

/// As the toolchain names it, from what the compiler says of it: `x86_64-linux-musl`.
fn target() -> String {
    let env = if cfg!(target_env = "musl") {
        "-musl"
    } else if cfg!(target_env = "gnu") {
        "-gnu"
    } else {
        ""
    };
    format!("{}-{}{env}", std::env::consts::ARCH, std::env::consts::OS)
}
