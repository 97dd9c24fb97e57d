//! What a server's tools were when they were last listed, as hashes: a tool that is another one under its old name is
//! told of.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::store::{Change, Commit, Key, Store};

/// Hashes by the server's own names.
pub type Pins = BTreeMap<String, String>;

/// Returns the hash of what a server says of a tool.
pub fn hash(tool: &Value) -> String {
    let said = ["name", "description", "inputSchema"].map(|key| tool.get(key).unwrap_or(&Value::Null));
    HEXLOWER.encode(&Sha256::digest(json!(said).to_string()))
}

/// Keeps the hashes of now, and returns what a person should be told, if anything changed.
pub async fn keep(store: &Store, server: &str, now: &Pins) -> Option<Value> {
    let key = Key::pins(server);
    let old = store.get::<Pins>(&key).ok().flatten();
    let changes = |old: &Pins| -> (Vec<String>, Vec<String>) {
        let differs = now.iter().filter(|(name, hash)| old.get(*name) != Some(hash)).map(|(name, _)| name.clone());
        differs.partition(|name| old.contains_key(name))
    };
    let (changed, added) = old.as_ref().map(changes).unwrap_or_default();
    if old.as_ref() == Some(now) {
        return None;
    }
    // One that is not listed just now is remembered: it is not to come back as another one unnoticed.
    let all: Pins = old.into_iter().flatten().chain(now.clone()).collect();
    if let Err(error) = store.commit(Commit::owed(vec![Change::put(key, &all)])).await {
        tracing::error!(%error, server, "the hashes of a server's tools could not be kept");
    }
    if changed.is_empty() && added.is_empty() {
        return None;
    }
    let list = |what: &str, names: &[String]| {
        (!names.is_empty()).then(|| format!("{} {what}", super::clean::text(&names.join(", "))))
    };
    let what = [list("changed", &changed), list("new", &added)].into_iter().flatten().collect::<Vec<_>>().join("; ");
    let message = format!("the MCP server {server} describes its tools otherwise than before: {what}");
    Some(json!({"message": message, "server": server, "changed": changed, "added": added}))
}
