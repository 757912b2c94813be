//! Text as users and models meet it: cuts that respect UTF-8, width on a terminal, cleaning.
//!
//! Everything here is a pure function of its input, linear in it, and borrows where nothing
//! changes. It knows no terminal, no file and no locale.

mod bytes;
mod clean;
mod cut;
mod measure;
mod tokens;
mod width;

pub use bytes::{decode_lossy, escape_name, looks_binary, unescape_name};
pub use clean::{strip_ansi, visible, visible_json, visible_line};
pub use cut::{ceil_char, elided, floor_char, head_tail};
pub use measure::{human_bytes, human_count, plural};
pub use tokens::estimate_tokens;
pub use width::{
    Clusters, ceil_cluster, cluster_width, clusters, fit_width, last_cluster, truncate_width, width,
};
