#![expect(clippy::unwrap_used, reason = "tests")]

use nano_protocol::session::{Level, ToolMode};
use serde_json::{Value, json};

use super::*;

fn above(level: &str) -> Session {
    let session: Value = json!({
        "id": "ses_1", "name": null, "owner": 0, "agent": "a", "workspace": "/w", "booter": "shipyard_neo",
        "booted": false, "capabilities": null, "model": "m", "level": level, "tool_mode": "all", "tools": ["exec"],
        "skills": ["s"], "state": "idle", "metadata": {}, "created_at": "2027-01-01T00:00:00.000Z",
        "updated_at": "2027-01-01T00:00:00.000Z", "usage": {"input_tokens": 0, "output_tokens": 0}
    });
    serde_json::from_value(session).unwrap()
}

#[test]
fn nobody_named_is_the_parent_again() {
    for level in ["read-only", "workspace-write", "host"] {
        let made = Made::from(&above(level), None);
        let expected = Made {
            model: Some("m".into()),
            booter: "shipyard_neo".into(),
            level: level.parse().unwrap(),
            tool_mode: ToolMode::All,
            tools: Some(vec!["exec".into()]),
            skills: Some(vec!["s".into()]),
        };
        assert_eq!(made, expected);
    }
}

#[test]
fn a_level_is_never_weaker() {
    for parent in Level::ALL.iter().copied() {
        for profile in Level::ALL.iter().copied() {
            let agent = AgentConfig { level: profile, ..AgentConfig::default() };
            let made = Made::from(&above(parent.as_str()), Some(agent)).level;
            assert!(made <= parent && made <= profile && (made == parent || made == profile), "{parent} {profile}");
        }
    }
}

#[test]
fn a_profile_brings_what_it_says() {
    let quiet = Made::from(&above("host"), Some(AgentConfig::default()));
    assert_eq!((quiet.model.as_deref(), quiet.booter.as_str()), (Some("m"), "shipyard_neo"), "it says neither");
    assert_eq!((quiet.tool_mode, quiet.tools, quiet.skills), (ToolMode::Core, None, None));
    let agent = AgentConfig {
        model: Some("other".into()),
        booter: "none".into(),
        names_booter: true,
        tools: Some(vec![]),
        ..AgentConfig::default()
    };
    let made = Made::from(&above("host"), Some(agent));
    assert_eq!((made.model.as_deref(), made.booter.as_str(), made.tools), (Some("other"), "none", Some(vec![])));
}
