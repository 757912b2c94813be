//! Assembly: from settings to a ready agent; the only module that names every part.

use crate::config::{self, Key};

/// Every key of the configuration: the one table by which files are parsed, shown and described.
pub fn keys() -> Vec<Key> {
    config::keys::KEYS.to_vec()
}
