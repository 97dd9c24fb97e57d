//! Idempotency keys: the same caller, method, key and parameters get the same object, however often they ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::Data;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::OwnedMutexGuard;

use super::admission::Keyed;
use super::deps::unavailable;
use crate::store::record::KeyRecord;
use crate::store::{Key, Store};

/// Keys that requests under way hold, so that two with one key do not race.
#[derive(Default)]
pub struct KeyLocks {
    held: Mutex<HashMap<Vec<u8>, Weak<tokio::sync::Mutex<()>>>>,
}

/// What became of a key.
pub enum Known {
    /// It is new, or there is none: do it, and record the key with it. The guard keeps others away until then.
    Fresh(Option<Keyed>, Option<OwnedMutexGuard<()>>),
    /// It was used for the same before.
    Before(Data),
}

impl KeyLocks {
    /// Looks a key up; with other parameters it is a conflict.
    pub async fn look_up(
        &self,
        store: &Store,
        uid: u32,
        method: &str,
        key: Option<&str>,
        params: &impl Serialize,
    ) -> Result<Known, RpcError> {
        let Some(key) = key else { return Ok(Known::Fresh(None, None)) };
        if key.is_empty() || key.len() > 256 {
            return Err(RpcError::new(ErrorKind::InvalidParams, "an idempotency key has 1 to 256 bytes"));
        }
        let place = Key::idempotency(uid, method, key);
        let guard = self.lock(format!("{uid}/{method}/{key}").into_bytes()).await;
        // The order of members says nothing.
        let mut params = serde_json::to_value(params).unwrap_or_default();
        params.sort_all_objects();
        let text = params.to_string();
        let params = format!("{:x}", Sha256::digest(text));
        match store.get::<KeyRecord>(&place).map_err(|error| unavailable(&error))? {
            None => Ok(Known::Fresh(Some(Keyed { key: place, params }), Some(guard))),
            Some(record) if record.params == params => Ok(Known::Before(record.answer)),
            Some(_) => {
                let message = format!("the idempotency key {key} was used with other parameters");
                Err(RpcError::new(ErrorKind::Conflict, message).hint("use a key of its own for each request"))
            }
        }
    }

    async fn lock(&self, name: Vec<u8>) -> OwnedMutexGuard<()> {
        let lock = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.retain(|_, lock| lock.strong_count() > 0);
            let known = held.get(&name).and_then(Weak::upgrade);
            let lock = known.unwrap_or_default();
            held.insert(name, Arc::downgrade(&lock));
            lock
        };
        lock.lock_owned().await
    }
}
