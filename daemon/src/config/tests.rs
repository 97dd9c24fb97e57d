//! The config file as tables of text and outcome.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

mod problems;

/// Every table and key, each with a value that is not its default.
const WHOLE: &str = r#"
[daemon]
log = "nanod=debug,info"
max_line = "1MiB"
drain = "5s"
workspaces = ["/srv/work", "~/code", "beside"]
time_zone = "europe/berlin"
keep_events = "2d"
socket_group = "staff"
roles = {}
[models.fast]
base_url = "http://localhost:8080/v1/"
model = "tiny"
api_key_env = "FAST_KEY"
context_window = 8192
max_output = 0x400
stream = false
idle_timeout = "90s"
price_input = 0.5
price_output = 2
fallback = ["another"]
[models.another]
api = "replay"
cassette = "tape.jsonl"
[agents.default]
model = "another"
[agents.reviewer]
model = "fast"
system_prompt = ""
booter = "sandbox"
level = "read-only"
tool_mode = "readonly"
tools = ["exec", "mcp__git__*"]
skills = []
max_turns = 3
timeout = "1h30m"
exec_timeout = "250ms"
exec_timeout_max = "1m"
enable_exec = false
enable_steering = false
enable_followup = true
restrict_to_workspace = false
resume = "ask"
approve = []
budget = 1
[booters.shipyard]
endpoint = "http://x"
access_token = "t"
ttl = "1h"
max_sessions = 3
[booters.shipyard_neo]
endpoint = "http://x"
access_token_env = "FAST_KEY"
profile = "p"
ttl = "1h"
[booters.boxlite]
command = "boxlite"
rootfs_path = "/x"
cpus = 2
memory_mib = 512
network = true
start_timeout = "9s"
[skills]
paths = ["/skills"]
watch = false
trust = ["/srv"]
[steering]
enabled = false
file = "steer.jsonl"
[tools.deploy]
description = "d"
input_schema = {type = "object", properties = {what = {type = "string"}, after = {}}}
output_schema = {}
argv = ["deploy", "{what}"]
timeout = "5m"
[mcp.git]
command = "git-mcp"
args = []
env = {A = "b"}
[mcp.web]
url = "http://x"
headers = {X = "y"}
[web]
allow = ["wiki.intern", "10.1.0.0/16", "127.0.0.1:8080"]
[web_search]
provider = "searxng"
base_url = "http://x"
api_key_env = "FAST_KEY"
[http_request]
hosts = ["api.example.com"]
methods = ["GET", "POST"]
"#;

fn env() -> Env {
    Env::of(1000, &[("HOME", "/home/p"), ("FAST_KEY", " s3cret\n"), ("TZ", "Asia/Tokyo")])
}

fn read(text: &str) -> Result<Config, ConfigError> {
    parse(
        text,
        Path::new("/etc/nanod/nanod.toml"),
        &Around { env: &env(), folder: Path::new("/etc/nanod"), secret_files: RefCell::default() },
    )
}

#[test]
fn every_key_is_taken() {
    let config = read(WHOLE).unwrap_or_else(|error| panic!("{error}"));
    insta::assert_debug_snapshot!(config);
}

#[test]
fn an_empty_file_means_defaults_in_the_systems_zone() {
    let mut expected = Config::default();
    expected.daemon.time_zone = "Asia/Tokyo".into();
    for text in ["", "[daemon]\n[agents]\n", "[daemon]\ntime_zone = \"system\"\n"] {
        assert_eq!(format!("{:?}", read(text).unwrap()), format!("{expected:?}"));
    }
}

#[test]
fn other_agents_do_not_inherit_from_default() {
    let config = read("[agents.default]\nmax_turns = 3\nbooter = \"none\"\n[agents.other]\n").unwrap();
    let (default, other) = (&config.agents["default"], &config.agents["other"]);
    assert_eq!((default.max_turns, default.booter.as_str()), (3, "none"));
    assert_eq!(format!("{other:?}"), format!("{:?}", AgentConfig::default()));
}

#[test]
fn the_first_model_is_the_files_first() {
    let config = read("[models.z]\nmodel=\"z\"\n[models.a]\nmodel=\"a\"\n[models.m]\nmodel=\"m\"\n").unwrap();
    assert_eq!(config.models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>(), ["z", "a", "m"]);
}

#[test]
fn files_that_are_missing_or_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nanod.toml");
    assert!(load_if_there(&path, &env()).is_ok());
    assert!(load(&path, &env()).unwrap_err().to_string().starts_with(path.to_str().unwrap()));
    assert!(load_if_there(folder.path(), &env()).is_err(), "a folder is no file");
    std::fs::write(&path, b"[daemon]\nlog = \"\xff\"\n").unwrap();
    assert_eq!(
        load_if_there(&path, &env()).unwrap_err().to_string(),
        format!("{}:2: this is not UTF-8", path.display())
    );
}

