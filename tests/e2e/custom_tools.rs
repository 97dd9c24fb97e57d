//! Commands from the config as tools: listed, offered behind the others, run, withheld with exec, taken up by a reload.

use nano_protocol::catalog::Tools;
use nano_protocol::session::SessionTools;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use serde_json::json;

const GREET: &str = "[tools.greet]\ndescription = \"Greets.\"\nargv = [\"printf\", \"%s!\", \"{whom}\"]\n\
                     output_schema = {type = \"string\"}\n[tools.greet.input_schema]\ntype = \"object\"\nrequired = [\"whom\"]\n\
                     properties = {whom = {type = \"string\"}}\n";

fn turn(tool: &str, arguments: serde_json::Value) -> Turn {
    let calls = vec![Call { id: "c1".into(), name: tool.into(), arguments }];
    Turn { calls, ..Turn::default() }
}

#[test]
fn a_configured_command_is_a_tool_like_others() {
    let server = ModelServer::script(vec![turn("greet", json!({"whom": "$(id) you"})), Turn::text("done")]);
    let daemon = Daemon::with(&server, Setup { extra: GREET.into(), ..Setup::default() });
    let mut client = daemon.client();
    let listed: Tools = client.get("tool.list", &json!({}));
    let greet = listed.tools.iter().find(|tool| tool.name == "greet").expect("the tool is listed");
    assert_eq!((greet.source.as_str(), greet.description.as_str()), ("config", "Greets."));
    assert_eq!(greet.requires, ["shell"]);
    assert!(greet.output_schema.is_some() && greet.input_schema["required"] == json!(["whom"]));
    let session = daemon.session(&mut client);
    let tools: SessionTools = client.get("session.tools", &json!({"session": session}));
    assert_eq!(tools.tools.last().map(|tool| tool.name.as_str()), Some("greet"), "behind the mode's");
    client.run(&session, "p");
    let told = server.requests()[1]["messages"].to_string();
    assert!(told.contains("$(id) you!"), "{told}");
}

#[test]
fn it_goes_with_exec_and_comes_with_a_reload() {
    let server = ModelServer::script(Vec::new());
    let daemon =
        Daemon::with(&server, Setup { extra: GREET.into(), agent: "enable_exec = false".into(), ..Setup::default() });
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let tools: SessionTools = client.get("session.tools", &json!({"session": session}));
    let why = tools.withheld.iter().find(|tool| tool.name == "greet").map(|tool| tool.why.as_str());
    assert_eq!(why, Some("enable_exec is off"));
    let file = daemon.root().join("nanod.toml");
    let text = std::fs::read_to_string(&file).expect("the config");
    std::fs::write(&file, text.replace("[tools.greet", "[tools.welcome")).expect("a config");
    let _: serde_json::Value = client.get("daemon.reload", &json!({}));
    let listed: Tools = client.get("tool.list", &json!({}));
    let names: Vec<_> = listed.tools.iter().map(|tool| tool.name.as_str()).filter(|name| name.ends_with('e')).collect();
    assert!(names.contains(&"welcome") && !names.contains(&"greet"), "{names:?}");
    std::fs::write(&file, text.replace("[tools.greet", "[tools.exec")).expect("a config");
    let refused = client.call("daemon.reload", &json!({})).expect_err("two tools of one name");
    assert!(refused.message.contains("there is a tool exec already, of booter:local"), "{}", refused.message);
}
