//! The key for a server: the configured one, else the one that the server itself left on this machine.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::bay::Bay;
use super::fault::one_line;
use crate::config::{NeoConfig, Secret};
use crate::http;

/// The most that is read of the file.
const MOST: u64 = 64 << 10;
const SET: &str = "set booters.shipyard_neo.access_token (or access_token_env, access_token_file), or BAY_TOKEN";

/// Returns the server with its key, or what is missing.
pub fn bay(config: &NeoConfig) -> Result<Bay, String> {
    let none = || "no endpoint is configured: set booters.shipyard_neo.endpoint or BAY_ENDPOINT".to_owned();
    let endpoint = config.endpoint.clone().ok_or_else(none)?;
    let configured = config.access_token.clone().filter(|token| !token.0.is_empty());
    let token = match (configured, &config.credentials) {
        (Some(token), _) => token,
        (None, Some(path)) => left(path, &endpoint).map_err(|why| format!("{}: {why}; {SET}", path.display()))?,
        (None, None) => return Err(format!("no key is configured: {SET}")),
    };
    Ok(Bay::new(endpoint, token))
}

/// Reads the file a server left; its key is for that server and no other.
fn left(path: &Path, endpoint: &str) -> Result<Secret, String> {
    let mut text = String::new();
    // The words of a parser may hold what it read: they are not passed on.
    let opened = File::open(path).map_err(|why| why.to_string())?;
    if !opened.metadata().is_ok_and(|found| found.is_file()) {
        return Err("it is no regular file".into());
    }
    opened.take(MOST).read_to_string(&mut text).map_err(|why| why.to_string())?;
    let read: Value = serde_json::from_str(&text).map_err(|_| "it is not JSON".to_owned())?;
    let field = |name: &str| read.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let whose = field("endpoint").ok_or("it names no `endpoint`, so its key is not used")?;
    if !http::is_same_origin(whose, endpoint) {
        let (whose, endpoint) = (one_line(&http::shown(whose)), http::shown(endpoint));
        return Err(format!("it is for {whose}, not for {endpoint}, so its key is not used"));
    }
    field("api_key").map(|key| Secret(key.to_owned())).ok_or_else(|| "it has no `api_key`".into())
}
