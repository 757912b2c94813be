//! Arguments in, exit code out.

use std::process::ExitCode;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    etch::process::guard::main_if_asked();
    let words = std::env::args_os().skip(1).collect();
    let code = etch::command::main(words);
    etch::process::guard::stop();
    ExitCode::from(code)
}
