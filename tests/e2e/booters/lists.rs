//! The lists of each booter, before boot and after it, as golden files; `nanoctl tools` and `prompts` show the same.

use std::fmt::Write;

use nano_protocol::session::SessionPrompts;
use nano_tests::boxlite::Boxlite;
use nano_tests::sandboxes::Capabilities;
use serde_json::json;

use super::*;

fn golden(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/booters").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Renders a list: what is known of the computer, then each tool with its source and needs.
fn render(tools: &SessionTools) -> String {
    let SessionTools { booter, booted, exact, .. } = tools;
    let mut text =
        format!("booter {booter}, booted {booted}, exact {exact}, capabilities {}\n", json!(tools.capabilities));
    for tool in &tools.tools {
        writeln!(text, "{} {} {}", tool.name, tool.source, json!(tool.requires)).expect("room for text");
    }
    text
}

fn check(booter: &str, extra: &str, after: &str) {
    let server = ModelServer::script(Vec::new());
    let daemon = daemon(&server, extra);
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, booter);
    let before = tools(&mut client, &session);
    assert_eq!(render(&before), golden(&format!("{booter}-before.txt")));
    boot(&mut client, &session);
    let now = tools(&mut client, &session);
    assert_eq!(render(&now), golden(after));
    for word in [session.as_str(), "--json"] {
        let args = if word == "--json" { vec!["--json", "tools", &session] } else { vec!["tools", word] };
        let shown = daemon.ctl(args).run().expect_code(0);
        for name in names(&now) {
            assert!(shown.contains(name), "{name} is not in\n{shown}");
        }
    }
    let prompts: SessionPrompts = client.get("session.prompts", &json!({ "session": session }));
    let parts: Vec<_> = prompts.prompts.iter().map(|part| format!("{} {}", part.name, part.source)).collect();
    assert_eq!(parts.join("\n") + "\n", golden(&format!("{booter}-prompts.txt")));
    let shown = daemon.ctl(["prompts", session.as_str(), "--assembled"]).run().expect_code(0);
    assert_eq!(shown.trim_end(), prompts.assembled.trim_end());
    let json = daemon.ctl(["--json", "prompts", session.as_str()]).run().expect_code(0);
    assert_eq!(serde_json::from_str::<SessionPrompts>(&json).expect("the result"), prompts);
}

#[test]
fn none() {
    check("none", "", "none-after.txt");
}

#[test]
fn shipyard_is_exact_as_declared() {
    let ships = Ships::start();
    check("shipyard", &shipyard(&ships), "shipyard-after.txt");
}

#[test]
fn neo_with_a_browser() {
    let bay = Bay::start();
    bay.set_capabilities(Capabilities::Given(["browser", "filesystem", "python", "shell"].map(String::from).into()));
    check("shipyard_neo", &neo(&bay), "shipyard_neo-browser.txt");
}

#[test]
fn neo_without_a_browser() {
    let bay = Bay::start();
    bay.set_capabilities(Capabilities::Given(["filesystem", "shell", "python"].map(String::from).into()));
    check("shipyard_neo", &neo(&bay), "shipyard_neo-after.txt");
}

#[test]
fn neo_that_does_not_say() {
    for silent in [Capabilities::Missing, Capabilities::Null] {
        let bay = Bay::start();
        bay.set_capabilities(silent);
        check("shipyard_neo", &neo(&bay), "shipyard_neo-silent.txt");
    }
}

#[test]
fn neo_that_can_do_nothing() {
    let bay = Bay::start();
    bay.set_capabilities(Capabilities::Given(Vec::new()));
    check("shipyard_neo", &neo(&bay), "shipyard_neo-nothing.txt");
}

#[test]
fn a_box_has_what_is_found_in_it() {
    let boxes = Boxlite::start();
    check("boxlite", &boxlite(&boxes), "boxlite-after.txt");
}
