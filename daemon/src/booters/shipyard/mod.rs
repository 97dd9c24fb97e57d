//! The booter `shipyard`: ships of an old Shipyard, which are found again by the session that they were made for.

mod client;
mod files;
mod python;
mod ship;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nano_protocol::tool::Prompt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::{BootRequest, Booter, Declared};
use crate::config::{Secret, ShipyardConfig};
use crate::http::call::{Call, Method, Reply};
use crate::sandbox::{BoxFuture, Capability, Sandbox, SandboxError};
use crate::tools::{Tool, registry};
use client::{Client, KIND, Refusal, SOON, STRANGER, broken, id};
use ship::Ship;

/// A server waits five minutes for a free place, and one for the ship.
const MAKING: Duration = Duration::from_secs(400);
/// What fails later than this is not tried again.
const PATIENCE: Duration = Duration::from_mins(1);
const TRIES: u32 = 3;

/// Makes computers of the kind `shipyard`.
#[derive(Debug)]
pub struct ShipyardBooter {
    config: ShipyardConfig,
}

/// What a server says of a ship.
#[derive(Debug, serde::Deserialize)]
struct Told {
    id: String,
    #[expect(dead_code, reason = "what has no number here is no ship")]
    status: i64,
    #[serde(default)]
    current_session_num: Option<u64>,
}

impl Told {
    fn read(reply: &Reply) -> Option<Self> {
        let told: Self = serde_json::from_slice(&reply.body).ok()?;
        (matches!(reply.status, 200 | 201) && id(&told.id).is_some()).then_some(told)
    }
}

impl ShipyardBooter {
    /// Makes the booter.
    pub fn new(config: ShipyardConfig) -> Self {
        Self { config }
    }

    fn client(&self, request: &BootRequest) -> Result<Client, SandboxError> {
        let missing = || SandboxError::Boot { kind: KIND, why: self.missing().unwrap_or_default() };
        let base = self.config.endpoint.clone().ok_or_else(missing)?;
        let token = self.config.access_token.clone().ok_or_else(missing)?;
        Ok(Client { base, token, session: session_of(request) })
    }

    /// Returns the session's ship, which is made where there is none; asked twice it is the same.
    async fn ship(&self, client: &Client) -> Result<Told, SandboxError> {
        let body = json!({"ttl": self.config.ttl.as_secs(), "max_session_num": self.config.max_sessions});
        let reply = insist(client, Method::POST, "/ship", &body, MAKING).await?;
        match Told::read(&reply) {
            Some(told) => Ok(told),
            None => Err(explain(client, &reply).await),
        }
    }

    /// Looks a ship up; none where there is none.
    async fn find(&self, client: &Client, handle: &str) -> Result<Option<Told>, SandboxError> {
        let Some(handle) = id(handle) else { return Ok(None) };
        let reply = insist(client, Method::GET, &format!("/ship/{handle}"), &Value::Null, SOON).await?;
        match (Told::read(&reply), client.refusal(&reply)) {
            (Some(told), _) => Ok(Some(told)),
            (None, Refusal::Gone(_)) => Ok(None),
            (None, _) => Err(explain(client, &reply).await),
        }
    }

    async fn attach(&self, request: &BootRequest, handle: &str) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let client = self.client(request)?;
        let lost = |why: &str| SandboxError::Lost { kind: KIND, why: why.into() };
        let told = self.find(&client, handle).await?.ok_or_else(|| lost("the server does not know it any more"))?;
        // Whether it was stopped or the session lost its place in it: who asks again gets it back, with its files.
        let again = self.ship(&client).await?;
        if again.id != told.id {
            free(&client, &again).await?;
            return Err(lost("the server gave the session another one"));
        }
        Ok(Ship::new(client, told.id, self.config.ttl))
    }

    async fn give_back(&self, request: &BootRequest, handle: Option<&str>) -> Result<(), SandboxError> {
        let client = self.client(request)?;
        let told = match handle {
            Some(handle) => self.find(&client, handle).await?,
            // The one that was perhaps made, or one that is made now, for there is no other way to ask.
            None => Some(self.ship(&client).await?),
        };
        match told {
            Some(told) => free(&client, &told).await,
            None => Ok(()),
        }
    }
}

/// Returns by what the server knows the session. It makes a user of the first eight characters, so they must differ
/// between sessions, which those of ids that begin with the time do not.
fn session_of(request: &BootRequest) -> String {
    format!("{:x}", Sha256::digest(format!("{}\n{}", request.session.0, request.key)))
}

