//! What the model sees: instructions and skills of the tree, and the log as a conversation.

pub mod budget;
pub mod compact;
pub mod files;
pub mod fold;
pub mod instructions;
pub mod messages;
pub mod project;
pub mod report;
pub mod skills;
pub mod tokens;
