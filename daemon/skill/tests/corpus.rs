//! A run over real files: every `SKILL.md` below the folder that `NANO_SKILL_CORPUS` names.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests; the run reports its counts")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nano_skill::Document;

/// Why a file can be refused: nothing else is a reason.
const REASONS: &[&str] = &[
    "no description: the file has no front matter",
    "no description: add a line",
    "no description: it is blank",
    "bytes that are not UTF-8 in the front matter",
    "a NUL byte in the front matter",
    "the file is larger than",
    "the front matter is longer than",
];

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), found);
        } else if entry.file_name() == "SKILL.md" {
            found.push(entry.path());
        }
    }
}

/// Collections number the folders of files that had the same one.
fn folder(path: &Path) -> String {
    let name = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    match name.split_once("__") {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest.to_owned(),
        _ => name,
    }
}

/// Whether the lines before a second fence have a description with text: it is then to be loaded.
fn has_description(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.trim_start_matches('\u{feff}').trim_start().lines();
    let is_open = lines.next().is_some_and(|line| line.trim_end() == "---");
    let mut matter = lines.take_while(|line| line.trim_end() != "---");
    is_open && matter.any(|line| line.strip_prefix("description:").is_some_and(|rest| !rest.trim().is_empty()))
}

#[test]
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests names the folder")]
fn real_files_are_loaded() {
    let Some(corpus) = std::env::var_os("NANO_SKILL_CORPUS") else {
        println!("skipped: NANO_SKILL_CORPUS names no folder");
        return;
    };
    let mut paths = Vec::new();
    walk(Path::new(&corpus), &mut paths);
    paths.sort();
    assert!(!paths.is_empty(), "no SKILL.md below {}", corpus.display());
    let (mut clean, mut tolerated, mut refused) = (0, 0, 0);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for path in &paths {
        let bytes = std::fs::read(path).unwrap();
        let read = Document::read(&bytes, &folder(path));
        match (read.valid, read.problems.first()) {
            (true, None) => clean += 1,
            (true, Some(_)) => tolerated += 1,
            (false, reason) => {
                refused += 1;
                let reason = &reason.unwrap().message;
                println!("refused: {}: {reason}", path.display());
                assert!(REASONS.iter().any(|known| reason.starts_with(known)), "{}: {reason}", path.display());
                assert!(!reason.starts_with("no description") || !has_description(&bytes), "{}", path.display());
            }
        }
        for problem in &read.problems {
            let kind: String = problem.message.split(['"', '`', '\'', '(']).step_by(2).collect();
            *reasons.entry(kind.chars().take(70).collect()).or_default() += 1;
        }
    }
    println!("{} files: {clean} clean, {tolerated} tolerated, {refused} refused", paths.len());
    for (reason, count) in reasons {
        println!("{count:6} {reason}");
    }
}
