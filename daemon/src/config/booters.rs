//! `[booters.*]`: where the computers of sessions come from; what the file does not say, the environment may.

use std::path::PathBuf;
use std::time::Duration;

use super::Secret;
use super::around::{Around, resolve, secret};
use super::env::Env;
use super::origin::is_same_origin;
use super::reader::Section;
use super::sections::words;

const SHIPYARD: &str = "endpoint access_token access_token_env access_token_file ttl max_sessions";
const NEO: &str = "endpoint access_token access_token_env access_token_file profile ttl";
const BOXLITE: &str = "endpoint command image rootfs_path cpus memory_mib network start_timeout";
const HOUR: Duration = Duration::from_hours(1);

/// `[booters.*]`.
#[derive(Debug, Clone, Default)]
pub struct BootersConfig {
    /// `[booters.shipyard]`.
    pub shipyard: ShipyardConfig,
    /// `[booters.shipyard_neo]`.
    pub shipyard_neo: NeoConfig,
    /// `[booters.boxlite]`.
    pub boxlite: BoxliteConfig,
}

/// `[booters.shipyard]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ShipyardConfig {
    /// The server, without a slash at the end.
    pub endpoint: Option<String>,
    /// What it lets us in by.
    pub access_token: Option<Secret>,
    /// How long a ship lives without a call.
    pub ttl: Duration,
    /// How many sessions may share a ship.
    pub max_sessions: u64,
}

/// `[booters.shipyard_neo]`.
#[derive(Debug, Clone, PartialEq)]
pub struct NeoConfig {
    /// The server, without a slash at the end.
    pub endpoint: Option<String>,
    /// What it lets us in by.
    pub access_token: Option<Secret>,
    /// The file in which a server on this machine leaves its key; used only where it names this very server.
    pub credentials: Option<PathBuf>,
    /// The profile of sandboxes; none: the one that can do most.
    pub profile: Option<String>,
    /// How long a sandbox lives unless that is extended.
    pub ttl: Duration,
}

/// `[booters.boxlite]`.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxliteConfig {
    /// A server that runs already, without a slash at the end.
    pub endpoint: Option<String>,
    /// The program that is started where there is none; none: it is not configured.
    pub command: Option<String>,
    /// The image of boxes.
    pub image: Option<String>,
    /// A folder with an OCI layout instead.
    pub rootfs_path: Option<PathBuf>,
    /// Processors of a box.
    pub cpus: Option<f64>,
    /// Memory of a box.
    pub memory_mib: Option<u64>,
    /// What of the network a box reaches.
    pub network: Network,
    /// How long a box may take to start.
    pub start_timeout: Duration,
    /// The PATH on which the program is sought.
    pub path: String,
}

/// What of the network a box reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing.
    #[default]
    Off,
    /// Everything.
    On,
    /// These hosts.
    Hosts(Vec<String>),
}

impl Default for ShipyardConfig {
    fn default() -> Self {
        Self { endpoint: None, access_token: None, ttl: HOUR, max_sessions: 1 }
    }
}

impl Default for NeoConfig {
    fn default() -> Self {
        Self { endpoint: None, access_token: None, credentials: None, profile: None, ttl: HOUR }
    }
}

impl Default for BoxliteConfig {
    fn default() -> Self {
        Self {
            endpoint: None,
            command: None,
            image: None,
            rootfs_path: None,
            cpus: None,
            memory_mib: None,
            network: Network::default(),
            start_timeout: Duration::from_mins(2),
            path: String::new(),
        }
    }
}

/// Reads the tables; what only the environment says counts too.
pub fn read(booters: Option<&Section<'_>>, around: &Around<'_>) -> BootersConfig {
    let table = |name, keys| booters.and_then(|booters| booters.table(name, &words(keys)));
    let env = around.env;
    let mut config = BootersConfig::default();
    if let Some(section) = table("shipyard", SHIPYARD) {
        config.shipyard = shipyard(&section, around);
    }
    if let Some(section) = table("shipyard_neo", NEO) {
        config.shipyard_neo = neo(&section, around);
    }
    if let Some(section) = table("boxlite", BOXLITE) {
        config.boxlite = boxlite(&section, around);
    }
    let shipyard = &mut config.shipyard;
    fill(&mut shipyard.endpoint, &mut shipyard.access_token, env, ["SHIPYARD_ENDPOINT", "SHIPYARD_ACCESS_TOKEN"]);
    let neo = &mut config.shipyard_neo;
    fill(&mut neo.endpoint, &mut neo.access_token, env, ["BAY_ENDPOINT", "BAY_TOKEN"]);
    neo.credentials = env.folder("BAY_DATA_DIR").map(|folder| folder.join("credentials.json"));
    env.get("PATH").unwrap_or_default().clone_into(&mut config.boxlite.path);
    config
}

