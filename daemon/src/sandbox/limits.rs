//! How much a command may take of the machine.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// How much a command may take.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {}

impl Limits {
    /// Sets them for this process and all that it starts.
    pub fn apply(&self) -> io::Result<()> {
        // A core would hold what the program had in memory, and fill the disk.
        setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
        Ok(())
    }
}
