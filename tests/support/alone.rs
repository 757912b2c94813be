//! A test that counts what a whole process holds, in a process of its own.

use std::process::Command;

const MARK: &str = "ETCH_TEST_ALONE";

/// Runs `test` (its full name, as in the list of tests) again, alone in a new process, and fails
/// with its output if it fails. In that process it does nothing and returns true.
///
/// ```ignore
/// if !alone("process::x") { return; }
/// ```
pub fn alone(test: &str) -> bool {
    if is_alone() {
        return true;
    }
    let output = command(test).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{test}: {text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    print!("{text}");
    false
}

/// Whether this process was made for one test.
pub fn is_alone() -> bool {
    std::env::var_os(MARK).is_some()
}

/// What runs `test` alone, for a test that connects it itself.
pub fn command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(MARK, "1");
    command
}
