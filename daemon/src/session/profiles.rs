//! Agent profiles: those of the config file, those made over RPC, and the built-in `default`.
//!
//! One of the file wins over a stored one of its name; the built-in one yields to both. A stored profile is durable
//! before it is answered, and serves its sessions from their next turn on. What a session took from it when it was made
//! (booter, model, level, mode, tools, skills) stays as it is.

mod said;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{PoisonError, RwLock};

use nano_protocol::catalog::{AgentCreateParams, AgentUpdateParams};
use nano_protocol::error::{ErrorKind, RpcError};
use tokio::sync::{RwLockReadGuard, RwLockWriteGuard};

use said::{agent, check, merge, reset, sizes};
pub use said::{check_tools, no_such_tool};

use super::configured::{Configured, Live};
use super::deps::Deps;
use super::registry::Registry;
use crate::config::AgentConfig;
use crate::config::agent::is_name;
use crate::store::record::ProfileRecord;
use crate::store::{Change, Commit, Key, Store, StoreError};

/// Where a profile comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The config file: read-only.
    Config,
    /// RPC.
    Stored,
    /// Nobody said anything of `default`.
    Builtin,
}

/// A profile as it serves.
#[derive(Debug, Clone)]
pub struct Profile {
    /// What it says.
    pub agent: AgentConfig,
    /// Where it comes from.
    pub source: Source,
    /// Whether it hides a stored one of its name.
    pub hides: bool,
}

impl Profile {
    /// Returns how many bytes its texts have.
    pub fn bytes(&self) -> usize {
        sizes(&self.agent).iter().map(|(_, size)| size).sum()
    }
}

/// Every profile.
pub struct Profiles {
    live: Live,
    stored: RwLock<BTreeMap<String, ProfileRecord>>,
    /// Held for writing by a change from its look at what is there to its end, so that no other is lost, and for reading
    /// by the opening of a session, so that the profile is not deleted under its hands.
    change: tokio::sync::RwLock<()>,
}

impl Profiles {
    /// Reads the stored ones.
    pub fn load(live: Live, store: &Store) -> Result<Self, StoreError> {
        let mut stored = BTreeMap::new();
        for name in store.ids_backwards(&Key::all(b'a'), None) {
            let name = name?;
            if live.now().config.agents.contains_key(&name) {
                tracing::warn!(agent = name, "the config file's profile hides a stored one of the same name");
            }
            match store.get::<ProfileRecord>(&Key::agent(&name)) {
                Ok(record) => stored.extend(record.map(|record| (name, record))),
                Err(error @ StoreError::Damaged(_)) => tracing::error!(%error, "an agent profile is left out"),
                Err(error) => return Err(error),
            }
        }
        Ok(Self { live, stored: RwLock::new(stored), change: tokio::sync::RwLock::default() })
    }

    /// Returns the profile of this name.
    pub fn get(&self, name: &str) -> Option<Profile> {
        self.get_of(&self.live.now(), name)
    }

    /// Returns every profile, as one config has them.
    pub fn all(&self) -> Vec<(String, Profile)> {
        let now = self.live.now();
        let found = self.names_of(&now).into_iter().filter_map(|name| Some((self.get_of(&now, &name)?, name)));
        found.map(|(profile, name)| (name, profile)).collect()
    }

    fn get_of(&self, now: &Configured, name: &str) -> Option<Profile> {
        let stored = self.stored(name).map(|record| agent(&record.said));
        if let Some(agent) = now.config.agents.get(name).cloned() {
            return Some(Profile { agent, source: Source::Config, hides: stored.is_some() });
        }
        let builtin = (name == "default").then(|| (AgentConfig::default(), Source::Builtin));
        let (agent, source) = stored.map(|agent| (agent, Source::Stored)).or(builtin)?;
        Some(Profile { agent, source, hides: false })
    }

    /// Returns every name, in order.
    pub fn names(&self) -> Vec<String> {
        self.names_of(&self.live.now())
    }

    fn names_of(&self, now: &Configured) -> Vec<String> {
        let stored = self.stored.read().unwrap_or_else(PoisonError::into_inner);
        let names = now.config.agents.keys().chain(stored.keys()).cloned().chain(["default".to_owned()]);
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Lets no profile change while the guard lives.
    pub async fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.change.read().await
    }

