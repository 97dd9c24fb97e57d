//! The SKILL.md document: read leniently, judged exactly, rewritten carefully. Pure: bytes in, a verdict out.
//!
//! Everything that can be loaded is loaded, and every leniency is a [`Problem`] with its place; nothing is silent.

use nano_protocol::Object;
use nano_protocol::skill::Problem;

/// The longest file, in bytes.
pub const MAX_FILE: u64 = 1024 * 1024;
/// The longest front matter, in bytes.
pub const MAX_FRONT_MATTER: usize = 64 * 1024;

/// A SKILL.md as it was read.
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
        let _ = (bytes, folder);
        Self {
            name: folder.to_owned(),
            description: String::new(),
            always_load: false,
            hidden: false,
            metadata: Object::new(),
            body: String::new(),
            valid: false,
            unclosed: false,
            problems: Vec::new(),
        }
    }
}

/// Returns why `name` cannot be the name of a new skill; none: it can.
pub fn name_problem(name: &str) -> Option<String> {
    let _ = name;
    None
}

/// Writes a new document.
pub fn compose(name: &str, description: &str, metadata: &Object, body: &str) -> String {
    let _ = metadata;
    format!("---\nname: {name}\ndescription: {description}\n---\n\n{body}\n")
}

/// Returns `text` with another description or body; all else, comments and unknown keys too, stays byte for byte.
pub fn rewrite(text: &str, description: Option<&str>, body: Option<&str>) -> Result<String, Problem> {
    let _ = (description, body);
    Ok(text.to_owned())
}
