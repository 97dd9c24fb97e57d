//! What strict readers of front matter refuse although it is YAML.

use crate::node::Oddity;
use crate::source::{BOM, place};

/// Returns the invisible signs in `text` that some readers end a line at, or leave out.
pub fn signs(text: &str) -> Vec<Oddity> {
    let is_sign = |part: char| matches!(part, '\u{85}' | '\u{2028}' | '\u{2029}' | BOM);
    let found = text.match_indices(is_sign).map(|(offset, sign)| {
        let (line, column) = place(text, offset);
        let sign = sign.chars().next().map_or(0, u32::from);
        let message = format!("the invisible sign U+{sign:04X}: some readers end the line there; remove it");
        Oddity { place: (line - 1, column - 1), message }
    });
    // The place of each is looked for from the start, and that many are enough.
    found.take(100).collect()
}

/// Returns the first TAB of each line that has one outside of `quoted` (bytes, in order) and comments.
pub fn tabs(text: &str, quoted: &[(usize, usize)]) -> Vec<Oddity> {
    let mut found = Vec::new();
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let is_free = |offset: &usize| {
            let before = quoted.partition_point(|(from, _)| *from <= start + offset);
            before == 0 || quoted[before - 1].1 <= start + offset
        };
        let text = line.trim_start();
        let end = if text.starts_with('#') { line.len() - text.len() } else { line.len() };
        if let Some(offset) = line[..end].match_indices('\t').map(|(offset, _)| offset).find(is_free) {
            let place = (number, line[..offset].chars().count());
            found.push(Oddity { place, message: "a TAB: strict readers refuse it; use spaces".to_owned() });
        }
        start += line.len();
    }
    found
}

/// Keeps the first oddity of each line.
pub fn once_per_line(mut odd: Vec<Oddity>) -> Vec<Oddity> {
    odd.sort_by_key(|oddity| oddity.place);
    odd.dedup_by_key(|oddity| oddity.place.0);
    odd
}
