//! The calls of `boxlite serve`, and what their failures mean.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::KIND;
use crate::booters::is_id;
use crate::config::{BoxliteConfig, Network, Secret};
use crate::http::call::{Call, Load, Method, Reply};
use crate::http::socket::{Opened, Socket, open};
use crate::http::{HttpError, shown};
use crate::sandbox::SandboxError;

/// How long a call may take that starts nothing.
const WITHIN: Duration = Duration::from_secs(30);
/// How long a box may take to stop before it is deleted as it is.
const STOP: Duration = Duration::from_secs(10);
/// The longest reply that is read.
const MOST: usize = 4 << 20;
/// How much of what is no error of the server's own kind is told.
const WORDS: usize = 300;

/// A server, and what it lets us in by.
#[derive(Debug, Clone)]
pub struct Api {
    /// Its address, without a slash at the end.
    pub base: String,
    /// The key.
    pub key: Option<Secret>,
}

/// Why a call was not answered as hoped.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// What it was about is not there.
    #[error("{0}")]
    Missing(String),
    /// The server said no.
    #[error("{0}")]
    Refused(String),
    /// There was no whole reply, or one that nobody can read.
    #[error("{0}")]
    Broken(HttpError),
}

/// A box, as far as we care.
#[derive(Debug, Clone, Deserialize)]
pub struct BoxInfo {
    /// Its id.
    pub box_id: String,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// `running`, `stopped` …
    #[serde(default)]
    pub status: String,
}

/// A program to run in a box.
#[derive(Debug, Default, Serialize)]
pub struct Exec {
    /// The program.
    pub command: &'static str,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole input; none: that comes over the socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// When the server ends it, should nobody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// Where; the image's folder unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<PathBuf>,
}

/// How far an execution is.
#[derive(Debug, Deserialize)]
pub struct Status {
    /// `running` or `completed`.
    #[serde(default)]
    pub status: String,
    /// Its exit status, once it has one.
    #[serde(default)]
    pub exit_code: Option<i32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Boxes {
    Named { boxes: Vec<BoxInfo> },
    Bare(Vec<BoxInfo>),
}

#[derive(Deserialize)]
struct Started {
    execution_id: String,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorWords,
}

#[derive(Deserialize)]
struct ErrorWords {
    message: String,
}

impl Api {
    /// Tells whether it is the server that takes our key.
    pub async fn serves(&self) -> Result<(), Fault> {
        self.ask(self.call(Method::GET, "/v1/me", WITHIN)).await.map(drop)
    }

    /// Returns the box of this name.
    pub async fn find(&self, name: &str) -> Result<Option<BoxInfo>, Fault> {
        let (Boxes::Named { boxes } | Boxes::Bare(boxes)) =
            self.read(self.call(Method::GET, "/v1/boxes", WITHIN)).await?;
        let found = boxes.into_iter().find(|one| one.name.as_deref() == Some(name));
        found.map(checked).transpose()
    }

    /// Makes a box of this name.
    pub async fn create(&self, name: &str, config: &BoxliteConfig) -> Result<BoxInfo, Fault> {
        let mut call = self.call(Method::POST, "/v1/boxes", config.start_timeout.max(WITHIN));
        call.load = load(&wish(name, config))?;
        self.read(call).await.and_then(checked)
    }

    /// Looks at a box.
    pub async fn look(&self, id: &str) -> Result<BoxInfo, Fault> {
        self.read(self.call(Method::GET, &format!("/v1/boxes/{id}"), WITHIN)).await
    }

    /// Starts a box.
    pub async fn start(&self, id: &str, within: Duration) -> Result<(), Fault> {
        self.ask(self.call(Method::POST, &format!("/v1/boxes/{id}/start"), within)).await.map(drop)
    }

