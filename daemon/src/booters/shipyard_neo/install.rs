//! Writes a released skill into the session's workspace, through the skill library.
//!
//! The file itself says which skill of the server it is, in `metadata`: a later release of the same key replaces it,
//! whatever it is called here, and never another skill.

use std::path::Path;

use nano_protocol::Object;
use nano_skill::Document;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::skills::Source;
use crate::skills::edit::Edit;
use crate::skills::library::{Library, Shelves};

/// How long a name may be.
const NAME: usize = 64;
/// Where the file says which skill it is.
const KEY: &str = "neo_skill_key";

/// A release and what is in it.
#[derive(Debug)]
pub struct Released {
    /// The skill's key.
    pub key: String,
    /// The release.
    pub release: String,
    /// Its candidate.
    pub candidate: String,
    /// The candidate's payload.
    pub payload: String,
    /// What the payload says the skill is for; may be empty.
    pub description: String,
    /// The text of the SKILL.md, with or without front matter.
    pub markdown: String,
}

/// Writes the skill; returns what was written, for the model.
pub fn install(library: &Library, workspace: &Path, released: &Released) -> Result<Value, String> {
    let shelves = library.look_now(Some(workspace));
    let known = installed(&shelves, &released.key);
    let name = known.clone().unwrap_or_else(|| free_name(&shelves, &released.key));
    let document = Document::read(released.markdown.as_bytes(), &name);
    let (description, body) = (description(&document, released), document.body.trim());
    let metadata = metadata(released);
    // A model installs for its own session: nothing that serves everybody.
    let written = if known.is_some() {
        let text = Some(nano_skill::compose(&name, &description, &metadata, body));
        library.update(false, Some(workspace), &name, Edit { text, ..Edit::default() }, None)
    } else {
        library.create(false, Some(workspace), (&name, &description), &metadata, body)
    };
    let path = written.map_err(|why| format!("the skill could not be installed here: {why}"))?;
    Ok(json!({
        "ok": true,
        "skill_key": released.key,
        "local_skill_name": name,
        "path": path.to_string_lossy(),
        "release_id": released.release,
        "candidate_id": released.candidate,
        "payload_ref": released.payload,
    }))
}

fn metadata(released: &Released) -> Object {
    let of_neo = json!({
        KEY: released.key,
        "neo_release_id": released.release,
        "neo_candidate_id": released.candidate,
        "neo_payload_ref": released.payload,
    });
    std::iter::once(("metadata".to_owned(), of_neo)).collect()
}

/// Returns the name of the workspace's skill that is this one.
fn installed(shelves: &Shelves, key: &str) -> Option<String> {
    let own = shelves.iter().flat_map(|shelf| &shelf.skills).filter(|skill| skill.source == Source::Workspace);
    let is_it = |document: &Document| {
        document.metadata.get("metadata").and_then(|of_neo| of_neo.get(KEY)?.as_str()) == Some(key)
    };
    own.map(|skill| &skill.document).find(|document| is_it(document)).map(|document| document.name.clone())
}

/// Returns a name of the key's own: one that a skill has already gets a digest behind it.
fn free_name(shelves: &Shelves, key: &str) -> String {
    let plain = name(key, false);
    let is_taken = shelves.iter().flat_map(|shelf| &shelf.skills).any(|skill| skill.document.name == plain);
    if is_taken { name(key, true) } else { plain }
}

/// Makes a name of a key; one that loses too much of it gets a digest too.
fn name(key: &str, with_digest: bool) -> String {
    let letters: String =
        key.to_lowercase().chars().map(|one| if one.is_ascii_alphanumeric() { one } else { ' ' }).collect();
    let words = letters.split_whitespace().collect::<Vec<_>>().join("-");
    let digest = format!("{:x}", Sha256::digest(key.as_bytes()));
    let plain = format!("neo-{words}");
    if !with_digest && !words.is_empty() && plain.len() <= NAME {
        return plain;
    }
    let start = plain.get(..plain.len().min(NAME - 9)).unwrap_or_default().trim_end_matches('-');
    format!("{start}-{}", &digest[..8])
}

/// Returns what the skill is for: said so, or else found in its text.
fn description(document: &Document, released: &Released) -> String {
    let body = || document.body.lines().map(str::trim);
    let of_section = || {
        let is_head = |line: &&str| line.trim_start_matches('#').trim().eq_ignore_ascii_case("description");
        let after = body().skip_while(|line| !(line.starts_with('#') && is_head(line))).skip(1);
        after.take_while(|line| !line.starts_with('#')).find(|line| !line.is_empty())
    };
    let first = || body().find(|line| !line.is_empty() && !line.starts_with(['#', '`', '-']));
    let said = [released.description.trim(), document.description.trim()].into_iter().find(|text| !text.is_empty());
    let found = said.or_else(of_section).or_else(first).map(str::to_owned);
    found.unwrap_or_else(|| format!("The skill {} of Shipyard Neo.", released.key)).chars().take(1024).collect()
}

#[cfg(test)]
mod tests {
    use nano_skill::Document;

    use super::{Released, description, name};

    #[test]
    fn names_are_valid_whatever_the_key() {
        for (key, expected) in [
            ("Login Flow", "neo-login-flow"),
            ("web/login_v2.1", "neo-web-login-v2-1"),
            ("--a--", "neo-a"),
            ("Ünï", "neo-n"),
        ] {
            assert_eq!(name(key, false), expected);
        }
        let keys = ["", "登录", "…", "-", &"x".repeat(60), &"x".repeat(61), &"a-".repeat(200), "a"];
        for key in keys {
            for with_digest in [false, true] {
                let name = name(key, with_digest);
                assert_eq!(nano_skill::name_problem(&name), None, "{name}");
            }
        }
        assert_ne!(name("登录", false), name("登出", false));
    }

    #[test]
    fn descriptions_are_found() {
        let check = |said: &str, markdown: &str, expected: &str| {
            let [key, release, candidate, payload] = ["k"; 4].map(str::to_owned);
            let (description_said, text) = (said.to_owned(), markdown.to_owned());
            let released = Released { key, release, candidate, payload, description: description_said, markdown: text };
            assert_eq!(description(&Document::read(markdown.as_bytes(), "x"), &released), expected);
        };
        check("Said.", "---\ndescription: In front.\n---\nBody.", "Said.");
        check(" ", "---\ndescription: In front.\n---\nBody.", "In front.");
        check("", "# Title\n\nFirst.\n\n## Description\n\nIn a section.\n", "In a section.");
        check("", "# Title\n\nFirst.\n", "First.");
        check("", "# Title\n", "The skill k of Shipyard Neo.");
    }
}
