//! Sessions in boxes of `boxlite serve`: what they are offered, where their commands run, and that no box is left over.

use nano_protocol::session::SessionTools;
use nano_tests::boxlite::{Boxlite, Fault};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::wait;
use serde_json::{Value, json};

fn daemon(model: &ModelServer, boxes: &Boxlite) -> Daemon {
    let url = boxes.url();
    let extra = format!("[booters.boxlite]\nendpoint = \"{url}\"\nimage = \"debian:stable\"\nstart_timeout = \"2s\"\n");
    Daemon::with(model, Setup { agent: "skills = []".into(), extra, ..Setup::default() })
}

fn open(daemon: &Daemon, client: &mut Client) -> String {
    daemon.session_with(client, json!({"booter": "boxlite"}))
}

fn offered(client: &mut Client, session: &str) -> (Vec<String>, bool, Value) {
    let tools: SessionTools = client.get("session.tools", &json!({ "session": session }));
    let names = tools.tools.iter().map(|tool| tool.name.clone()).collect();
    (names, tools.exact, json!(tools.capabilities))
}

const TOOLS: [&str; 4] = ["exec", "python", "upload_file", "download_file"];

#[test]
fn a_session_keeps_its_box_until_it_is_closed() {
    let boxes = Boxlite::start();
    let model = ModelServer::script(vec![
        Turn::exec("c1", "echo one > kept; sleep 1000 & echo $HOME_IS_NOT_HERE"),
        Turn::text("done"),
        Turn::exec("c2", "cat kept"),
        Turn::text("done"),
    ]);
    let mut daemon = daemon(&model, &boxes);
    let mut client = daemon.client();
    let session = open(&daemon, &mut client);
    let (names, exact, capabilities) = offered(&mut client, &session);
    assert_eq!((&names[names.len() - 4..], exact, capabilities), (&TOOLS.map(String::from)[..], false, json!(null)));
    assert_eq!(boxes.boxes(), []);
    client.run(&session, "p");
    let (after, exact, capabilities) = offered(&mut client, &session);
    assert_eq!((after, exact, capabilities), (names, true, json!(["shell", "python", "filesystem"])));
    wait::until("the end of what the task left", || boxes.running().is_empty().then_some(()));
    daemon.kill9();
    boxes.stop();
    daemon.restart();
    let mut client = daemon.client();
    client.run(&session, "q");
    let last = model.requests().pop().expect("a request").to_string();
    assert!(last.contains("one\\n") || last.contains("\"one\""), "{last}");
    assert_eq!(boxes.boxes().len(), 1);
    client.call("session.close", &json!({ "session": session })).expect("a session that closes");
    wait::until("no box", || boxes.boxes().is_empty().then_some(()));
}

#[test]
fn a_box_that_does_not_start_is_told_of_and_not_left_over() {
    let boxes = Boxlite::start();
    boxes.fault(Some(Fault::StartHangs));
    let model = ModelServer::script(Vec::new());
    let daemon = daemon(&model, &boxes);
    let mut client = daemon.client();
    let session = open(&daemon, &mut client);
    let error = client.call("session.boot", &json!({ "session": session })).expect_err("a boot that fails");
    assert!(error.message.contains("start_timeout"), "{error:?}");
    wait::until("no box", || boxes.boxes().is_empty().then_some(()));
}

#[test]
fn the_daemons_own_files_do_not_leave_through_a_workspace_that_holds_them() {
    let boxes = Boxlite::start();
    let upload = |id: &str, path: &str| Turn {
        calls: vec![Call {
            id: id.into(),
            name: "upload_file".into(),
            arguments: json!({"local_path": path, "remote_path": "up"}),
        }],
        ..Turn::default()
    };
    let model = ModelServer::script(vec![upload("c1", "nanod.toml"), upload("c2", "state/own"), Turn::text("done")]);
    let daemon = daemon(&model, &boxes);
    std::fs::write(daemon.state().join("own"), "x").expect("a file");
    let mut client = daemon.client();
    let session: Value = client.get("session.create", &json!({"booter": "boxlite", "workspace": daemon.root()}));
    let session = session["id"].as_str().expect("an id").to_owned();
    client.run(&session, "p");
    let last = model.requests().pop().expect("a request").to_string();
    assert_eq!(last.matches("one of nanod's own files").count(), 2, "{last}");
    assert!(!boxes.folder().join("up").exists());
}
