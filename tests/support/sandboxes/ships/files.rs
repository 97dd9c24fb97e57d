//! Files of a ship's users, each within its workspace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::exec::{Said, fields, guessed};
use super::{Answer, Core, session};
use crate::http::Request;
use crate::sandboxes::run::Runtime;
use crate::sandboxes::shape::{Body, Field, Kind, Need};
use crate::sandboxes::wire::{self, Reply};
use crate::sandboxes::{files, multipart};

const PATH: Field = ("path", Kind::Text, Need::Must);
const TEXT: Field = ("content", Kind::Text, Need::Must);
const LINE: Kind = Kind::Whole(0, i64::MAX);
const MOST: usize = 100 << 20;

/// Returns the real place of a path, which may be absolute as long as it stays within the workspace.
pub fn place(user: &Runtime, path: &str) -> Result<PathBuf, (u16, Value)> {
    let inner = match path.strip_prefix(user.shown()) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => files::normalise(rest.trim_start_matches('/')),
        _ if path.starts_with('/') => None,
        _ => files::normalise(path),
    };
    let refusal = || (403, json!(format!("Access denied: {path} is outside of the workspace")));
    inner.map(|inner| user.workspace().join(inner)).ok_or_else(refusal)
}

fn shown(user: &Runtime, place: &Path) -> String {
    files::shown(user.shown(), place.strip_prefix(user.workspace()).unwrap_or(place))
}

fn failed(error: &io::Error, path: &str) -> (u16, Value) {
    match error.kind() {
        io::ErrorKind::NotFound => (404, json!(format!("File not found: {path}"))),
        _ => (500, json!(error.to_string())),
    }
}

/// Does one of the ship's `fs/…`.
pub fn perform(user: &Runtime, act: &str, payload: Value) -> Said {
    let optional = ("content", Kind::Text, Need::May);
    match act {
        "create_file" => create(user, &fields(payload, &[PATH, optional])?),
        "read_file" => {
            read(user, &fields(payload, &[PATH, ("offset", LINE, Need::Null), ("limit", LINE, Need::Null)])?)
        }
        "write_file" => write(user, &fields(payload, &[PATH, TEXT, ("mode", Kind::Text, Need::May)])?),
        "edit_file" => {
            let (old, new) = (("old_string", Kind::Text, Need::Must), ("new_string", Kind::Text, Need::Must));
            edit(user, &fields(payload, &[PATH, old, new, ("replace_all", Kind::Flag, Need::May)])?)
        }
        "delete_file" => {
            let body = fields(payload, &[PATH])?;
            let path = body.text("path");
            files::remove(&place(user, path)?).map_err(|error| failed(&error, path))?;
            Ok(json!({"success": true, "message": format!("Deleted: {path}")}))
        }
        "list_dir" => {
            let body = fields(payload, &[("path", Kind::Text, Need::May), ("show_hidden", Kind::Flag, Need::May)])?;
            let path = body.text_or_none("path").unwrap_or(".");
            let (place, hidden) = (place(user, path)?, body.flag("show_hidden", false));
            let name = shown(user, &place);
            let entries = files::list(&place, &name, hidden).map_err(|error| failed(&error, path))?;
            Ok(json!({"files": entries, "current_path": name}))
        }
        _ => Err((404, json!("Not Found"))),
    }
}

fn create(user: &Runtime, body: &Body) -> Said {
    let (path, content) = (body.text("path"), body.text("content"));
    let place = place(user, path)?;
    files::write(&place, content.as_bytes()).map_err(|error| failed(&error, path))?;
    Ok(json!({"success": true, "message": format!("Created: {path}"), "path": shown(user, &place)}))
}

fn read(user: &Runtime, body: &Body) -> Said {
    let path = body.text("path");
    let place = place(user, path)?;
    let text = fs::read_to_string(&place).map_err(|error| failed(&error, path))?;
    let number = |name: &str, usual: usize| body.whole(name).map_or(usual, |at| usize::try_from(at).unwrap_or(usual));
    let lines =
        text.split_inclusive('\n').skip(number("offset", 1).saturating_sub(1)).take(number("limit", usize::MAX));
    Ok(json!({"content": lines.collect::<String>(), "path": shown(user, &place), "size": text.len()}))
}

fn write(user: &Runtime, body: &Body) -> Said {
    let (path, content) = (body.text("path"), body.text("content"));
    let place = place(user, path)?;
    let appends = body.text("mode") == "a";
    let before = if appends { fs::read_to_string(&place).unwrap_or_default() } else { String::new() };
    let whole = before + content;
    files::write(&place, whole.as_bytes()).map_err(|error| failed(&error, path))?;
    let (message, name) = (format!("Written: {path}"), shown(user, &place));
    Ok(json!({"success": true, "message": message, "path": name, "size": whole.len()}))
}

fn edit(user: &Runtime, body: &Body) -> Said {
    let (path, old, new) = (body.text("path"), body.text("old_string"), body.text("new_string"));
    let place = place(user, path)?;
    let text = fs::read_to_string(&place).map_err(|error| failed(&error, path))?;
    let count = text.matches(old).count();
    let refuse = |why: &str| Err((400, json!(why)));
    match count {
        _ if old == new => return refuse("old_string and new_string are equal"),
        0 => return refuse("old_string was not found in the file"),
        2.. if !body.flag("replace_all", false) => return refuse("old_string is there more than once"),
        _ => {}
    }
    let text = text.replace(old, new);
    fs::write(&place, &text).map_err(|error| failed(&error, path))?;
    let (message, name) = (format!("Edited: {path}"), shown(user, &place));
    Ok(json!({"success": true, "message": message, "path": name, "replacements": count, "size": text.len()}))
}

impl Core {
    pub fn upload(&self, request: &Request, id: &str) -> Answer {
        let session = session(request)?;
        let (bytes, path) = multipart::upload(request, "file_path")?;
        if bytes.len() > MOST {
            return Err(Reply::detail(413, "File size exceeds the limit of 100 MiB"));
        }
        let user = self.user(id, &session).map_err(|refusal| retold(&refusal))?;
        let place = place(&user, &path).map_err(|(_, detail)| guessed(&detail))?;
        files::write(&place, &bytes).map_err(|error| guessed(&failed(&error, &path).1))?;
        self.touch(id, &session);
        let (message, name) = ("File uploaded successfully", shown(&user, &place));
        Ok(Reply::json(200, &json!({"success": true, "message": message, "file_path": name, "error": null})))
    }

    pub fn download(&self, request: &Request, id: &str) -> Answer {
        let session = session(request)?;
        let path = wire::needed(request, "file_path")?;
        let user = self.user(id, &session).map_err(|refusal| retold(&refusal))?;
        let place = place(&user, &path).map_err(|(_, detail)| guessed(&detail))?;
        let bytes = fs::read(&place).map_err(|error| guessed(&failed(&error, &path).1))?;
        self.touch(id, &session);
        Ok(Reply::file(&place.file_name().unwrap_or_default().to_string_lossy(), bytes))
    }
}

/// Gives a refusal the status that its words stand for.
fn retold(refusal: &Reply) -> Reply {
    let body: Value = serde_json::from_slice(&refusal.body).unwrap_or_default();
    guessed(&body["detail"])
}
