//! The booter `boxlite`: micro-VMs of `boxlite serve`, which runs already or is started here.

mod client;
mod execution;
mod files;
mod heard;
mod host;
mod sandbox;
mod serve;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use data_encoding::HEXLOWER;
use nano_protocol::tool::Prompt;
use sha2::{Digest, Sha256};

use self::client::{Api, BoxInfo, Fault};
use self::sandbox::BoxSandbox;
use self::serve::Server;
use super::{BootRequest, Booter, Declared, is_id};
use crate::config::{BoxliteConfig, Network};
use crate::http::is_local;
use crate::sandbox::service::first_line;
use crate::sandbox::{BoxFuture, Capability, Sandbox, SandboxError};
use crate::tools::{Tool, registry};

const KIND: &str = "boxlite";
/// How long the program may take to say its version.
const VERSION: Duration = Duration::from_millis(500);
/// How long a call may take for which a box has to be started, beside the start itself.
const SLACK: Duration = Duration::from_secs(30);
/// The longest name of a box.
const NAME: usize = 60;

/// Gives sessions a micro-VM each.
#[derive(Debug)]
pub struct BoxliteBooter {
    config: BoxliteConfig,
    server: Arc<Server>,
    /// The root of what is looked at to know this machine.
    root: PathBuf,
    version: OnceLock<Option<String>>,
}

impl BoxliteBooter {
    /// Makes the booter: `helper` is the executable of `nanod`, `env` what programs of tools may see.
    pub fn new(config: BoxliteConfig, helper: PathBuf, env: Vec<(String, String)>) -> Self {
        let server = Arc::new(Server::new(config.clone(), helper, env));
        Self { config, server, root: "/".into(), version: OnceLock::new() }
    }

    /// Returns what is wrong with the configuration, for which nobody has to look at the machine.
    fn unset(&self) -> Option<String> {
        let config = &self.config;
        if config.endpoint.is_none() && config.command.is_none() {
            return Some(
                "set booters.boxlite.command = \"boxlite\" to have `boxlite serve` started, or endpoint where it runs"
                    .into(),
            );
        }
        if config.command.is_some() && self.server.program().is_none() {
            let command = config.command.as_deref().unwrap_or_default();
            return Some(format!("there is no program {command} (booters.boxlite.command); install BoxLite's command"));
        }
        match (&config.image, &config.rootfs_path) {
            (None, None) => Some("set booters.boxlite.image, or rootfs_path to a folder with an OCI layout".into()),
            (None, Some(path)) if self.is_here() && !path.is_dir() => {
                Some(format!("booters.boxlite.rootfs_path: there is no folder {}", path.display()))
            }
            _ => None,
        }
    }

    /// Tells whether guests are started on this machine.
    fn is_here(&self) -> bool {
        self.config.endpoint.as_deref().is_none_or(is_local)
    }

    fn obstacle(&self) -> Option<String> {
        if self.is_here() { host::obstacle(&self.root) } else { None }
    }

    fn boot_error(&self, why: String) -> SandboxError {
        let why = match self.obstacle() {
            Some(obstacle) => format!("{obstacle} (BoxLite said: {why})"),
            None => why,
        };
        SandboxError::Boot { kind: KIND, why }
    }

