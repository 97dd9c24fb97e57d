//! Tools and prompts as a session shows them.

use crate::Object;

wire! {
    /// A tool as it is offered.
    pub struct Tool {
        /// `^[a-zA-Z0-9_-]{1,64}$`.
        pub name: String,
        /// What it does, for the model.
        pub description: String,
        /// The JSON Schema of its arguments.
        pub input_schema: Object,
        /// The JSON Schema of its result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub output_schema: Option<Object>,
        /// `core`, `booter:KIND`, `mcp:NAME`, `skill` or `config`.
        pub source: String,
        /// The capabilities it needs.
        pub requires: Vec<String>,
    }

    /// A registered tool that is not offered.
    pub struct Withheld {
        /// Its name.
        pub name: String,
        /// Why, in one clause.
        pub why: String,
    }

    /// One part of the assembled prompt.
    pub struct Prompt {
        /// What the part is about.
        pub name: String,
        /// `agent`, `booter:KIND`, `skill:NAME` or `core`.
        pub source: String,
        /// The part.
        pub text: String,
    }
}
