//! Files of a sandbox: relative paths only.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::{Answer, Core, Reply, error};
use crate::http::Request;
use crate::sandboxes::shape::{self, Field, Kind, Need};
use crate::sandboxes::{files, multipart, wire};

const WRITE: &[Field] = &[("path", Kind::Text, Need::Must), ("content", Kind::Text, Need::Must)];

/// Returns the path within the workspace that is meant.
fn inner(path: &str) -> Result<PathBuf, Reply> {
    let refuse = |reason: &str| {
        let details = json!({"field": "path", "reason": reason});
        error(400, "invalid_path", &format!("Invalid path: {reason}"), &details)
    };
    match path {
        "" => Err(refuse("empty_path")),
        _ if path.contains('\0') => Err(refuse("null_byte")),
        _ if path.starts_with('/') => Err(refuse("absolute_path")),
        _ => files::normalise(path).ok_or_else(|| refuse("path_traversal")),
    }
}

/// Makes the error that anything of the inner runtime becomes.
fn ship(error_of: &std::io::Error) -> Reply {
    let status = if error_of.kind() == std::io::ErrorKind::NotFound { 404 } else { 500 };
    error(502, "ship_error", &format!("Ship request failed: {status}"), &serde_json::Value::Null)
}

impl Core {
    pub fn files(&self, request: &Request, what: &str, owner: &str, id: &str) -> Answer {
        match (request.method.as_str(), what) {
            ("GET", "files") => self.read(request, owner, id),
            ("PUT", "files") => self.write(request, owner, id),
            ("DELETE", "files") => self.remove(request, owner, id),
            ("GET", "directories") => self.list_folder(request, owner, id),
            ("POST", "upload") => self.upload(request, owner, id),
            ("GET", "download") => self.download(request, owner, id),
            _ => Err(Reply::detail(404, "Not Found")),
        }
    }

    fn place(&self, owner: &str, id: &str, path: &str) -> Result<PathBuf, Reply> {
        let inner = inner(path)?;
        Ok(self.enter(owner, id, "filesystem")?.workspace().join(inner))
    }

    fn read(&self, request: &Request, owner: &str, id: &str) -> Answer {
        let place = self.place(owner, id, &wire::needed(request, "path")?)?;
        let content = fs::read_to_string(place).map_err(|error| ship(&error))?;
        Ok(Reply::json(200, &json!({ "content": content })))
    }

    fn write(&self, request: &Request, owner: &str, id: &str) -> Answer {
        let body = shape::body(request, WRITE)?;
        let place = self.place(owner, id, body.text("path"))?;
        files::write(&place, body.text("content").as_bytes()).map_err(|error| ship(&error))?;
        Ok(Reply::json(200, &json!({"status": "ok"})))
    }

    fn remove(&self, request: &Request, owner: &str, id: &str) -> Answer {
        let place = self.place(owner, id, &wire::needed(request, "path")?)?;
        files::remove(&place).map_err(|error| ship(&error))?;
        Ok(Reply::json(200, &json!({"status": "ok"})))
    }

    fn list_folder(&self, request: &Request, owner: &str, id: &str) -> Answer {
        let path = wire::parameter(request, "path").unwrap_or_else(|| ".".to_owned());
        let place = self.place(owner, id, &path)?;
        let shown = files::shown("/workspace", &inner(&path)?);
        let entries = files::list(&place, &shown, false).map_err(|error| ship(&error))?;
        Ok(Reply::json(200, &json!({ "entries": entries })))
    }

    fn upload(&self, request: &Request, owner: &str, id: &str) -> Answer {
        let (bytes, path) = multipart::upload(request, "path")?;
        let place = self.place(owner, id, &path)?;
        files::write(&place, &bytes).map_err(|error| ship(&error))?;
        Ok(Reply::json(200, &json!({"status": "ok", "path": inner(&path)?, "size": bytes.len()})))
    }

    fn download(&self, request: &Request, owner: &str, id: &str) -> Answer {
        let path = wire::needed(request, "path")?;
        let place = self.place(owner, id, &path)?;
        let missing = || error(404, "file_not_found", &format!("File not found: {path}"), &json!({ "path": path }));
        let bytes = fs::read(&place).map_err(|_| missing())?;
        Ok(Reply::file(&place.file_name().unwrap_or_default().to_string_lossy(), bytes))
    }
}
