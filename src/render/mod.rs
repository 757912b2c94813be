//! Text for people: styles, markdown, diffs, the status line. Pure: state in, text out.
pub mod call;
pub mod call_view;
pub mod diff_view;
pub mod line;
pub mod markdown;
pub mod status;
pub mod style;
