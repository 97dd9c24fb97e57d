//! `[mcp.NAME]`: servers whose tools sessions may have.

use super::Secret;
use super::reader::Section;
use super::sections::words;

/// The longest name of a server: its tools' names begin with it, and have 64 characters in all.
const LONGEST: usize = 24;

/// `[mcp.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpConfig {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It is started, and spoken to through its input and output.
    Program {
        /// The program, on the daemon's PATH or by its path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Further variables of its environment.
        env: Vec<(String, Secret)>,
    },
    /// It runs, and is asked over HTTP.
    Http {
        /// Where.
        url: String,
        /// Further headers of each request.
        headers: Vec<(String, Secret)>,
    },
}

/// Reads `[mcp.*]`.
pub fn read(root: &Section<'_>) -> Vec<McpConfig> {
    root.tables("mcp").into_iter().filter_map(|(name, section)| server(name, &section)).collect()
}

fn server(name: &str, section: &Section<'_>) -> Option<McpConfig> {
    section.check(&words("command args env url headers"));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let edge = name.starts_with('_') || name.ends_with('_') || name.contains("__");
    if !(1..=LONGEST).contains(&name.len()) || !name.bytes().all(plain) || edge {
        section.wrong("has a bad name; a server's is 1 to 24 of A-Z a-z 0-9 _ -, no _ at its ends and no two together");
    }
    if section.has("command") == section.has("url") {
        section.wrong("needs either command or url");
    }
    let (others, kind) = if section.has("url") { ("args env", "url") } else { ("headers", "command") };
    for key in words(others).into_iter().filter(|key| section.has(key)) {
        section.wrong_key(key, &format!("has no meaning beside {kind}"));
    }
    let (command, url) = (section.filled("command"), section.filled("url"));
    let (args, env) = (section.list("args").unwrap_or_default(), pairs(section, "env"));
    let headers = pairs(section, "headers");
    if [command.as_ref()].into_iter().flatten().chain(&args).any(|word| word.contains('\0')) {
        section.wrong("holds a NUL byte");
    }
    if let Some(url) = &url {
        let known = url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if !known {
            section.wrong_key("url", "must be an address such as \"http://127.0.0.1:8000/mcp\"");
        }
    }
    let reach = match (command, url) {
        (Some(command), None) => Reach::Program { command, args, env },
        (None, Some(url)) => Reach::Http { url, headers },
        _ => return None,
    };
    Some(McpConfig { name: name.to_owned(), reach })
}

fn pairs(section: &Section<'_>, key: &str) -> Vec<(String, Secret)> {
    let pairs = section.map_of_texts(key).unwrap_or_default();
    if pairs.iter().any(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')) {
        section.wrong_key(key, "holds a name that is none, or a NUL byte");
    }
    pairs.into_iter().map(|(name, value)| (name, Secret(value))).collect()
}
