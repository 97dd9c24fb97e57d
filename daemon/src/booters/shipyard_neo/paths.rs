//! Paths on the wire: of files in a sandbox, relative to its folder, and of what has an id. Pure.

use super::fault::Fault;
use crate::sandbox::workspace::shown;

/// The sandbox's folder.
pub const HOME: &str = "/workspace";
/// The longest text that goes into an address.
pub const LONGEST: usize = 2000;

/// Writes a text as one step of a path; none that would leave its place.
pub fn step(text: &str) -> Result<String, Fault> {
    if matches!(text, "" | "." | "..") {
        return Err(Fault::plain(format!("`{text}` is no id")));
    }
    if text.len() > LONGEST {
        return Err(Fault::plain(format!("an id of {} bytes is none: look it up again", text.len())));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    let written = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    Ok(text.bytes().map(written).collect())
}

/// Returns `path` relative to the sandbox's folder, normalised; the folder itself is `.`.
pub fn relative(path: &str) -> Result<String, String> {
    let bad = |why: &str| format!("`{}` {why}; give one relative to {HOME}, such as report.txt", shown(path));
    let inside = match path.strip_prefix(HOME) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_start_matches('/'),
        _ if path.starts_with('/') => {
            return Err(bad("is outside the sandbox's folder (a file of the host comes here with upload_file)"));
        }
        _ => path,
    };
    if path.is_empty() || path.contains('\0') {
        return Err(bad("is no path"));
    }
    let mut steps = Vec::new();
    for step in inside.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop().ok_or_else(|| bad("leads out of the sandbox's folder"))?),
            step => steps.push(step),
        }
    }
    Ok(if steps.is_empty() { ".".into() } else { steps.join("/") })
}

/// Returns `path` relative to the sandbox's folder where it can be a file's.
pub fn file(path: &str) -> Result<String, String> {
    match relative(path)? {
        relative if relative == "." || path.ends_with('/') => {
            Err(format!("`{}` names a folder; name a file in it", shown(path)))
        }
        relative => Ok(relative),
    }
}

#[cfg(test)]
mod tests {
    use super::{file, relative};

    #[test]
    fn paths() {
        for (path, expected) in [
            ("a.txt", Some("a.txt")),
            ("./a//b/../c", Some("a/c")),
            ("/workspace/a.txt", Some("a.txt")),
            ("/workspace//skills/x", Some("skills/x")),
            ("/workspace", Some(".")),
            ("/workspace/", Some(".")),
            (".", Some(".")),
            ("/workspaces/a", None),
            ("/etc/passwd", None),
            ("/workspace/../etc/passwd", None),
            ("../a", None),
            ("a/../../b", None),
            ("", None),
            ("a\0b", None),
        ] {
            assert_eq!(relative(path).ok().as_deref(), expected, "{path:?}");
        }
    }

    #[test]
    fn files() {
        for (path, expected) in [("a", Some("a")), ("a/", None), (".", None), ("/workspace", None), ("a/..", None)] {
            assert_eq!(file(path).ok().as_deref(), expected, "{path:?}");
        }
    }
}
