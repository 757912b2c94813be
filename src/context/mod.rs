//! What the model sees: instructions and skills of the tree, and the log as a conversation.

pub mod files;
pub mod instructions;
pub mod project;
pub mod skills;
