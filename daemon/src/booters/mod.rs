//! Booters: how a session gets a computer, one kind a file.
//!
//! A [`Booter`] brings its tools, declares what it will offer before anything runs, makes a computer, and gives it back.
//! A kind is one file here and one line in [`all`].
#![doc = include_str!("README.md")]

pub mod boxlite;
pub mod jobs;
pub mod kernel;
pub mod local;
pub mod none;
pub mod program;
pub mod shipyard;
pub mod shipyard_neo;
pub mod skill_files;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nano_protocol::id::SessionId;
use nano_protocol::session::Level;
use nano_protocol::tool::Prompt;

use crate::config::BootersConfig;
use crate::sandbox::{BoxFuture, Capability, Sandbox, SandboxError};
use crate::skills::library::Library;
use crate::tools::web::{self, Settings};
use crate::tools::{Tool, registry};

/// What a booter offers before boot: wide rather than narrow.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    /// What its computers can do at most.
    pub capabilities: BTreeSet<Capability>,
    /// Whether every one of them can do exactly that, so that none has to say.
    pub fixed: bool,
    /// What one of them can do that names nothing at all.
    pub bare: BTreeSet<Capability>,
    /// Parts of the prompt, in order.
    pub prompts: Vec<Prompt>,
}

/// Which computer is meant.
#[derive(Debug, Clone)]
pub struct BootRequest {
    /// For whom.
    pub session: SessionId,
    /// Which of those that the session has had: an id that is on record before the computer is made, and stays the same
    /// when making it has to be tried again.
    pub key: String,
    /// The folder that commands start in, for a computer that shares the host's files.
    pub workspace: PathBuf,
    /// How far commands may reach.
    pub level: Level,
}

/// Gives sessions their computer.
///
/// A computer is made, its handle put on record, and only then attached: a daemon that dies in between asks for it again
/// with the same key. One that nobody uses any more is given back, again and again until that has worked.
pub trait Booter: Send + Sync {
    /// Returns the kind, as in the config.
    fn kind(&self) -> &'static str;
    /// Returns the tools it brings, in the order of the list; each has the source `booter:KIND`.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
    /// Returns what it offers before boot to a session that works in `workspace`; needs no sandbox.
    fn declared(&self, workspace: &Path) -> Declared;
    /// Returns what the last part of the prompt says of how far commands reach, where that depends on the session.
    fn bounds(&self, _level: Level, _workspace: &Path, _elsewhere: bool) -> Option<String> {
        None
    }
    /// Returns, in one clause, why a booted computer does not have a declared capability.
    fn lacking(&self, capability: Capability) -> String {
        format!("the {} computer has no {}", self.kind(), capability.as_str())
    }
    /// Returns what is missing before it can be used, and what to do; looks at this machine, asks nobody.
    fn missing(&self) -> Option<String> {
        None
    }
    /// Returns what a person should know before using it.
    fn note(&self) -> Option<String> {
        None
    }
    /// Returns the environment of the programs that it runs on this machine, `NAME=VALUE` each.
    fn environment(&self) -> Vec<String> {
        Vec::new()
    }
    /// Tells whether it does here all that it can do anywhere; [`Booter::note`] says what not.
    fn is_whole(&self) -> bool {
        true
    }
    /// Tells whether its computers are somewhere else: they are made, given back, and have files of their own.
    fn is_remote(&self) -> bool {
        false
    }
    /// Tells whether its server ends by itself what is never given back.
    fn ends_by_itself(&self) -> bool {
        true
    }
    /// Makes the computer, or finds the one that was made with this key; returns its handle.
    fn make<'a>(&'a self, _request: &'a BootRequest) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(std::future::ready(Ok(String::new())))
    }
    /// Waits until the computer serves and finds out what it can do; [`SandboxError::Lost`] where it is gone.
    fn attach<'a>(
        &'a self,
        request: &'a BootRequest,
        handle: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>>;
    /// Gives the computer back; one that is gone already is given back. Without a handle nobody knows whether it was
    /// made: it is looked for by its key.
    fn give_back<'a>(
        &'a self,
        _request: &'a BootRequest,
        _handle: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Tells whether an id that a server gave can stand in a path as it is.
pub fn is_id(id: &str) -> bool {
    (1..=128).contains(&id.len()) && id.bytes().all(|one| one.is_ascii_alphanumeric() || matches!(one, b'-' | b'_'))
}

/// Returns every kind; `helper` is the executable of `nanod`, `env` what programs of tools may see.
pub fn all(
    config: &BootersConfig,
    library: &Arc<Library>,
    helper: PathBuf,
    env: Vec<(String, String)>,
) -> Vec<Arc<dyn Booter>> {
    vec![
        Arc::new(none::NoneBooter),
        Arc::new(local::LocalBooter::new(helper.clone(), env.clone())),
        Arc::new(shipyard::ShipyardBooter::new(config.shipyard.clone())),
        Arc::new(shipyard_neo::NeoBooter::new(config.shipyard_neo.clone(), library.clone())),
        Arc::new(boxlite::BoxliteBooter::new(config.boxlite.clone(), helper, env)),
    ]
}

/// Logs what people should know of each booter that is used here, such as how far it confines commands.
pub fn tell(booters: &[Arc<dyn Booter>]) {
    for booter in booters.iter().filter(|booter| booter.missing().is_none()) {
        if let Some(note) = booter.note() {
            tracing::info!(booter = booter.kind(), "{note}");
        }
    }
}

/// Returns every tool there is: those that need no computer, then each booter's.
pub fn tools(booters: &[Arc<dyn Booter>], settings: &Settings) -> Result<Vec<Arc<dyn Tool>>, String> {
    let mut all = [registry::core(), web::tools(settings)].concat();
    for booter in booters {
        for tool in booter.tools() {
            let (name, source) = (&tool.spec().name, &tool.spec().source);
            // Another kind's may have the same name: a session has one kind of computer.
            let own = |one: &Arc<dyn Tool>| one.spec().source == *source || !one.spec().source.starts_with("booter:");
            if all.iter().any(|one| one.spec().name == *name && own(one)) {
                return Err(format!("the booter {} brings a second tool {name}", booter.kind()));
            }
            all.push(tool);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::is_id;

    #[test]
    fn ids_are_no_paths() {
        for (id, expected) in [
            ("sandbox-1_A", true),
            (&"x".repeat(128), true),
            (&"x".repeat(129), false),
            ("", false),
            (".", false),
            ("..", false),
            ("a/b", false),
            ("a%2fb", false),
            ("a?b", false),
            ("a b", false),
            ("\u{e4}", false),
        ] {
            assert_eq!(is_id(id), expected, "{id}");
        }
    }
}
