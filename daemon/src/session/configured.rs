//! What is configured now: one snapshot, which a reload replaces as a whole. Who needs two things that must fit together
//! takes them from one snapshot.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};

use crate::config::Config;
use crate::model::catalog::Catalog;
use crate::sandbox::private::Private;
use crate::tools::{Tool, custom};

/// Who asked for a reload and waits for what came of it; nobody does where it was a signal.
pub type Asked = Option<oneshot::Sender<Result<(), String>>>;
/// Asks for a reload.
pub type Ask = mpsc::Sender<Asked>;

/// The configuration with what is made of it.
#[derive(Default)]
pub struct Configured {
    /// It.
    pub config: Config,
    /// The daemon's own files.
    pub private: Arc<Private>,
    /// The tools that it has.
    pub tools: Vec<Arc<dyn Tool>>,
    models: Mutex<Arc<Catalog>>,
}

impl Configured {
    /// Makes a snapshot; where no model is configured, `models` are those that were found.
    pub fn new(config: Config, private: Private, models: Catalog) -> Self {
        let tools = config.tools.iter().map(custom::tool).collect();
        Self { config, private: Arc::new(private), tools, models: Mutex::new(Arc::new(models)) }
    }

    /// Returns the models.
    pub fn models(&self) -> Arc<Catalog> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes models that were found later.
    pub fn found(&self, models: Catalog) {
        *self.models.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(models);
    }
}

/// The snapshot that serves; clones share it.
#[derive(Clone)]
pub struct Live(Arc<watch::Sender<Arc<Configured>>>);

impl Live {
    /// Starts with a snapshot.
    pub fn new(first: Configured) -> Self {
        Self(Arc::new(watch::Sender::new(Arc::new(first))))
    }

    /// Returns the snapshot of now.
    pub fn now(&self) -> Arc<Configured> {
        self.0.borrow().clone()
    }

    /// Has another snapshot serve.
    pub fn replace(&self, next: Configured) {
        self.0.send_replace(Arc::new(next));
    }

    /// Returns what tells of each replacement from now on.
    pub fn changes(&self) -> watch::Receiver<Arc<Configured>> {
        self.0.subscribe()
    }
}
