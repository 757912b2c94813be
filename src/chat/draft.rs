//! The draft in a program of the person's own: `$VISUAL`, `$EDITOR`, else `vi`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use crate::host::Host;

/// A longer draft is not read back.
const DRAFT_BYTES_MAX: u64 = 8 << 20;

/// Waits until the program has ended; it has the terminal meanwhile. What it left in the file
/// becomes the draft. Fails with a line for the person, and the draft stays as it was.
pub fn edit(host: &Host, text: &str) -> Result<String, String> {
    let path = host.temp_dir().join(format!("etch-draft-{}.md", host.new_id()));
    let edited = write(&path, text).and_then(|()| ask(host, &path));
    // It may never have been there.
    drop(fs::remove_file(&path));
    edited
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn ask(host: &Host, path: &Path) -> Result<String, String> {
    let set = |name: &str| host.var(name).filter(|value| !value.trim().is_empty());
    let program = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or("vi");
    // By a shell: the variable may hold arguments.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("exec {program} \"$1\"")).arg("etch").arg(path);
    let status = command.current_dir(host.cwd()).status();
    match status {
        Err(error) => return Err(format!("cannot run {program}: {error}")),
        Ok(status) if !status.success() => {
            return Err(format!("{program} ended with {status}: the draft is as it was"));
        }
        Ok(_) => {}
    }
    let size = fs::metadata(path).map(|metadata| metadata.len());
    if size.is_ok_and(|size| size > DRAFT_BYTES_MAX) {
        return Err(format!(
            "the draft is larger than {} MiB now: it is as it was",
            DRAFT_BYTES_MAX >> 20
        ));
    }
    let text = fs::read(path).map_err(|error| format!("cannot read the draft back: {error}"))?;
    let text =
        String::from_utf8(text).map_err(|_| "the draft is not UTF-8 now: it is as it was")?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}
