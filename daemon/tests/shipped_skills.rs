//! The skills that nanod brings along: each is one that it has nothing to say about, and small.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use nano_skill::Document;

/// Those that the profiles and the documentation name.
const PROMISED: &[&str] = &["code-review", "git-workflow", "nanod-operations", "write-a-skill"];
const MOST_LINES: usize = 500;
const MOST_BYTES: usize = 20 * 1024;
const MOST_DESCRIPTION: usize = 1024;

/// Returns each folder's name and what lies in its SKILL.md, by name.
fn shipped() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../skills");
    let mut all: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let file = entry.path().join("SKILL.md");
            assert!(file.is_file(), "{}: skills/ holds folders with a SKILL.md, nothing else", file.display());
            (name, fs::read(file).unwrap())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn those_that_are_promised_are_there() {
    let names: Vec<_> = shipped().into_iter().map(|(name, _)| name).collect();
    let missing: Vec<_> = PROMISED.iter().filter(|name| !names.iter().any(|there| there == *name)).collect();
    assert!(missing.is_empty(), "{missing:?} of {names:?}");
}

#[test]
fn each_is_read_without_a_single_problem() {
    for (name, bytes) in shipped() {
        let document = Document::read(&bytes, &name);
        assert_eq!(document.problems, [], "{name}");
        assert!(document.valid && !document.hidden && !document.unclosed, "{name}: {document:?}");
        assert_eq!(document.name, name);
        // A body in every prompt is a person's choice, not ours.
        assert!(!document.always_load && !document.body.is_empty(), "{name}");
    }
}

#[test]
fn each_is_small_and_plain() {
    for (name, bytes) in shipped() {
        let text = str::from_utf8(&bytes).unwrap();
        let (lines, described) = (text.lines().count(), Document::read(&bytes, &name).description.chars().count());
        assert!(lines < MOST_LINES && bytes.len() < MOST_BYTES, "{name}: {lines} lines, {} bytes", bytes.len());
        assert!((1..MOST_DESCRIPTION).contains(&described), "{name}: {described} characters of description");
        assert!(text.is_ascii() && !text.contains('\t') && text.ends_with('\n'), "{name}");
    }
}
