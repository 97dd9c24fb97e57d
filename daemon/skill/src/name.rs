//! Names of skills: how they are compared, and what is odd about them.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// How long a name may be by the format, and how much of a longer one is kept.
const MOST: usize = 64;
const MOST_KEPT: usize = 256;

/// Returns `name` as names are compared: NFKC, trimmed, one line.
pub fn normal(name: &str) -> String {
    // Enough to fill what is kept, whatever white space it begins with and however it composes.
    let normal: String = name.trim().chars().take(8 * MOST_KEPT).nfkc().collect();
    let clean: String = normal.chars().map(|part| if part.is_control() { ' ' } else { part }).collect();
    let words: Vec<&str> = clean.split_whitespace().collect();
    words.join(" ").chars().take(MOST_KEPT).collect::<String>().trim_end().to_owned()
}

/// Returns what the format holds against a name that is `normal`.
pub fn oddity(name: &str) -> Option<String> {
    if name.chars().count() > MOST {
        return Some(format!("the name has more than {MOST} characters"));
    }
    if let Some(bad) = name.chars().find(|part| !is_allowed(*part)) {
        return Some(format!("the name has {bad:?} in it; a name is lowercase letters, digits and single dashes"));
    }
    has_loose_dash(name).then(|| "a name neither begins nor ends with a dash, nor has two in a row".to_owned())
}

/// Returns why `name` cannot be the name of a new skill; none: it can.
pub fn name_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("a name is needed".to_owned());
    }
    let bad = name.chars().find(|part| !matches!(part, 'a'..='z' | '0'..='9' | '-'));
    if let Some(bad) = bad {
        return Some(format!("{bad:?} cannot be in a name; use a-z, 0-9 and single dashes"));
    }
    if name.len() > MOST {
        return Some(format!("a name has at most {MOST} characters"));
    }
    has_loose_dash(name).then(|| "a name neither begins nor ends with a dash, nor has two in a row".to_owned())
}

/// Letters and digits of any script that have no other lowercase; no marks.
fn is_allowed(part: char) -> bool {
    let is_lower = part.to_lowercase().eq([part]);
    part == '-' || part.is_alphanumeric() && !is_combining_mark(part) && is_lower
}

fn has_loose_dash(name: &str) -> bool {
    name.starts_with('-') || name.ends_with('-') || name.contains("--")
}