/// Removes a ship unless others use it too; those who stay end it with their time.
async fn free(client: &Client, told: &Told) -> Result<(), SandboxError> {
    if told.current_session_num.is_some_and(|sessions| sessions > 1) {
        return Ok(());
    }
    let reply = insist(client, Method::DELETE, &format!("/ship/{}", told.id), &Value::Null, SOON).await?;
    match (reply.status, client.refusal(&reply)) {
        (200..=299, _) | (_, Refusal::Gone(_)) => Ok(()),
        _ => Err(explain(client, &reply).await),
    }
}

/// Asks again, for a while, what may be asked twice.
async fn insist(
    client: &Client,
    method: Method,
    path: &str,
    body: &Value,
    within: Duration,
) -> Result<Reply, SandboxError> {
    let (begun, mut attempt) = (Instant::now(), 1);
    loop {
        let asked = client.ask(method.clone(), path, body.clone(), within).await;
        let again = match &asked {
            Ok(reply) => matches!(reply.status, 408 | 429 | 500..=599),
            Err(why) => why.transient,
        };
        if !again || attempt >= TRIES || begun.elapsed() > PATIENCE {
            return asked.map_err(|why| as_boot(broken(&why)));
        }
        sleep(Duration::from_millis(500 * u64::from(attempt))).await;
        attempt += 1;
    }
}

fn as_boot(why: SandboxError) -> SandboxError {
    match why {
        SandboxError::Failed(why) => SandboxError::Boot { kind: KIND, why },
        other => other,
    }
}

/// Says why an answer is not a ship; something else behind the endpoint is named, where it can be.
async fn explain(client: &Client, reply: &Reply) -> SandboxError {
    let (why, is_stranger) = match client.refusal(reply) {
        gone @ Refusal::Gone(_) => return gone.into(),
        Refusal::Stranger(why) => (why, true),
        Refusal::Answer(why) | Refusal::Failed(why) => (why, matches!(reply.status, 200..=299 | 404 | 405)),
    };
    let why = match reply.status {
        _ if !is_stranger => why,
        _ if is_neo(client).await => format!("{STRANGER} but a Shipyard Neo; use the booter shipyard_neo for it"),
        200..=299 => format!("{STRANGER}: its reply is no ship"),
        status => format!("{STRANGER}: it answers with status {status}"),
    };
    SandboxError::Boot { kind: KIND, why }
}

/// Tells whether a Shipyard Neo answers there; it is asked without the token, which is not for it.
async fn is_neo(client: &Client) -> bool {
    let call = Call::new(Method::GET, format!("{}/v1/profiles", client.base), Duration::from_secs(5));
    let is_json = |body: &[u8]| serde_json::from_slice::<Value>(body).is_ok_and(|body| !body.is_string());
    call.whole(1 << 20).await.is_ok_and(|reply| reply.status == 200 && is_json(&reply.body))
}

impl Booter for ShipyardBooter {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        registry::remote("booter:shipyard")
    }

    fn declared(&self, _workspace: &Path) -> Declared {
        let capabilities = [Capability::Shell, Capability::Python, Capability::Filesystem].into();
        let text = format!(
            "You have a sandbox: another machine with a folder of its own, where commands start and where relative paths \
             in it begin. The workspace is on the host and not in the sandbox: `upload_file` copies a \
             file from the workspace into the sandbox, `download_file` copies a file from the sandbox to the workspace. \
             Upload what a command needs before you run it, download what the user is to have; paths of the host mean \
             nothing in the sandbox. Python keeps its variables from one call to the next, and a single call of it is \
             stopped after {} s: run what takes longer as a shell command.",
            python::MOST.as_secs()
        );
        let prompt = Prompt { name: "sandbox".into(), source: "booter:shipyard".into(), text };
        Declared { capabilities, fixed: true, prompts: vec![prompt], ..Declared::default() }
    }

    fn missing(&self) -> Option<String> {
        let no_endpoint = "no endpoint is configured: set booters.shipyard.endpoint or SHIPYARD_ENDPOINT";
        let no_token = "no token is configured: set booters.shipyard.access_token or SHIPYARD_ACCESS_TOKEN";
        let blank = |token: &Secret| token.0.trim().is_empty();
        match (&self.config.endpoint, &self.config.access_token) {
            (None, _) => Some(no_endpoint.into()),
            (_, None) => Some(no_token.into()),
            (_, Some(token)) => blank(token).then(|| no_token.into()),
        }
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn make<'a>(&'a self, request: &'a BootRequest) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(async { Ok(self.ship(&self.client(request)?).await?.id) })
    }

    fn attach<'a>(
        &'a self,
        request: &'a BootRequest,
        handle: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(self.attach(request, handle))
    }

    fn give_back<'a>(
        &'a self,
        request: &'a BootRequest,
        handle: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(self.give_back(request, handle))
    }
}
