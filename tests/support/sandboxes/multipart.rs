//! Reading a form of several parts.

use crate::http::Request;

use super::wire::{self, Reply};

/// Returns the parts of the form that `request` carries: their names and what they hold.
fn parts(request: &Request) -> Option<Vec<(String, Vec<u8>)>> {
    let kind = request.header("content-type").filter(|kind| kind.starts_with("multipart/form-data"))?;
    let boundary = kind.split("boundary=").nth(1)?.split(';').next()?.trim().trim_matches('"');
    let pieces = split(&request.body, format!("--{boundary}").as_bytes());
    Some(pieces.into_iter().filter_map(part).collect())
}

fn part(piece: &[u8]) -> Option<(String, Vec<u8>)> {
    let piece = piece.strip_prefix(b"\r\n")?.strip_suffix(b"\r\n")?;
    let end = piece.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&piece[..end]).into_owned();
    let disposition = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-disposition:"))?;
    let name = disposition.split(';').map(str::trim).find_map(|field| field.strip_prefix("name="))?;
    Some((name.trim_matches('"').to_owned(), piece[end + 4..].to_vec()))
}

fn split<'a>(body: &'a [u8], mark: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.windows(mark.len()).position(|window| window == mark) {
        pieces.push(&rest[..at]);
        rest = &rest[at + mark.len()..];
    }
    pieces
}

/// Returns the bytes of the part `file` and the text of the part `path`, whatever that one is called.
pub fn upload(request: &Request, path: &str) -> Result<(Vec<u8>, String), Reply> {
    let parts = parts(request).unwrap_or_default();
    let take = |name: &str| {
        let found = parts.iter().find(|(own, _)| own == name).map(|(_, bytes)| bytes.clone());
        found.ok_or_else(|| wire::invalid("missing", &["body", name], "Field required", &serde_json::Value::Null))
    };
    Ok((take("file")?, String::from_utf8_lossy(&take(path)?).into_owned()))
}
