//! What a command that etch starts gets of etch's own environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::host::Host;

/// Variables of this prefix steer etch; a command is not to be steered by them.
const OWN_PREFIX: &[u8] = b"ETCH_";

/// The host's variables without etch's own and without `secrets`, unless `keep` names them; then
/// those of `set`, whatever the above says.
pub fn environment(
    host: &Host,
    secrets: &[String],
    keep: &[String],
    set: &[(String, String)],
) -> BTreeMap<OsString, OsString> {
    let names = |list: &[String], name: &OsStr| list.iter().any(|item| name == item.as_str());
    let is_withheld = |name: &OsStr| {
        name.as_encoded_bytes().starts_with(OWN_PREFIX)
            || (names(secrets, name) && !names(keep, name))
    };
    let inherited = host.vars().filter(|(name, _)| !is_withheld(name));
    let mut env: BTreeMap<OsString, OsString> =
        inherited.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    env.extend(set.iter().map(|(name, value)| (name.into(), value.into())));
    env
}
