//! What the model sees: instructions and skills of the tree, and the log as a conversation.

pub mod project;
