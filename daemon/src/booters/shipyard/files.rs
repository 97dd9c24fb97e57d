//! Files on their way to a ship and back.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::client::{Refusal, SLACK, broken};
use super::ship::Ship;
use crate::http::call::{Load, Method, Reply};
use crate::http::{HttpError, Response};
use crate::sandbox::SandboxError;
use crate::sandbox::workspace::shown;

/// The largest file that the server takes, and that is taken from it.
const MOST: u64 = 100 << 20;
/// How long sending may take: the server hands on for two minutes, and the way to it takes its time too.
const SENDING: Duration = Duration::from_mins(5);
/// How long the server may take to begin, and to go on.
const COMING: Duration = Duration::from_mins(2);
/// The most that is read of an error.
const ERROR: usize = 64 * 1024;

impl Ship {
    /// Writes a file of the host into the ship; returns where it is there.
    pub(super) async fn send(&self, file: File, path: &str) -> Result<String, SandboxError> {
        let length = file.metadata().map_err(|why| unusable(path, &why))?.len();
        if length > MOST {
            return Err(too_large(path, &format!("it has {length} bytes")));
        }
        let name =
            Path::new(path).file_name().map_or_else(|| "file".into(), |name| name.to_string_lossy().into_owned());
        let load = Load::Form { field: "file", name, file, texts: vec![("file_path", path.to_owned())] };
        let call = self.client.call(Method::POST, &format!("/ship/{}/upload", self.id), load, SENDING);
        let reply = call.whole(ERROR).await.map_err(|why| broken(&why))?;
        if reply.status != 200 {
            return Err(self.refused(&reply, path));
        }
        let told: serde_json::Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let text = |name| told.get(name).and_then(serde_json::Value::as_str);
        match (told.get("success").and_then(serde_json::Value::as_bool), text("file_path")) {
            (Some(true), place) => Ok(place.unwrap_or(path).to_owned()),
            (Some(false), _) => {
                let why = self.client.words(text("error").or(text("message")).unwrap_or("it does not say why"));
                Err(SandboxError::Failed(format!("`{}` was not uploaded: {why}", shown(path))))
            }
            (None, _) => Err(SandboxError::Failed(
                "the sandbox server's reply makes no sense; it is unknown whether the file was \
                                          uploaded"
                    .into(),
            )),
        }
    }

    /// Reads a file of the ship into one of the host; returns how many bytes it has.
    pub(super) async fn fetch(&self, path: &str, into: File) -> Result<u64, SandboxError> {
        let route = format!("/ship/{}/download", self.id);
        let mut call = self.client.call(Method::GET, &route, Load::Nothing, COMING + SLACK);
        call.query.push(("file_path", path.to_owned()));
        let mut response = call.begin().await.map_err(|why| halfway(path, &why))?;
        if response.status() != 200 {
            let body = response.start(ERROR, SLACK).await;
            return Err(self.refused(&Reply { status: response.status(), body }, path));
        }
        let (mut file, mut length) = (tokio::fs::File::from_std(into), 0);
        while let Some(bytes) = next(&mut response).await.map_err(|why| halfway(path, &why))? {
            length += bytes.len() as u64;
            if length > MOST {
                return Err(too_large(path, "it is larger"));
            }
            file.write_all(&bytes).await.map_err(|why| unusable(path, &why))?;
        }
        file.flush().await.map_err(|why| unusable(path, &why))?;
        Ok(length)
    }

    fn refused(&self, reply: &Reply, path: &str) -> SandboxError {
        SandboxError::Failed(match (reply.status, self.client.refusal(reply)) {
            (404, Refusal::Answer(_)) => format!("`{}`: there is no such file in the sandbox", shown(path)),
            (403, Refusal::Answer(_)) => format!(
                "`{}` is outside the sandbox's own folder; give a path relative to it (paths of the host mean nothing there)",
                shown(path)
            ),
            (413, _) => return too_large(path, "the server refuses it"),
            (_, told) => return told.into(),
        })
    }
}

async fn next(response: &mut Response) -> Result<Option<Vec<u8>>, HttpError> {
    let late = |_| HttpError { message: "nothing came for two minutes".into(), transient: true, sent: true };
    timeout(COMING, response.chunk()).await.map_err(late)?
}

fn unusable(path: &str, why: &std::io::Error) -> SandboxError {
    SandboxError::Failed(format!("`{}`: the file on the host cannot be used: {why}", shown(path)))
}

/// A download changes nothing over there.
fn halfway(path: &str, why: &HttpError) -> SandboxError {
    SandboxError::Failed(format!("`{}` did not come whole ({why}); it can be tried again", shown(path)))
}

fn too_large(path: &str, how: &str) -> SandboxError {
    let most = MOST >> 20;
    SandboxError::Failed(format!(
        "`{}` is too large ({how}; {most} MiB is the most): split or compress it",
        shown(path)
    ))
}
