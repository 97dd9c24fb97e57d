//! What a model sees of what was run.

use serde_json::{Value, json};

use super::Session;
use super::server::{Server, say};

#[tokio::test]
async fn the_history_shows_commands_as_they_were_given() {
    let server = Server::working();
    let session = Session::new(&server).await;
    for text in ["echo it\\'s | cat", "exit 3", "sleep 60"] {
        let timeout = if text.starts_with("sleep") { 1 } else { 20 };
        session.call("exec", json!({"command": text, "timeout": timeout})).await;
    }
    let told = session.done("get_execution_history", json!({})).await;
    let seen: Vec<_> = told["entries"].as_array().unwrap().iter().map(|one| (&one["code"], &one["success"])).collect();
    let [yes, no] = [json!(true), json!(false)];
    let expected = [(&json!("sleep 60"), &Value::Null), (&json!("exit 3"), &no), (&json!("echo it\\'s | cat"), &yes)];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_command_is_in_the_history_as_it_ended_though_it_took_a_while() {
    let server = Server::working();
    let session = Session::new(&server).await;
    for text in ["sleep 1.5; echo yes", "sleep 1.5; exit 3"] {
        session.call("exec", json!({"command": text, "timeout": 20})).await;
    }
    let told = session.done("get_execution_history", json!({})).await;
    let seen: Vec<_> =
        told["entries"].as_array().unwrap().iter().map(|one| (&one["output"], &one["success"])).collect();
    assert_eq!(seen, [(&json!(""), &json!(false)), (&json!("yes"), &json!(true))]);
}

#[tokio::test]
async fn what_ran_on_after_its_request_is_no_success_and_not_known() {
    let server = Server::working();
    let session = Session::new(&server).await;
    session.call("exec", json!({"command": "sleep 1234", "background": true})).await;
    session.call("exec", json!({"command": "true"})).await;
    let told = session.done("get_execution_history", json!({})).await;
    let entry = &told["entries"][1];
    assert_eq!((&entry["code"], &entry["success"]), (&json!("sleep 1234"), &Value::Null));
    assert!(entry["output"].as_str().unwrap().contains("not known"), "{entry}");
    let told = session.done("get_execution_history", json!({"success_only": true})).await;
    assert_eq!(told["entries"].as_array().unwrap().len(), 1, "{told}");
    session.fixture.context.sandbox.as_ref().unwrap().shutdown().await;
}

#[tokio::test]
async fn what_is_left_out_of_the_history_does_not_take_the_place_of_others() {
    let own = |n: usize| json!({"id": format!("own-{n}"), "tags": "nanod", "code": "x"});
    let entry = |n: usize| json!({"id": format!("exec-{n}"), "tags": null, "code": "x"});
    let all: Vec<Value> = (0..700).map(own).chain((0..50).map(entry)).collect();
    let history = all.clone();
    let server = Server::start(move |asked| match asked.parts() {
        (_, path, query) if path.ends_with("/history") => say(200, &super::records::page(&history, query)),
        _ => super::server::Act::Serve,
    });
    let session = Session::new(&server).await;
    for (arguments, expected) in [
        (json!({"limit": 2}), 0..2),
        (json!({"limit": 3, "offset": 4}), 4..7),
        (json!({}), 0..50),
        (json!({"limit": 5, "offset": 49}), 49..50),
        (json!({"offset": 50}), 50..50),
    ] {
        let told = session.done("get_execution_history", arguments.clone()).await;
        let expected: Vec<Value> = expected.map(entry).collect();
        assert_eq!(told, json!({"entries": expected}), "{arguments}");
    }
}