#[test]
fn secrets_from_files_are_trimmed_and_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nanod.toml");
    std::fs::write(&path, "[models.a]\nmodel = \"m\"\napi_key_file = \"key\"\n").unwrap();
    let missing = load(&path, &env()).unwrap_err().to_string();
    assert!(missing.contains(":3: api_key_file names ") && missing.contains("/key"), "{missing}");
    std::fs::write(folder.path().join("key"), "sk-1\n").unwrap();
    let config = load(&path, &env()).unwrap();
    assert_eq!(config.models[0].api_key, Some(Secret("sk-1".into())));
    assert_eq!(config.secret_files, [folder.path().join("key")]);
    assert!(!format!("{config:?}").contains("sk-1"));
}

#[test]
fn a_token_of_the_environment_goes_to_its_server_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nanod.toml");
    for (named, variable, token) in [
        (None, None, true),
        (None, Some("http://a:8114"), true),
        (Some("http://a:8114"), None, true),
        (Some("http://a:8114"), Some("http://A:8114/"), true),
        (Some("http://a:8114/v1"), Some("http://a:8114"), true),
        (Some("http://a:8114"), Some("http://b:8114"), false),
        (Some("http://a:8114"), Some("https://a:8114"), false),
        (Some("http://a:8114"), Some("http://a:8115"), false),
        (Some("http://a:8114"), Some("a"), false),
    ] {
        for (table, names) in [
            ("shipyard", ["SHIPYARD_ENDPOINT", "SHIPYARD_ACCESS_TOKEN"]),
            ("shipyard_neo", ["BAY_ENDPOINT", "BAY_TOKEN"]),
        ] {
            let line = named.map(|at| format!("endpoint = \"{at}\"\n")).unwrap_or_default();
            std::fs::write(&path, format!("[booters.{table}]\n{line}")).unwrap();
            let vars: Vec<_> = variable.map(|at| (names[0], at)).into_iter().chain([(names[1], "t")]).collect();
            let booters = load(&path, &Env::of(1, &vars)).unwrap().booters;
            let tokens = [booters.shipyard.access_token, booters.shipyard_neo.access_token];
            assert_eq!(tokens.iter().flatten().count(), usize::from(token), "{table} {named:?} {variable:?}");
        }
    }
}

#[test]
fn paths_start_at_the_config_file() {
    let config = read("[daemon]\nworkspaces = [\"/a\", \"~/b\", \"~\", \"c\"]\n").unwrap();
    let expected = ["/a", "/home/p/b", "/home/p/", "/etc/nanod/c"].map(PathBuf::from);
    assert_eq!(config.daemon.workspaces, expected);
    assert_eq!(config.daemon.drain, Duration::from_secs(20));
}

#[test]
fn words_of_commands() {
    let (text, field) = (|text: &str| Piece::Text(text.into()), |name: &str| Piece::Field(name.into()));
    for (word, expected) in [
        ("", vec![text("")]),
        ("a", vec![text("a")]),
        ("{a}", vec![field("a")]),
        ("-n={a}:{b.c}/", vec![text("-n="), field("a"), text(":"), field("b.c"), text("/")]),
        ("{{a}}", vec![text("{a}")]),
        ("{{{a}}}", vec![text("{"), field("a"), text("}")]),
        ("$HOME `x` '", vec![text("$HOME `x` '")]),
    ] {
        assert_eq!(Word::parse(word), Ok(Word(expected)), "{word}");
    }
}

#[test]
fn a_schema_stands_as_it_was_written() {
    let table = "[tools.t]\nargv = [\"a\"]\n[tools.t.input_schema]\ntype = \"object\"\n\
                 [tools.t.input_schema.properties]\nz = {type = \"integer\", minimum = 0x10, maximum = 2.5e1}\n\
                 a = {enum = [true, \"x\"]}";
    let json = r#"{"type":"object","properties":{"z":{"type":"integer","minimum":16,"maximum":25.0},"a":{"enum":[true,"x"]}}}"#;
    let text = format!("[tools.t]\nargv = [\"a\"]\ninput_schema = '{json}'");
    for file in [table, &text] {
        let config = read(file).unwrap();
        assert_eq!(serde_json::to_string(config.tools[0].input_schema.as_object()).unwrap(), json);
    }
    let bare = read("[tools.t]\nargv = [\"df\", \"-h\"]").unwrap();
    assert_eq!(bare.tools[0].description, "Runs df.");
}