    async fn make(&self, request: &BootRequest) -> Result<String, SandboxError> {
        if let Some(why) = self.unset() {
            return Err(SandboxError::Boot { kind: KIND, why });
        }
        let api = self.server.api().await?;
        let name = name(&request.key);
        let made = match api.find(&name).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => self.create(&api, &name).await,
            Err(why) => Err(why),
        };
        // No guest was started yet: what this machine can do is no reason.
        made.map(|made| made.box_id).map_err(|why| SandboxError::Boot { kind: KIND, why: why.to_string() })
    }

    async fn create(&self, api: &Api, name: &str) -> Result<BoxInfo, Fault> {
        match api.create(name, &self.config).await {
            Err(why) => api.find(name).await.ok().flatten().ok_or(why),
            made => made,
        }
    }

    async fn attach(&self, handle: &str) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let lost = |why: String| SandboxError::Lost { kind: KIND, why };
        if !is_id(handle) {
            return Err(lost("it was never made".into()));
        }
        let api = self.server.api().await?;
        let found = match api.look(handle).await {
            Ok(found) => found,
            Err(Fault::Missing(why)) => return Err(lost(why)),
            Err(why) => return Err(SandboxError::Boot { kind: KIND, why: why.to_string() }),
        };
        if found.status != "running" {
            self.start(&api, handle).await?;
        }
        let mut sure = BTreeSet::from([Capability::Shell, Capability::Filesystem]);
        if self.config.network != Network::Off {
            sure.insert(Capability::Network);
        }
        let cold = self.config.start_timeout + SLACK;
        match BoxSandbox::join(self.server.clone(), handle, sure, cold).await {
            Ok(sandbox) => Ok(Arc::new(sandbox)),
            Err(why @ SandboxError::Lost { .. }) => Err(why),
            Err(why) => Err(self.boot_error(format!("the box started, but a program in it did not: {why}"))),
        }
    }

    async fn start(&self, api: &Api, id: &str) -> Result<(), SandboxError> {
        let limit = self.config.start_timeout;
        match api.start(id, limit).await {
            Ok(()) => Ok(()),
            Err(Fault::Missing(why)) => Err(SandboxError::Lost { kind: KIND, why }),
            Err(Fault::Broken(why)) => {
                let limit = limit.as_secs();
                Err(self
                    .boot_error(format!("{why}; a box may take {limit} s to start (booters.boxlite.start_timeout)")))
            }
            Err(why) => Err(self.boot_error(why.to_string())),
        }
    }

    async fn give_back(&self, request: &BootRequest, handle: Option<&str>) -> Result<(), SandboxError> {
        let failed = |why: Fault| SandboxError::Failed(format!("the box was not deleted: {why}"));
        let api = self.server.api().await?;
        let id = match handle.filter(|handle| is_id(handle)) {
            Some(handle) => handle.to_owned(),
            None => match api.find(&name(&request.key)).await.map_err(failed)? {
                Some(found) => found.box_id,
                None => return Ok(()),
            },
        };
        api.delete(&id).await.map_err(failed)
    }

    fn version(&self) -> &str {
        let ask = || first_line(&self.server.program()?, "--version", self.server.env(), VERSION);
        self.version.get_or_init(ask).as_deref().unwrap_or("a program that does not say its version")
    }
}

/// Returns the name of the box of this key, which may be any text.
fn name(key: &str) -> String {
    if is_id(key) && key.len() <= NAME {
        return format!("nano-{key}");
    }
    format!("nano-{}", HEXLOWER.encode(&Sha256::digest(key.as_bytes())[..16]))
}

impl Booter for BoxliteBooter {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        registry::remote("booter:boxlite")
    }

    fn declared(&self, _workspace: &Path) -> Declared {
        let network = match &self.config.network {
            Network::Off => "It has no network.".into(),
            Network::On => "It may use the network, as far as there is one.".into(),
            Network::Hosts(hosts) => {
                format!("Of the network, as far as there is one, it may use only {}.", hosts.join(", "))
            }
        };
        let text = format!(
            "Your commands run in a sandbox: a small virtual machine of your own, with its own files. {network} It does \
             not see the files of the host: upload_file copies one from the workspace on the host into the sandbox, \
             download_file copies one from the sandbox to the workspace. Each command is a shell of its own without \
             input, each Python program (where its image has python3) a fresh interpreter; files stay from call to call."
        );
        let prompt = Prompt { name: "sandbox".into(), source: "booter:boxlite".into(), text };
        let capabilities = [Capability::Shell, Capability::Python, Capability::Filesystem, Capability::Network];
        Declared { capabilities: capabilities.into(), prompts: vec![prompt], ..Declared::default() }
    }

    fn lacking(&self, capability: Capability) -> String {
        match capability {
            Capability::Network => "the box has no network (booters.boxlite.network is off)".into(),
            Capability::Python => "the box's image has no python3".into(),
            other => format!("the box has no {}", other.as_str()),
        }
    }

    fn missing(&self) -> Option<String> {
        // An address of this machine may lead to another one.
        let obstacle = || self.obstacle().filter(|_| self.config.endpoint.is_none());
        match (self.unset(), obstacle()) {
            (Some(unset), Some(obstacle)) => Some(format!("{unset}; {obstacle}")),
            (None, Some(obstacle)) => Some(format!("{obstacle} (the program is there: {})", self.version())),
            (unset, None) => unset,
        }
    }

    fn note(&self) -> Option<String> {
        if self.config.endpoint.is_some() {
            return self.obstacle().map(|obstacle| format!("{obstacle}, unless the endpoint leads to another machine"));
        }
        Some(format!("`boxlite serve` is started when it is first needed ({})", self.version()))
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn ends_by_itself(&self) -> bool {
        false
    }

    fn make<'a>(&'a self, request: &'a BootRequest) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(self.make(request))
    }

    fn attach<'a>(
        &'a self,
        _request: &'a BootRequest,
        handle: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(self.attach(handle))
    }

    fn give_back<'a>(
        &'a self,
        request: &'a BootRequest,
        handle: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(self.give_back(request, handle))
    }
}
