//! The booter `shipyard_neo`: sandboxes of a Bay server, with a browser where the profile has one, and the tools that
//! make skills of what was done in them.
//!
//! `bay` makes calls and `fault` puts what went wrong into words; `boot` makes and deletes sandboxes; `sandbox`
//! is one that serves and `keeper` keeps it alive; the other files are tools.

mod bay;
mod boot;
mod browser;
mod credentials;
mod executions;
mod fault;
mod history;
mod install;
mod keeper;
mod lifecycle;
mod paths;
mod promote;
mod prompts;
mod sandbox;
mod state;
mod tool;

use std::path::Path;
use std::sync::Arc;

use sandbox::NeoSandbox;

use super::{BootRequest, Booter, Declared};
use crate::config::NeoConfig;
use crate::sandbox::{BoxFuture, Capability, Sandbox, SandboxError};
use crate::skills::library::Library;
use crate::tools::{Tool, registry};

const KIND: &str = "shipyard_neo";
const SOURCE: &str = "booter:shipyard_neo";
/// Everything a sandbox may have.
const DECLARED: [Capability; 4] = [Capability::Shell, Capability::Python, Capability::Filesystem, Capability::Browser];

/// Makes computers of the kind `shipyard_neo`.
pub struct NeoBooter {
    config: NeoConfig,
    library: Arc<Library>,
}

impl NeoBooter {
    /// Makes the booter; skills are installed through `library`.
    pub fn new(config: NeoConfig, library: Arc<Library>) -> Self {
        Self { config, library }
    }

    fn bay(&self) -> Result<Arc<bay::Bay>, SandboxError> {
        credentials::bay(&self.config).map(Arc::new).map_err(boot::no_boot)
    }
}

impl Booter for NeoBooter {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = registry::remote(SOURCE);
        tools.extend(lifecycle::before_promotion());
        tools.push(Arc::new(promote::promote_candidate(self.library.clone())));
        tools.extend(lifecycle::of_releases());
        tools.push(Arc::new(promote::install_release(self.library.clone())));
        tools.extend(browser::all());
        tools
    }

    fn declared(&self, _workspace: &Path) -> Declared {
        // A list without a word is of a server that names what is extra: commands, Python and files it has always.
        let bare = [Capability::Shell, Capability::Python, Capability::Filesystem].into();
        Declared { capabilities: DECLARED.into(), fixed: false, bare, prompts: prompts::all() }
    }

    fn lacking(&self, capability: Capability) -> String {
        format!("the sandbox's profile has no {}", capability.as_str())
    }

    fn missing(&self) -> Option<String> {
        credentials::bay(&self.config).err()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn make<'a>(&'a self, request: &'a BootRequest) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(async move { boot::make(&*self.bay()?, &self.config, &request.key).await })
    }

    fn attach<'a>(
        &'a self,
        _request: &'a BootRequest,
        handle: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(async move {
            let bay = self.bay()?;
            let told = boot::wait(&bay, handle).await?;
            let sandbox: Arc<dyn Sandbox> = Arc::new(NeoSandbox::new(bay, handle, &told, self.config.ttl));
            Ok(sandbox)
        })
    }

    fn give_back<'a>(
        &'a self,
        request: &'a BootRequest,
        handle: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(async move {
            let bay = self.bay()?;
            match handle {
                Some(handle) => boot::delete(&bay, handle).await,
                None => boot::delete(&bay, &boot::make(&bay, &self.config, &request.key).await?).await,
            }
        })
    }
}
