//! The one decision before every call: a pure function of what the call needs and what the
//! person allowed.
//!
//! A tool says what a call needs and never asks; the turn asks here and nowhere else. Later
//! permission modes are further fields of [`Limits`] and further arms of [`decide`].

use std::path::{Path, PathBuf};

use crate::tool::{Need, Plan};

/// What the person allowed for this run.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// The only tools that may run; `None`: every tool.
    pub tools: Option<&'a [String]>,
    /// The working tree: absolute, symlinks resolved.
    pub root: &'a Path,
    pub read_outside: bool,
    /// Folders outside that may be read all the same: those that the instructions themselves
    /// name, such as skills. Absolute, symlinks resolved.
    pub readable: &'a [PathBuf],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// Why, for the model and the log: what was refused and what the person could do.
    Deny(String),
}

/// Whether a call of `tool` that needs what `plan` says may run.
pub fn decide(tool: &str, plan: &Plan, limits: &Limits<'_>) -> Decision {
    if !is_offered(tool, limits) {
        return Decision::Deny(format!("the tool '{tool}' is not among the tools of this run"));
    }
    for need in &plan.needs {
        match need {
            Need::Read(path) if !may_read(path, limits) => {
                return Decision::Deny(format!(
                    "{} is outside the working directory; reading there needs --read-outside",
                    path.display()
                ));
            }
            Need::Write(path) if !path.starts_with(limits.root) => {
                return Decision::Deny(format!(
                    "{} is outside the working directory; nothing is written there",
                    path.display()
                ));
            }
            Need::Read(_) | Need::Write(_) | Need::Shell(_) => {}
        }
    }
    Decision::Allow
}

fn may_read(path: &Path, limits: &Limits<'_>) -> bool {
    limits.read_outside
        || path.starts_with(limits.root)
        || limits.readable.iter().any(|folder| path.starts_with(folder))
}

/// Whether the model is told of `tool` at all.
pub fn is_offered(tool: &str, limits: &Limits<'_>) -> bool {
    limits.tools.is_none_or(|tools| tools.iter().any(|name| name == tool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Overlap;

    #[test]
    fn a_call_runs_only_within_what_the_person_allowed() {
        let skills = [PathBuf::from("/home/u/.etch/skills/lint")];
        let reads = ["read".to_owned(), "grep".to_owned()];
        let all =
            Limits { tools: None, root: Path::new("/w"), read_outside: false, readable: &skills };
        let some = Limits { tools: Some(&reads), ..all };
        let wide = Limits { read_outside: true, ..all };
        let none = Limits { tools: Some(&[]), ..all };
        let path = |path: &str| PathBuf::from(path);
        let not_offered =
            |tool: &str| format!("the tool '{tool}' is not among the tools of this run");
        let no_read =
            "/etc/passwd is outside the working directory; reading there needs --read-outside";
        let no_write = "/etc/x is outside the working directory; nothing is written there";
        let cases: &[(&str, Vec<Need>, &Limits<'_>, Option<String>)] = &[
            ("read", vec![Need::Read(path("/w/a"))], &all, None),
            ("read", vec![Need::Read(path("/w"))], &some, None),
            (
                "read",
                vec![Need::Read(path("/w/a")), Need::Read(path("/etc/passwd"))],
                &all,
                Some(no_read.into()),
            ),
            (
                "read",
                vec![Need::Read(path("/wide/a"))],
                &all,
                Some(
                    "/wide/a is outside the working directory; reading there needs --read-outside"
                        .into(),
                ),
            ),
            ("read", vec![Need::Read(path("/etc/passwd"))], &wide, None),
            ("read", vec![Need::Read(path("/home/u/.etch/skills/lint/SKILL.md"))], &all, None),
            ("write", vec![Need::Write(path("/home/u/.etch/skills/lint/SKILL.md"))], &all, Some("/home/u/.etch/skills/lint/SKILL.md is outside the working directory; nothing is written there".into())),
            ("write", vec![Need::Write(path("/w/a"))], &all, None),
            ("write", vec![Need::Write(path("/etc/x"))], &wide, Some(no_write.into())),
            ("write", vec![Need::Write(path("/w/a"))], &some, Some(not_offered("write"))),
            ("bash", vec![Need::Shell("ls".into())], &all, None),
            ("bash", vec![Need::Shell("ls".into())], &some, Some(not_offered("bash"))),
            ("read", vec![], &none, Some(not_offered("read"))),
            ("clock", vec![], &all, None),
        ];
        for (tool, needs, limits, denied) in cases {
            let plan = Plan { overlap: Overlap::Serial, lane: None, needs: needs.clone() };
            let want = denied.clone().map_or(Decision::Allow, Decision::Deny);
            assert_eq!(decide(tool, &plan, limits), want, "{tool} {needs:?}");
        }
    }
}
