//! Exit codes: what each number means and what to do about it, in one table.
//!
//! `etch explain CODE`, the man page and the README are made from or checked against this table.
//! Zero means a final answer; no cut stream, empty answer or reached limit ever ends with it.

pub const OK: u8 = 0;
pub const FAILED: u8 = 1;
pub const USAGE: u8 = 2;
pub const CONFIG: u8 = 3;
pub const DENIED: u8 = 4;
pub const LIMIT: u8 = 5;
pub const OUTPUT: u8 = 6;
pub const VERIFY: u8 = 7;
pub const NETWORK: u8 = 8;
pub const SESSION: u8 = 9;
pub const INTERNAL: u8 = 70;
pub const TIMEOUT: u8 = 124;
pub const HANGUP: u8 = 129;
pub const INTERRUPT: u8 = 130;
pub const OUTPUT_GONE: u8 = 141;
pub const TERMINATE: u8 = 143;

/// One exit code.
pub struct Exit {
    pub code: u8,
    /// A name for scripts and people, as `etch explain` accepts it.
    pub name: &'static str,
    pub meaning: &'static str,
    /// What `stop` says in the `run.result` line.
    pub stop: &'static str,
    /// What the person can do next.
    pub advice: &'static str,
}

/// Every code that etch ends with, ascending.
pub const EXITS: &[Exit] = &[
    Exit {
        code: OK,
        name: "ok",
        meaning: "the model gave its final answer and every requested check held",
        stop: "final",
        advice: "Nothing to do.",
    },
    Exit {
        code: FAILED,
        name: "failed",
        meaning: "the model or the protocol failed after retries, or the answer was empty, \
                  refused or cut off, or a hook failed; for a command other than a prompt: the operation failed",
        stop: "error, refused, truncated",
        advice: "Read the message on standard error: it names the server's own words. The \
                 lines before it tell of each attempt. A quota that is used up, or a conversation that is \
                 too long for the model, does not get better by waiting: change the plan or the \
                 model, or start a new session. The session is kept: 'etch -p --continue' goes on \
                 from it.",
    },
    Exit {
        code: USAGE,
        name: "usage",
        meaning: "wrong usage: an unknown command or flag, a bad value, a missing input file, or \
                  no prompt",
        stop: "error",
        advice: "Read the one line on standard error; 'etch help COMMAND' lists what a command \
                 takes. Nothing was sent and nothing was changed.",
    },
    Exit {
        code: CONFIG,
        name: "config",
        meaning: "bad configuration, no provider, or a key that is missing or was rejected",
        stop: "error",
        advice: "'etch config check' names the file, the line and the key; 'etch config show \
                 --origin' says where each value comes from. Set OPENAI_API_KEY (or the variable \
                 that the message names) for a hosted server; a local server needs no key.",
    },
    Exit {
        code: DENIED,
        name: "denied",
        meaning: "a hook blocked the prompt, or a tool call that the run needed was denied or \
                  blocked and the model could not finish without it",
        stop: "denied",
        advice: "The 'deniedCalls' of the result line name each call. Allow the tool (--tools), \
                 allow reading outside the directory (--read-outside), or change the task.",
    },
    Exit {
        code: LIMIT,
        name: "limit",
        meaning: "a limit ended the run: tool rounds, tokens, cost, or the same call five times \
                  with the same result",
        stop: "limit",
        advice: "The session is whole: 'etch -p --continue \"go on\"' continues it with a fresh \
                 budget. Raise the limit with --max-tool-rounds where the task is that long.",
    },
    Exit {
        code: OUTPUT,
        name: "output",
        meaning: "the answer does not fit the requested schema or form",
        stop: "output",
        advice: "Look at the answer in the result line; simplify the schema or ask again.",
    },
    Exit {
        code: VERIFY,
        name: "verify",
        meaning: "the verify command still fails",
        stop: "verify",
        advice: "Run the command by hand, then continue the session with what it says.",
    },
    Exit {
        code: NETWORK,
        name: "network",
        meaning: "the host could not be reached, or the offline rule refused it",
        stop: "network",
        advice: "Check the URL in the message (etch config show --origin says who set it), that \
                 the server runs, and HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE.",
    },
    Exit {
        code: SESSION,
        name: "session",
        meaning: "the session is missing, ambiguous, held by another process, damaged, or cannot \
                  be written",
        stop: "error",
        advice: "'etch sessions' lists what there is; type more of the id. A session that another \
                 process writes can be copied with --fork. When the disk is full or read-only, \
                 name another place with --session-dir, or run with --no-session.",
    },
    Exit {
        code: INTERNAL,
        name: "internal",
        meaning: "etch itself failed: a bug",
        stop: "error",
        advice: "Please report the message with 'etch --version --json'. The session holds \
                 everything up to the failure: 'etch show' prints it, --continue goes on from it.",
    },
    Exit {
        code: TIMEOUT,
        name: "timeout",
        meaning: "the time limit of the whole run was reached",
        stop: "timeout",
        advice: "Raise --timeout, or continue the session: it was closed properly.",
    },
    Exit {
        code: HANGUP,
        name: "hangup",
        meaning: "SIGHUP: the terminal went away",
        stop: "cancelled",
        advice: "The session was closed properly: 'etch -p --continue' goes on from it. Start with \
                 nohup or in a terminal multiplexer to outlive the terminal.",
    },
    Exit {
        code: INTERRUPT,
        name: "interrupt",
        meaning: "SIGINT: Ctrl-C, or sent from outside",
        stop: "cancelled",
        advice: "The session was closed properly: 'etch -p --continue' goes on from it.",
    },
    Exit {
        code: OUTPUT_GONE,
        name: "output_gone",
        meaning: "the reader of standard output went away during a run",
        stop: "cancelled",
        advice: "The run was ended and its tools with it; the session is kept. Commands that only \
                 print text (show, sessions, help) end with 0 instead.",
    },
    Exit {
        code: TERMINATE,
        name: "terminate",
        meaning: "SIGTERM",
        stop: "cancelled",
        advice: "The session was closed properly: 'etch -p --continue' goes on from it.",
    },
];

/// Finds a code by its number or its name.
pub fn find(text: &str) -> Option<&'static Exit> {
    let number = text.parse::<u8>().ok();
    EXITS.iter().find(|exit| Some(exit.code) == number || exit.name == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_are_found_by_number_and_name() {
        assert!(EXITS.windows(2).all(|pair| pair[0].code < pair[1].code));
        for exit in EXITS {
            assert_eq!(find(exit.name).map(|found| found.code), Some(exit.code));
            assert_eq!(find(&exit.code.to_string()).map(|found| found.name), Some(exit.name));
        }
        assert!(find("3000").is_none() && find("").is_none());
    }
}
