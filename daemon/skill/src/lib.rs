//! The SKILL.md document: read leniently, judged exactly, rewritten carefully. Pure: bytes in, a verdict out.
//!
//! Everything that can be loaded is loaded, and every leniency is a [`Problem`] with its place; nothing is silent.
//! A document goes through `source` (text), `fence` (front matter and body), `yaml` or else `repair` (a tree of what is
//! written), and `fields` (what it means). Work and memory are bounded by the size of the file, whatever is in it.

mod fault;
mod fence;
mod fields;
mod key;
mod name;
mod node;
mod problems;
mod read;
mod repair;
mod scalar;
mod source;
mod strict;
mod write;
mod yaml;

use nano_protocol::Object;
use nano_protocol::skill::Problem;

pub use name::{name_problem, normal as normalised};
pub use write::{compose, rewrite};

/// The longest file, in bytes.
pub const MAX_FILE: u64 = 1024 * 1024;
/// The longest front matter, in bytes.
pub const MAX_FRONT_MATTER: usize = 64 * 1024;

/// A SKILL.md as it was read.
#[expect(clippy::struct_excessive_bools, reason = "four answers that have nothing to do with each other")]
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its name, normalised (NFKC, trimmed); that of its folder where it has none.
    pub name: String,
    /// What it is about, white space collapsed; empty where it does not say.
    pub description: String,
    /// `metadata.always_load`.
    pub always_load: bool,
    /// `disable-model-invocation`: not for the model to see or load.
    pub hidden: bool,
    /// The front matter.
    pub metadata: Object,
    /// The text below the front matter, trimmed.
    pub body: String,
    /// Whether it can be offered; if not, the first problem says why.
    pub valid: bool,
    /// Whether the front matter was opened and never closed: perhaps it is still being written.
    pub unclosed: bool,
    /// What is odd or wrong, in order of the file, at most 50.
    pub problems: Vec<Problem>,
}

impl Document {
    /// Reads the bytes of a file that lies in the folder named `folder`.
    pub fn read(bytes: &[u8], folder: &str) -> Self {
        read::document(bytes, folder)
    }
}
