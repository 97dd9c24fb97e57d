//! A task that is taken up again after others ran: it is about its own words, and its own answer is its result.

use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::transcript;
use serde_json::{Value, json};

/// A model that fails the first two requests for good, and then answers with the last thing that a user said.
fn echoing() -> ModelServer {
    ModelServer::answering(|request, number| {
        if number <= 2 {
            return Some(Turn { status: Some(400), ..Turn::default() });
        }
        let last = last_message(request)["content"].as_str().unwrap_or_default().to_owned();
        Some(Turn::text(format!("re:{last}")))
    })
}

fn last_message(request: &Value) -> &Value {
    request["messages"].as_array().and_then(|messages| messages.last()).unwrap_or(&Value::Null)
}

fn resume(client: &mut Client, task: &Task, content: &str) {
    client.get::<Value>("task.resume", &json!({"task": task.id}));
    let task = client.settled(&task.id);
    let result = task.result.as_deref();
    assert_eq!((task.state, result), (TaskState::Succeeded, Some(format!("re:{content}").as_str())), "{task:?}");
}

fn check(restart: bool) {
    let server = echoing();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let old: Vec<Task> = ["old1", "old2"].map(|content| client.submit(&session, content)).into();
    for task in &old {
        assert_eq!(client.settled(&task.id).state, TaskState::Failed);
    }
    client.run(&session, "b");
    let newest = client.run(&session, "c");
    if restart {
        daemon.kill9();
        daemon.restart();
        client = daemon.client();
    }
    for (task, content) in old.iter().zip(["old1", "old2"]) {
        resume(&mut client, task, content);
        let request = server.requests().pop().expect("a request");
        let last = last_message(&request);
        assert_eq!((&last["role"], &last["content"]), (&json!("user"), &json!(content)), "{request:#}");
    }
    assert_eq!(client.settled(&newest.id).result.as_deref(), Some("re:c"), "others keep their results");
    transcript::check_pairs(&transcript::read(&mut client, &session), false);
}

#[test]
fn an_older_failed_task_is_about_its_own_words() {
    check(false);
    check(true);
}

#[test]
fn the_newest_one_is_not_said_twice() {
    let server = ModelServer::script(vec![Turn { status: Some(400), ..Turn::default() }, Turn::text("re:p")]);
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    assert_eq!(client.settled(&task.id).state, TaskState::Failed);
    resume(&mut client, &task, "p");
    assert_eq!(transcript::render(&transcript::read(&mut client, &session)), "U(p) A(re:p)");
}
