//! Skills and remote computers: a skill's files go where the tools are, and a release comes back as a skill.

use std::fs;
use std::path::Path;

use super::*;

fn skill(workspace: &Path, name: &str, says: &str) {
    let folder = workspace.join(".agents/skills").join(name);
    fs::create_dir_all(folder.join("scripts")).expect("a folder");
    let text = format!("---\nname: {name}\ndescription: How to greet.\n---\nRun scripts/greet.sh.\n");
    fs::write(folder.join("SKILL.md"), text).expect("a skill");
    fs::write(folder.join("scripts/greet.sh"), format!("echo {says}\n")).expect("a script");
}

fn with_skills(server: &ModelServer, extra: String) -> Daemon {
    let agent = "skills = [\"greeting\"]".into();
    Daemon::with(server, Setup { agent, extra, ..Setup::default() })
}

/// The model loads the skill and runs its script by the place that `load_skill` names.
fn loads_and_runs() -> ModelServer {
    ModelServer::answering(|request, n| {
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let said = messages.last().and_then(|last| last["content"].as_str()).unwrap_or_default().to_owned();
        let place = said.split("relative paths in it mean: ").nth(1).and_then(|rest| rest.lines().next());
        Some(match place {
            Some(place) => call(&format!("c{n}"), "exec", json!({"command": format!("sh {place}/scripts/greet.sh")})),
            None if said == "p" => call(&format!("c{n}"), "load_skill", json!({"name": "greeting"})),
            None => Turn::text("done"),
        })
    })
}

fn check(booter: &str, extra: String) {
    let server = loads_and_runs();
    let daemon = with_skills(&server, extra);
    let mut client = daemon.client();
    skill(&daemon.workspace(), "greeting", "hello");
    let session = session(&daemon, &mut client, booter);
    client.run(&session, "p");
    assert_eq!(result(&mut client, &session), ("hello".into(), true), "{booter}");
    skill(&daemon.workspace(), "greeting", "welcome");
    client.run(&session, "p");
    assert_eq!(result(&mut client, &session), ("welcome".into(), true), "{booter}: edited, it is brought again");
}

#[test]
fn bug_12_an_edited_skill_is_brought_again_to_neo() {
    let bay = Bay::start();
    check("shipyard_neo", neo(&bay));
}

#[test]
fn bug_11_a_skills_place_on_a_ship_is_where_it_really_is() {
    let ships = Ships::start();
    check("shipyard", shipyard(&ships));
}

#[test]
fn a_skill_is_worth_something_without_its_computer() {
    let server = ModelServer::script(vec![call("c1", "load_skill", json!({"name": "greeting"})), Turn::text("done")]);
    let daemon = with_skills(&server, "[booters.shipyard_neo]\n".into());
    let mut client = daemon.client();
    skill(&daemon.workspace(), "greeting", "hello");
    let session = session(&daemon, &mut client, "shipyard_neo");
    client.run(&session, "p");
    let (text, ok) = result(&mut client, &session);
    assert!(ok && text.contains("Run scripts/greet.sh.") && text.contains("endpoint"), "{text}");
}

#[test]
fn a_release_becomes_a_skill_that_can_be_loaded() {
    let bay = Bay::start();
    let value = |messages: &Value, key: &str| {
        let all = messages.as_array().cloned().unwrap_or_default();
        let mut found = all.iter().rev().filter_map(|one| serde_json::from_str::<Value>(one["content"].as_str()?).ok());
        found.find_map(|one| one[key].as_str().map(str::to_owned)).unwrap_or_default()
    };
    let markdown = "---\nname: greet\ndescription: How to greet people.\n---\nSay hello first.\n";
    let server = ModelServer::answering(move |request, n| {
        let messages = &request["messages"];
        let id = format!("c{n}");
        Some(match n {
            1 => call(&id, "exec", json!({"command": "echo hello"})),
            2 => call(&id, "get_execution_history", json!({})),
            3 => call(&id, "create_skill_payload", json!({"payload": {"skill_markdown": markdown}})),
            4 => {
                let history = messages.as_array().cloned().unwrap_or_default();
                let entries = history.iter().filter_map(|one| one["content"].as_str());
                let mut entries = entries.filter_map(|text| serde_json::from_str::<Value>(text).ok());
                let execution = entries.find_map(|one| one["entries"][0]["id"].as_str().map(str::to_owned));
                let execution = execution.expect("an execution");
                let made = json!({"skill_key": "greet", "source_execution_ids": [execution], "payload_ref": value(messages, "payload_ref")});
                call(&id, "create_skill_candidate", made)
            }
            5 => {
                let candidate = value(messages, "id");
                call(&id, "promote_skill_candidate", json!({"candidate_id": candidate, "stage": "stable"}))
            }
            6 => {
                let all = messages.as_array().cloned().unwrap_or_default();
                let refused = all.last().and_then(|one| one["content"].as_str()).unwrap_or_default();
                assert!(refused.contains("evaluat"), "{refused}");
                call(&id, "evaluate_skill_candidate", json!({"candidate_id": value(messages, "id"), "passed": true}))
            }
            7 => {
                let all = messages.as_array().cloned().unwrap_or_default();
                let last = all.last().and_then(|one| one["content"].as_str()).unwrap_or_default();
                let candidate = serde_json::from_str::<Value>(last).expect("an evaluation");
                let candidate = candidate["candidate_id"].as_str().expect("a candidate");
                call(&id, "promote_skill_candidate", json!({"candidate_id": candidate, "stage": "stable"}))
            }
            _ => Turn::text("done"),
        })
    });
    let setup = Setup { extra: neo(&bay), ..Setup::default() };
    let daemon = Daemon::with(&server, setup);
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "shipyard_neo");
    client.run(&session, "p");
    let (text, ok) = result(&mut client, &session);
    assert!(ok, "{text}");
    let skills: Value = client.get("skill.list", &json!({ "session": session }));
    let skills = skills["skills"].as_array().cloned().unwrap_or_default();
    let made = skills.iter().find(|one| one["description"] == "How to greet people.").cloned();
    let made = made.unwrap_or_else(|| panic!("no such skill after {text} in {skills:?}"));
    assert_eq!((made["valid"].as_bool(), made["source"].as_str()), (Some(true), Some("workspace")), "{made}");
    let offered = server.requests().last().cloned().unwrap_or_default()["messages"][0].to_string();
    assert!(offered.contains("How to greet people."), "the catalogue has it at once: {offered}");
}
