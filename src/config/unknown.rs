//! What somebody may have meant by a key that does not exist.

use std::collections::BTreeSet;

use crate::config::Key;
use crate::config::error::nearest;
use crate::config::tables::TABLES;

/// The whole message for an unknown `name`: `table.key`, `table` or a lone `key`.
pub(crate) fn message(name: &str, is_table: bool, keys: &[Key]) -> String {
    let what =
        if is_table { format!("unknown table [{name}]") } else { format!("unknown key '{name}'") };
    format!("{what}; {}", hint(name, is_table, keys))
}

fn hint(name: &str, is_table: bool, keys: &[Key]) -> String {
    let mut tables: BTreeSet<&str> = keys.iter().map(Key::table).collect();
    tables.extend(TABLES.iter().map(|table| table.name));
    let list = |names: Vec<&str>| names.join(", ");
    if is_table {
        return match nearest(name, tables.iter().copied()) {
            Some(near) => format!("did you mean [{near}]?"),
            None => format!("the tables are {}", list(tables.into_iter().collect())),
        };
    }
    let (table, leaf) = name.rsplit_once('.').unwrap_or(("", name));
    if ["api_key", "apikey", "key", "token", "secret"].contains(&leaf) {
        return "credentials are not kept in configuration: set OPENAI_API_KEY, or use --api-key"
            .to_owned();
    }
    let homes: Vec<&str> = keys.iter().filter(|key| key.leaf() == leaf).map(Key::table).collect();
    if !homes.is_empty() {
        let homes: Vec<String> = homes.iter().map(|home| format!("[{home}]")).collect();
        return format!("'{leaf}' belongs in {}", homes.join(" or "));
    }
    let siblings: Vec<&str> =
        keys.iter().filter(|key| key.table() == table).map(Key::leaf).collect();
    if let Some(near) = nearest(leaf, siblings.iter().copied()) {
        return format!("did you mean '{table}.{near}'?");
    }
    if let Some(near) = nearest(leaf, keys.iter().map(Key::leaf)) {
        let homes = keys.iter().filter(|key| key.leaf() == near).map(|key| key.name);
        let homes: Vec<String> = homes.map(|home| format!("'{home}'")).collect();
        return format!("did you mean {}?", homes.join(" or "));
    }
    if siblings.is_empty() {
        return format!("the tables are {}", list(tables.into_iter().collect()));
    }
    format!("[{table}] has {}", list(siblings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::KEYS;

    #[test]
    fn an_unknown_name_is_answered_with_what_was_probably_meant() {
        let check = |name: &str, is_table: bool, want: &str| {
            assert_eq!(message(name, is_table, KEYS), want);
        };
        check("session.dri", false, "unknown key 'session.dri'; did you mean 'session.dir'?");
        check(
            "session.max_rounds",
            false,
            "unknown key 'session.max_rounds'; [session] has dir, max_tool_rounds, keep_messages",
        );
        check(
            "context.keep_messages",
            false,
            "unknown key 'context.keep_messages'; 'keep_messages' belongs in [session]",
        );
        check(
            "system_prompt",
            false,
            "unknown key 'system_prompt'; 'system_prompt' belongs in [prompt]",
        );
        check(
            "auto_compct",
            false,
            "unknown key 'auto_compct'; did you mean 'context.auto_compact'?",
        );
        check("sesion", true, "unknown table [sesion]; did you mean [session]?");
        check("hook", true, "unknown table [hook]; did you mean [hooks]?");
        check(
            "mcp_servers",
            true,
            "unknown table [mcp_servers]; the tables are bash, context, hooks, paths, plugins, \
             prompt, session, subagents, subagents.profile, tools",
        );
        check(
            "openai.api_key",
            false,
            "unknown key 'openai.api_key'; credentials are not kept in configuration: set \
             OPENAI_API_KEY, or use --api-key",
        );
    }
}
