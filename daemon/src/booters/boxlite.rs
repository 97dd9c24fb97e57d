//! The booter `boxlite`.

use std::path::Path;
use std::sync::Arc;

use super::{BootRequest, Booter, Declared};
use crate::config::BoxliteConfig;
use crate::sandbox::{BoxFuture, Sandbox, SandboxError};
use crate::tools::{Tool, registry};

/// Makes computers of the kind `boxlite`.
#[derive(Debug)]
pub struct BoxliteBooter {
    config: BoxliteConfig,
}

impl BoxliteBooter {
    /// Makes the booter.
    pub fn new(config: BoxliteConfig) -> Self {
        Self { config }
    }
}

impl Booter for BoxliteBooter {
    fn kind(&self) -> &'static str {
        "boxlite"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        registry::remote("booter:boxlite")
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
        Box::pin(std::future::ready(Err(SandboxError::Boot { kind: "boxlite", why })))
    }
}
