//! The booter `shipyard`.

use std::path::Path;
use std::sync::Arc;

use super::{BootRequest, Booter, Declared};
use crate::config::ShipyardConfig;
use crate::sandbox::{BoxFuture, Sandbox, SandboxError};
use crate::tools::{Tool, registry};

/// Makes computers of the kind `shipyard`.
#[derive(Debug)]
pub struct ShipyardBooter {
    config: ShipyardConfig,
}

impl ShipyardBooter {
    /// Makes the booter.
    pub fn new(config: ShipyardConfig) -> Self {
        Self { config }
    }
}

impl Booter for ShipyardBooter {
    fn kind(&self) -> &'static str {
        "shipyard"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        registry::remote("booter:shipyard")
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
        Box::pin(std::future::ready(Err(SandboxError::Boot { kind: "shipyard", why })))
    }
}
