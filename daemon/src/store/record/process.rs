//! A background process with what clients do not see.

use nano_protocol::process::Process;
use serde::{Deserialize, Serialize};

/// A background process: on record before it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// What clients see.
    pub process: Process,
    /// How many bytes it printed, once it has ended.
    #[serde(default)]
    pub bytes: u64,
    /// The end of that: the file may lack it.
    #[serde(default)]
    pub tail: String,
}
