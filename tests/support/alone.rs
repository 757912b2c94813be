//! A test that counts what a whole process holds, in a process of its own.

use std::process::Command;

/// Runs `test` (its full name, as in the list of tests) again, alone in a new process, and fails
/// with its output if it fails. In that process it does nothing and returns true.
///
/// ```ignore
/// if !alone("process::x") { return; }
/// ```
pub fn alone(test: &str) -> bool {
    const MARK: &str = "ETCH_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{test}: {text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    print!("{text}");
    false
}