    /// Stops a box, if it lets itself be stopped, and deletes it with all it holds.
    pub async fn delete(&self, id: &str) -> Result<(), Fault> {
        if let Err(error) = self.ask(self.call(Method::POST, &format!("/v1/boxes/{id}/stop"), STOP)).await {
            tracing::debug!(%error, id, "the box was not stopped before its end");
        }
        match self.ask(self.call(Method::DELETE, &format!("/v1/boxes/{id}"), WITHIN)).await {
            Ok(_) | Err(Fault::Missing(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Starts a program and returns the execution's id; a box that stopped is started by that.
    pub async fn exec(&self, id: &str, program: &Exec, within: Duration) -> Result<String, Fault> {
        let mut call = self.call(Method::POST, &format!("/v1/boxes/{id}/exec"), within);
        call.load = load(program)?;
        let Started { execution_id } = self.read(call).await?;
        if is_id(&execution_id) { Ok(execution_id) } else { Err(unreadable("an execution's id is not one")) }
    }

    /// Looks how far an execution is.
    pub async fn status(&self, id: &str, execution: &str) -> Result<Status, Fault> {
        self.read(self.call(Method::GET, &execution_path(id, execution), WITHIN)).await
    }

    /// Sends TERM to an execution.
    pub async fn terminate(&self, id: &str, execution: &str) -> Result<(), Fault> {
        let mut call = self.call(Method::POST, &format!("{}/signal", execution_path(id, execution)), WITHIN);
        call.load = load(&json!({"signal": 15}))?;
        self.ask(call).await.map(drop)
    }

    /// Kills an execution.
    pub async fn kill(&self, id: &str, execution: &str) -> Result<(), Fault> {
        self.ask(self.call(Method::DELETE, &execution_path(id, execution), WITHIN)).await.map(drop)
    }

    /// Opens what an execution prints and reads.
    pub async fn attach(&self, id: &str, execution: &str) -> Result<Socket, Fault> {
        let call = self.call(Method::GET, &format!("{}/attach", execution_path(id, execution)), WITHIN);
        match open(call).await.map_err(Fault::Broken)? {
            Opened::Socket(socket) => Ok(*socket),
            Opened::Refused(reply) => Err(self.refusal(&reply)),
        }
    }

    fn call(&self, method: Method, path: &str, within: Duration) -> Call {
        let mut call = Call::new(method, format!("{}{path}", self.base), within);
        call.bearer = self.key.as_ref().map(|key| key.0.clone());
        call
    }

    async fn read<T: DeserializeOwned>(&self, call: Call) -> Result<T, Fault> {
        let body = self.ask(call).await?;
        serde_json::from_slice(&body).map_err(|why| unreadable(&why.to_string()))
    }

    async fn ask(&self, call: Call) -> Result<Vec<u8>, Fault> {
        let reply = call.whole(MOST).await.map_err(Fault::Broken)?;
        if (200..300).contains(&reply.status) { Ok(reply.body) } else { Err(self.refusal(&reply)) }
    }

    fn refusal(&self, reply: &Reply) -> Fault {
        let own = serde_json::from_slice::<ErrorBody>(&reply.body).ok().map(|body| body.error.message);
        let place = shown(&self.base);
        let words = match (reply.status, &own) {
            (401 | 403, _) if self.key.is_none() => {
                format!("{place} wants a key; only a server that nanod starts itself (booters.boxlite.command) has one")
            }
            (300..=399, _) => format!("{place} is not BoxLite: it answered with a redirect, which is not followed"),
            (404, None) => format!("{place} is not BoxLite: it answered 404 Not Found"),
            (_, Some(message)) => message.clone(),
            (status, None) => format!("{place} answered {status}: {}", excerpt(&reply.body)),
        };
        let words = self.key.as_ref().map_or(words.clone(), |key| words.replace(&key.0, "(key)"));
        if reply.status == 404 && own.is_some() { Fault::Missing(words) } else { Fault::Refused(words) }
    }
}

impl Fault {
    /// Returns what it means for what was asked of a box.
    pub fn of_box(self) -> SandboxError {
        match self {
            Self::Missing(why) => SandboxError::Lost { kind: KIND, why },
            Self::Refused(why) => SandboxError::Failed(format!("BoxLite refused: {why}")),
            Self::Broken(why) if why.sent => {
                SandboxError::Failed(format!("BoxLite did not answer ({why}): nobody knows whether it was done"))
            }
            Self::Broken(why) => SandboxError::Failed(format!("BoxLite cannot be reached ({why}): nothing was done")),
        }
    }
}

fn wish(name: &str, config: &BoxliteConfig) -> Value {
    let outbound = match &config.network {
        Network::Off => json!({"mode": "disabled"}),
        Network::On => json!({"mode": "enabled"}),
        Network::Hosts(hosts) => json!({"mode": "enabled", "allow_net": hosts}),
    };
    let mut wish = json!({
        "name": name,
        "network": {"outbound": outbound},
        // A box ends with its main program, and that of most images ends at once without a terminal.
        "entrypoint": ["/bin/sh"],
        "cmd": ["-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"],
    });
    let optional = [
        ("image", config.image.clone().map(Value::from)),
        ("rootfs_path", config.rootfs_path.as_ref().map(|path| path.to_string_lossy().into())),
        ("cpus", config.cpus.map(whole)),
        ("memory_mib", config.memory_mib.map(Value::from)),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            wish[field] = value;
        }
    }
    wish
}

/// A box has whole processors.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
fn whole(cpus: f64) -> Value {
    Value::from(cpus.ceil().clamp(1.0, 255.0) as u8)
}

fn load(body: &impl Serialize) -> Result<Load, Fault> {
    serde_json::to_vec(body).map(Load::Json).map_err(|why| Fault::Refused(why.to_string()))
}

fn execution_path(id: &str, execution: &str) -> String {
    format!("/v1/boxes/{id}/executions/{execution}")
}

fn checked(found: BoxInfo) -> Result<BoxInfo, Fault> {
    if is_id(&found.box_id) { Ok(found) } else { Err(unreadable("a box's id is not one")) }
}

fn unreadable(why: &str) -> Fault {
    let message = format!("its reply cannot be read: {why}");
    Fault::Broken(HttpError { message, transient: false, sent: true })
}

fn excerpt(body: &[u8]) -> String {
    let text = crate::sandbox::output::readable(body);
    text.trim().chars().take(WORDS).collect()
}
