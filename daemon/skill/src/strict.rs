//! What strict readers of front matter refuse although it is YAML.

use crate::node::Oddity;

/// Returns the first TAB of each line that has one outside of `quoted` (bytes, in order) and comments.
pub fn tabs(text: &str, quoted: &[(usize, usize)]) -> Vec<Oddity> {
    let mut found = Vec::new();
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let is_free = |offset: &usize| {
            let before = quoted.partition_point(|(from, _)| *from <= start + offset);
            before == 0 || quoted[before - 1].1 <= start + offset
        };
        let tab = line.match_indices('\t').map(|(offset, _)| offset).find(is_free);
        if let Some(offset) = tab.filter(|_| !line.trim_start().starts_with('#')) {
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