fn fill(endpoint: &mut Option<String>, token: &mut Option<Secret>, env: &Env, names: [&str; 2]) {
    let [at, key] = names.map(|name| env.get(name));
    if endpoint.is_none() {
        *endpoint = at.map(|at| at.trim_end_matches('/').to_owned());
    }
    let is_for_it = at.is_none_or(|at| endpoint.as_deref().is_some_and(|used| is_same_origin(at, used)));
    if token.is_none() && is_for_it {
        *token = key.map(|key| Secret(key.trim().to_owned()));
    }
}

fn shipyard(section: &Section<'_>, around: &Around<'_>) -> ShipyardConfig {
    let default = ShipyardConfig::default();
    ShipyardConfig {
        endpoint: endpoint(section),
        access_token: secret(section, "access_token", around),
        ttl: ttl(section).unwrap_or(default.ttl),
        max_sessions: section.count("max_sessions", 1..1 << 32).unwrap_or(default.max_sessions),
    }
}

fn neo(section: &Section<'_>, around: &Around<'_>) -> NeoConfig {
    NeoConfig {
        endpoint: endpoint(section),
        access_token: secret(section, "access_token", around),
        credentials: None,
        profile: section.filled("profile"),
        ttl: ttl(section).unwrap_or(HOUR),
    }
}

fn boxlite(section: &Section<'_>, around: &Around<'_>) -> BoxliteConfig {
    let default = BoxliteConfig::default();
    let cpus = section.number("cpus");
    for (one, other) in [("endpoint", "command"), ("image", "rootfs_path")] {
        if section.has(one) && section.has(other) {
            section.wrong(&format!("has both {one} and {other}; keep one"));
        }
    }
    if cpus == Some(0.0) {
        section.wrong_key("cpus", "must be more than 0");
    }
    let network = section.network("network").unwrap_or_default();
    match &network {
        // Sent as it is, it would be no limit at all.
        Network::Hosts(hosts) if hosts.is_empty() => {
            section.wrong_key("network", "names no host; write \"off\" for none");
        }
        Network::Hosts(hosts) if hosts.iter().any(|host| host.trim().is_empty()) => {
            section.wrong_key("network", "holds an empty name of a host");
        }
        _ => {}
    }
    BoxliteConfig {
        endpoint: endpoint(section),
        command: section.filled("command"),
        image: section.filled("image"),
        rootfs_path: section.filled("rootfs_path").map(|path| resolve(&path, around)),
        cpus,
        memory_mib: section.count("memory_mib", 1..1 << 32),
        network,
        start_timeout: section.duration("start_timeout").unwrap_or(default.start_timeout),
        path: default.path,
    }
}

/// Servers count whole seconds.
fn ttl(section: &Section<'_>) -> Option<Duration> {
    let ttl = section.duration("ttl")?;
    if ttl.as_secs() == 0 {
        section.wrong_key("ttl", "must be a second or more");
    }
    Some(ttl)
}

fn endpoint(section: &Section<'_>) -> Option<String> {
    let endpoint = section.filled("endpoint")?;
    if let Err(why) = server(&endpoint) {
        section.wrong_key("endpoint", &why);
    }
    Some(endpoint.trim_end_matches('/').to_owned())
}

/// Tells what keeps `endpoint` from being the address of a server.
fn server(endpoint: &str) -> Result<(), String> {
    let like = "an address such as \"http://127.0.0.1:8114\"";
    let url = url::Url::parse(endpoint).map_err(|why| format!("must be {like}: {why}"))?;
    let blank = endpoint.contains(|c: char| c.is_whitespace() || c.is_control());
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) || blank {
        return Err(format!("must be {like}"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a name or password: that is what access_token is for".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must end with the path".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::server;

    #[test]
    fn addresses_of_servers() {
        for (endpoint, is_one) in [
            ("http://127.0.0.1:8114", true),
            ("https://bay.example/api/", true),
            ("HTTP://[::1]:1", true),
            ("http://", false),
            ("http://h:99999", false),
            ("http://h h", false),
            ("http://a\nb", false),
            ("http://h/?q=1", false),
            ("http://h/#f", false),
            ("http://u:p@h", false),
            ("ftp://h", false),
            ("127.0.0.1:8114", false),
            ("bay", false),
        ] {
            assert_eq!(server(endpoint).is_ok(), is_one, "{endpoint}");
        }
    }
}
