//! The instructions of a run: the base prompt, what the person and the project add, the skills.
//!
//! The same tree and settings give the same bytes, in every round and every run: no clock, no
//! ids, sorted listings. Instruction files are loaded whole or not at all and each is headed by
//! a line that names its path.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::config::{Loaded, keys};
use crate::context::files::{Found, Surroundings};
use crate::context::skills::{self, Skill};
use crate::host::Host;
use crate::model::{Message, Role};
use crate::text;
use crate::workspace;

/// A larger file is no instruction but an accident.
const FILE_BYTES_MAX: usize = 1024 * 1024;

/// What every run begins with.
pub const BASE: &str = "\
You are etch, a coding agent that works in the user's project through tools.

- Instructions from AGENTS.md files below are binding. Where they disagree, the more local file \
wins; the user's own message wins over all of them.
- Look before you change: find and grep locate, ls lists, read shows. Use them rather than shell \
commands for files, and read what you need in few, large calls; independent calls go together in \
one answer.
- Change existing files with edit, in small exact replacements. Use write for new files. Use bash \
to build, test, and for what no other tool does.
- Make the smallest change that does the task fully, in the style of the code around it. Leave \
unrelated code alone.
- Verify: run the relevant tests or commands. Never claim that something works, or was changed, \
unless a tool result shows it; say plainly what you could not verify.
- End with a short answer: what you did, how it was verified, what is left.";

/// One part of the instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// For people: `base prompt`, `AGENTS.md`, …
    pub name: &'static str,
    pub path: Option<PathBuf>,
    /// As the model gets it, with its heading.
    pub text: String,
}

#[derive(Debug, Clone, Default)]
pub struct Instructions {
    pub layers: Vec<Layer>,
    pub skills: Vec<Skill>,
    /// Whole lines for stderr, without a prefix.
    pub warnings: Vec<String>,
}

impl Instructions {
    /// All layers, separated by blank lines.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.layers.iter().map(|layer| layer.text.as_str()).collect();
        texts.join("\n\n")
    }

    /// One system message.
    pub fn to_messages(&self) -> Vec<Message> {
        vec![Message::text(Role::System, self.text())]
    }

    /// The folders of the skills: what the model is told to read there it must be able to read.
    pub fn readable(&self) -> Vec<PathBuf> {
        let folders = self.skills.iter().filter_map(|skill| skill.path.parent());
        folders.filter_map(|folder| folder.canonicalize().ok()).collect()
    }

    fn add_file(&mut self, name: &'static str, path: &Path, text: &str) {
        let text = text.trim_end();
        if !text.trim_start().is_empty() {
            let text = format!("Contents of {}:\n\n{text}", path.display());
            self.layers.push(Layer { name, path: Some(path.to_owned()), text });
        }
    }
}

/// Reads everything. `shell` is what the bash tool runs commands with. A file that cannot be used
/// is a warning.
pub fn load(host: &Host, loaded: &Loaded, shell: Option<&str>) -> Instructions {
    let config = &loaded.config;
    let read_outside = config.flag(&keys::PATHS_READ_OUTSIDE);
    let around = Surroundings::new(host, loaded.project.as_deref(), read_outside);
    let mut all = Instructions::default();
    let plain = |name, text: String| Layer { name, path: None, text };
    all.layers.push(plain("base prompt", BASE.to_owned()));
    all.layers.push(plain("environment", environment(&around, loaded.project.as_deref(), shell)));
    if let Some(text) = config.text(&keys::PROMPT_SYSTEM_PROMPT).map(str::trim)
        && !text.is_empty()
    {
        all.layers.push(plain("configured prompt", text.to_owned()));
    }
    if let Some(path) = config.path(&keys::PROMPT_SYSTEM_PROMPT_FILE) {
        // Where it may lie was decided when the configuration was loaded.
        match read_configured(path) {
            Ok(text) => all.add_file("configured prompt", path, &text),
            Err(warning) => all.warnings.push(warning),
        }
    }
    let mut seen = BTreeSet::new();
    let in_tree = |name: &'static str| {
        let paths = around.directories.iter().map(move |directory| directory.join(name));
        paths.map(move |path| (name, path))
    };
    let own = around.home.iter().map(|home| ("AGENTS.md", home.join(".etch/AGENTS.md")));
    let files: Vec<_> = in_tree("SYSTEM.md").chain(own).chain(in_tree("AGENTS.md")).collect();
    for (name, path) in files {
        match around.read(&path, FILE_BYTES_MAX) {
            Found::Text(text) => {
                // One file under two names (a link) is said once.
                if seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
                    all.add_file(name, &path, &text);
                }
            }
            Found::Missing => {}
            Found::Refused(reason) => all.warnings.push(reason),
        }
    }
    let (skills, warnings) = skills::discover(&around);
    all.warnings.extend(warnings);
    if !skills.is_empty() {
        all.layers.push(plain("skills", catalogue(&skills)));
    }
    all.skills = skills;
    for warning in &mut all.warnings {
        // Names of files are whatever a repository made them.
        *warning = text::visible(warning).replace('\n', "\\n");
    }
    all
}

/// The file of `prompt.system_prompt_file`, which was there when the configuration was loaded.
fn read_configured(path: &Path) -> Result<String, String> {
    let refused = |reason: String| format!("{}: {reason}; it is left out", path.display());
    let (file, _) = workspace::open_regular(path).map_err(|reason| refused(reason.0))?;
    let mut text = String::new();
    match file.take(FILE_BYTES_MAX as u64 + 1).read_to_string(&mut text) {
        Ok(len) if len > FILE_BYTES_MAX => {
            Err(refused(format!("larger than {} KiB", FILE_BYTES_MAX / 1024)))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(refused(workspace::reason(&error))),
    }
}

/// One line of facts that stay the same for as long as the tree stands where it stands.
fn environment(around: &Surroundings, project: Option<&Path>, shell: Option<&str>) -> String {
    let cwd = around.directories.last().map_or(Path::new("/"), PathBuf::as_path);
    let mut facts = vec![format!("Working directory: {}", cwd.display())];
    if let Some(project) = project.filter(|project| *project != cwd) {
        facts.push(format!("project root: {}", project.display()));
    }
    facts.push(format!("platform: {} {}", std::env::consts::OS, std::env::consts::ARCH));
    if let Some(shell) = shell {
        facts.push(format!("shell: {shell}"));
    }
    facts.join("; ")
}

fn catalogue(skills: &[Skill]) -> String {
    let mut text = String::from(
        "Skills: instructions for special tasks. When one fits, read its file first and follow it.",
    );
    for skill in skills {
        text.push_str(&format!(
            "\n- {}: {} ({})",
            skill.name,
            skill.description,
            skill.path.display()
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_prompt_stays_short() {
        assert!(BASE.len() <= 1100, "{} bytes", BASE.len());
        assert!(!BASE.contains("  ") && BASE.is_ascii());
    }
}
