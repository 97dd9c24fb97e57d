//! The booter `shipyard_neo`.

use std::path::Path;
use std::sync::Arc;

use super::{BootRequest, Booter, Declared};
use crate::config::NeoConfig;
use crate::sandbox::{BoxFuture, Sandbox, SandboxError};
use crate::skills::library::Library;
use crate::tools::{Tool, registry};

/// Makes computers of the kind `shipyard_neo`.
#[derive(Debug)]
pub struct NeoBooter {
    config: NeoConfig,
}

impl NeoBooter {
    /// Makes the booter.
    pub fn new(config: NeoConfig, _library: Arc<Library>) -> Self {
        Self { config }
    }
}

impl Booter for NeoBooter {
    fn kind(&self) -> &'static str {
        "shipyard_neo"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        registry::remote("booter:shipyard_neo")
    }

    fn declared(&self, _workspace: &Path) -> Declared {
        Declared::default()
    }

    fn missing(&self) -> Option<String> {
        self.config.endpoint.is_none().then(|| "no endpoint is configured".into())
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn attach<'a>(
        &'a self,
        _request: &'a BootRequest,
        _handle: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        let why = "not written yet".into();
        Box::pin(std::future::ready(Err(SandboxError::Boot { kind: "shipyard_neo", why })))
    }
}
