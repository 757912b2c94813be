//! Everything that a user would notice, the real binary included: one module per capability.

mod support;

mod tidy;
mod wire;
