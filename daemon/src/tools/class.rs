//! What another daemon may do about a call that the one before died in.

use super::ToolSpec;

/// What a call gets that was running when the daemon died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It changes nothing: it runs again.
    Pure,
    /// What is done twice by the same call is done once: it runs again.
    Keyed,
    /// It changes a file and puts on record how, before it does ([`intents`](super::intents)): one looks at the file.
    Verify,
    /// Nobody knows what it did: the model is told so.
    Opaque,
    /// The same, and the task does not go on before a person has it do so.
    Dangerous,
}

impl Class {
    /// Returns the class of a tool that says nothing else of itself.
    pub fn usual(spec: &ToolSpec) -> Self {
        if spec.read_only { Self::Pure } else { Self::Opaque }
    }
}
