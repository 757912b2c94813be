//! Characters, tokens and their places.
