//! What a test does with a Bay besides talking to it.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::browser::Browsed;
use super::state::{Boot, Capabilities, Plan, Profile, Sandbox, State};
use super::{Bay, Core, Reply};
use crate::sandboxes::clock::{self, Clock};
use crate::sandboxes::server::Server;

impl Bay {
    /// Starts one with one key, the usual profiles, and nobody let in without a key.
    pub fn start() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        let clock = Arc::new(Clock::default());
        let code = ["filesystem", "shell", "python"];
        let profiles = vec![
            Profile::new("python-default", &code),
            Profile::new("python-data", &code),
            Profile::new("browser-python", &["browser", "filesystem", "python", "shell"]),
        ];
        let state = State { keys: [(new_key(), "default".to_owned())].into(), profiles, ..State::default() };
        let folder = root.path().to_owned();
        let core = Arc::new(Core { clock: Arc::clone(&clock), root: folder, state: Mutex::new(state) });
        Self { server: Server::start(Arc::clone(&core) as _, clock), core, _root: root }
    }

    /// Returns the key of the owner `default`.
    pub fn key(&self) -> String {
        let state = self.core.lock();
        let found = state.keys.iter().find(|(_, owner)| *owner == "default");
        found.map(|(key, _)| key.clone()).unwrap_or_default()
    }

    /// Makes a key for one more owner, who sees only what is its own.
    pub fn key_for(&self, owner: &str) -> String {
        let key = new_key();
        self.core.lock().keys.insert(key.clone(), owner.to_owned());
        key
    }

    /// Makes every key invalid and returns a new one of the owner `default`.
    pub fn change_key(&self) -> String {
        let key = new_key();
        self.core.lock().keys = [(key.clone(), "default".to_owned())].into();
        key
    }

    /// Lets in those who show no key at all, as the real one does unless told otherwise.
    pub fn allow_anonymous(&self) {
        self.core.lock().anonymous = true;
    }

    /// Returns the ids of the sandboxes that are there, expired ones too until they are collected.
    pub fn sandboxes(&self) -> Vec<String> {
        self.core.lock().sandboxes.keys().cloned().collect()
    }

    /// Returns the status that a sandbox shows; nothing where it is none.
    pub fn status(&self, id: &str) -> Option<&'static str> {
        self.core.lock().sandboxes.get(id).map(|sandbox| sandbox.status(self.core.clock.now()))
    }

    /// Returns the seconds that a sandbox has left; nothing where it never expires.
    pub fn seconds_left(&self, id: &str) -> Option<i64> {
        let now = self.core.clock.now();
        self.with(id, |sandbox| sandbox.expires.map(|end| clock::seconds(now, end)))
    }

    /// Returns the real folder behind a sandbox's `/workspace`.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.with(id, |sandbox| sandbox.runtime.workspace())
    }

    /// Takes these profiles instead of the usual ones.
    pub fn set_profiles(&self, profiles: Vec<Profile>) {
        self.core.lock().profiles = profiles;
    }

    /// Gives sandboxes created from now on this profile whatever they ask for, or again the one they ask for.
    pub fn force_profile(&self, id: Option<&str>) {
        self.core.lock().plan.profile = id.map(str::to_owned);
    }

    /// Says this of the capabilities of sandboxes created from now on.
    pub fn set_capabilities(&self, capabilities: Capabilities) {
        self.core.lock().plan.capabilities = capabilities;
    }

    /// Lets sandboxes created from now on come up this way.
    pub fn set_boot(&self, boot: Boot) {
        self.core.lock().plan.boot = boot;
    }

    /// Lets the browser answer every command this way; without it, it says the command.
    pub fn set_browser(&self, script: impl FnMut(&str) -> Browsed + Send + 'static) {
        self.core.lock().script = Some(Box::new(script));
    }

    /// Lets a sandbox's time be up; it stays until it is collected.
    pub fn expire(&self, id: &str) {
        let now = self.core.clock.now();
        self.with(id, |sandbox| sandbox.expires = Some(now));
    }

    /// Lets a sandbox fail.
    pub fn fail(&self, id: &str) {
        self.with(id, |sandbox| sandbox.plan.boot = Boot::Failed);
    }

    /// Lets a sandbox be away for so many looks, as [`Boot::Stalled`] says.
    pub fn stall(&self, id: &str, status: &'static str, looks: usize) {
        self.with(id, |sandbox| sandbox.plan = Plan { boot: Boot::Stalled { status, looks }, ..sandbox.plan.clone() });
    }

    /// Removes a sandbox as the collection of an expired one does: from now on it is not found.
    pub fn forget(&self, id: &str) {
        let sandbox = self.core.lock().sandboxes.remove(id).expect("a sandbox of this Bay");
        sandbox.runtime.end();
    }

    /// Kills a sandbox's compute; the next call starts it again without a word.
    pub fn kill_runtime(&self, id: &str) {
        let runtime = self.with(id, |sandbox| Arc::clone(&sandbox.runtime));
        runtime.kill();
    }

    /// Collects garbage, which the real one does every five minutes.
    pub fn collect(&self) {
        self.core.collect();
    }

    /// Makes an error as a Bay words it, for a [`Fault`](super::super::Fault) that answers.
    pub fn error(status: u16, code: &str, message: &str, details: &Value) -> Reply {
        super::error(status, code, message, details)
    }

    fn with<T>(&self, id: &str, act: impl FnOnce(&mut Sandbox) -> T) -> T {
        act(self.core.lock().sandboxes.get_mut(id).expect("a sandbox of this Bay"))
    }
}

/// Makes a key: 64 hexadecimal digits behind its mark.
fn new_key() -> String {
    let digits: String = std::iter::repeat_with(clock::digits).take(6).collect();
    format!("sk-bay-{}", &digits[..64])
}

impl Deref for Bay {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for Bay {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}

impl Drop for Bay {
    fn drop(&mut self) {
        self.server.stop();
        self.core.end();
    }
}
