//! `python`: a Python program.

use serde::Deserialize;

use super::Tool;
use super::exec::{LOCAL, ProgramTool, Request};
use crate::sandbox::{Capability, Language};

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The program.
    code: String,
    /// After how many seconds it is stopped.
    timeout: Option<i64>,
}

impl From<Args> for Request {
    fn from(Args { code, timeout }: Args) -> Self {
        Self { language: Language::Python, text: code, timeout, cwd: None, background: false }
    }
}

/// Returns the tool for a computer that shares the host's files.
pub fn local() -> impl Tool {
    let description = "Runs a Python 3 program in the workspace and returns what it prints. Each call is a fresh \
                          interpreter without input.";
    ProgramTool::<Args>::new("python", description, LOCAL, &[Capability::Python])
}

/// Returns the tool for a remote computer.
pub fn remote(source: &'static str) -> impl Tool {
    let description = "Runs Python 3 in the sandbox and returns what it prints.";
    ProgramTool::<Args>::new("python", description, source, &[Capability::Python])
}