    /// Lets nobody else change profiles while the guard lives. No change is made where there is no room for it.
    async fn alone(&self, deps: &Deps) -> Result<RwLockWriteGuard<'_, ()>, RpcError> {
        deps.store.has_room().map_err(|error| deps.store_failed(&error))?;
        Ok(self.change.write().await)
    }

    fn stored(&self, name: &str) -> Option<ProfileRecord> {
        self.stored.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Returns the stored profile that `uid` may change.
    fn changeable(&self, registry: &Registry, uid: u32, name: &str) -> Result<ProfileRecord, RpcError> {
        let denied = |why: String, hint: &str| Err(RpcError::new(ErrorKind::Denied, why).hint(hint));
        let profile = self.get(name).map(|profile| profile.source);
        if profile == Some(Source::Config) {
            let hint = "edit it there, then nanoctl reload, or make one of another name with nanoctl agents create";
            return denied(
                format!("agent {name} is [agents.{name}] of the config file, which is read-only here"),
                hint,
            );
        }
        match self.stored(name) {
            Some(record) if record.owner == uid || registry.is_admin(uid) => Ok(record),
            Some(record) => denied(format!("agent {name} belongs to uid {}", record.owner), "make one of another name"),
            None if profile.is_some() => denied(
                format!("agent {name} is built in"),
                "make one of that name with nanoctl agents create, which then serves",
            ),
            None => Err(RpcError::new(ErrorKind::NotFound, format!("there is no agent {name}"))
                .hint("nanoctl agents list shows what there is")),
        }
    }
}

/// Makes a profile for `uid`.
pub async fn create(registry: &Registry, uid: u32, said: AgentCreateParams) -> Result<Profile, RpcError> {
    let deps = registry.deps();
    if !is_name(&said.name) {
        let name = said.name.escape_debug();
        return Err(invalid(format!("`{name}` is no profile name: 1 to 64 of A-Z a-z 0-9 . _ -")));
    }
    let _alone = deps.profiles.alone(deps).await?;
    let there = deps.profiles.get(&said.name).filter(|there| there.source != Source::Builtin);
    if there.is_some() {
        let message = format!("there is an agent {} already", said.name);
        return Err(
            RpcError::new(ErrorKind::Conflict, message).hint("use another name, or change it with nanoctl agents edit")
        );
    }
    if said.name == "default" && !registry.is_admin(uid) {
        let message = "the agent default serves everybody here: only nanod's own user and root may make it";
        return Err(RpcError::new(ErrorKind::Denied, message).hint("use another name"));
    }
    keep(deps, ProfileRecord { owner: uid, said }).await
}

/// Changes a stored profile: what is absent stays.
pub async fn update(registry: &Registry, uid: u32, mut change: AgentUpdateParams) -> Result<Profile, RpcError> {
    let deps = registry.deps();
    let _alone = deps.profiles.alone(deps).await?;
    let mut record = deps.profiles.changeable(registry, uid, &change.name)?;
    for member in change.reset.take().unwrap_or_default() {
        reset(&mut record.said, &change, &member)?;
    }
    merge(&mut record.said, change);
    keep(deps, record).await
}

/// Deletes a stored profile that no open session uses, and returns it.
pub async fn delete(registry: &Registry, uid: u32, name: &str) -> Result<Profile, RpcError> {
    let deps = registry.deps();
    let _alone = deps.profiles.alone(deps).await?;
    let record = deps.profiles.changeable(registry, uid, name)?;
    let users = registry.users_of(name);
    if users > 0 {
        let sessions = if users == 1 { "1 open session uses".to_owned() } else { format!("{users} open sessions use") };
        return Err(RpcError::new(ErrorKind::Conflict, format!("{sessions} agent {name}"))
            .hint("close them first; nanoctl sessions shows who uses which agent"));
    }
    commit(deps, Commit::asked(vec![Change::Delete(Key::agent(name))])).await?;
    deps.profiles.stored.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    Ok(Profile { agent: agent(&record.said), source: Source::Stored, hides: false })
}

/// Checks a profile, then makes it durable, then lets it serve.
async fn keep(deps: &Deps, record: ProfileRecord) -> Result<Profile, RpcError> {
    let profile = Profile { agent: agent(&record.said), source: Source::Stored, hides: false };
    check(deps, &profile.agent)?;
    let name = record.said.name.clone();
    commit(deps, Commit::asked(vec![Change::put(Key::agent(&name), &record)])).await?;
    deps.profiles.stored.write().unwrap_or_else(PoisonError::into_inner).insert(name, record);
    Ok(profile)
}

async fn commit(deps: &Deps, commit: Commit) -> Result<(), RpcError> {
    deps.store.commit(commit).await.map(drop).map_err(|error| deps.store_failed(&error))
}

fn invalid(why: String) -> RpcError {
    RpcError::new(ErrorKind::InvalidParams, why)
}
