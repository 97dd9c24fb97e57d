//! The `key:` that a line of front matter begins with, and the keys that mean something.

/// The keys of the Agent Skills format.
pub const FORMAT: &[&str] = &["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
/// A key of clients, known here: the skill is not for the model to see.
pub const HIDDEN: &str = "disable-model-invocation";

/// Returns whether `key` means something.
pub fn is_known(key: &str) -> bool {
    key == HIDDEN || FORMAT.contains(&key)
}

/// Returns the key that was meant by one which differs in case, or in `_` for `-`.
pub fn meant(key: &str) -> Option<&'static str> {
    let plain = key.trim().to_lowercase().replace(['_', ' '], "-");
    let plain = plain.trim_matches('-');
    let found = FORMAT.iter().chain([&HIDDEN]).find(|known| **known == plain)?;
    (*found != key).then_some(*found)
}

/// A key at the beginning of a line, and where its value begins: after the colon, in bytes.
pub fn leading(line: &str) -> Option<(&str, usize)> {
    let indent = line.len() - line.trim_start().len();
    let rest = &line[indent..];
    let (key, end) = quoted(rest).or_else(|| plain(rest))?;
    let value = rest[end..].trim_start_matches([' ', '\t']).strip_prefix(':')?;
    let is_free = value.is_empty() || value.starts_with([' ', '\t']) || is_known(key);
    is_free.then_some((key, line.len() - value.len()))
}

fn quoted(rest: &str) -> Option<(&str, usize)> {
    let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let length = rest[1..].find(quote)?;
    Some((&rest[1..=length], length + 2))
}

fn plain(rest: &str) -> Option<(&str, usize)> {
    let is_part = |part: char| part.is_alphanumeric() || matches!(part, '_' | '-' | '.' | '$' | '/');
    let length = rest.find(|part| !is_part(part)).unwrap_or(rest.len());
    let is_key = length > 0 && !rest[..length].chars().all(|part| part == '-' || part == '.');
    is_key.then_some((&rest[..length], length))
}
