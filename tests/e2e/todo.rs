//! `todo`: one list for each session, which outlives the daemon.

use nano_protocol::session::Session;
use serde_json::{Value, json};

use crate::web_kit::Kit;

fn list(kit: &mut Kit, session: &str) -> Value {
    json!(kit.client.get::<Session>("session.get", &json!({ "session": session })).todo)
}

#[test]
fn the_list_is_kept_shown_and_forgotten_with_its_session() {
    let mut kit = Kit::new("", Vec::new());
    let session = kit.session.clone();
    assert_eq!(list(&mut kit, &session), json!([]));
    let first = json!([{"text": "look", "state": "done"}, {"text": "write", "state": "in_progress"}, {"text": "test", "state": "pending"}]);
    assert_eq!(kit.done("todo", &json!({ "items": first })), "[x] look\n[>] write\n[ ] test");
    assert_eq!(list(&mut kit, &session), first);
    for (bad, why) in [
        (json!([{"text": "a", "state": "doing"}]), "pending, in_progress or done"),
        (json!([{"text": "", "state": "done"}]), "1 to 500"),
        (json!([{"text": "a"}]), "state"),
        (json!([{"text": "a", "state": "done", "x": 1}]), "x"),
        (json!("a"), "array"),
    ] {
        assert!(kit.failed("todo", &json!({ "items": bad })).contains(why), "{bad}");
    }
    assert_eq!(list(&mut kit, &session), first, "what is refused changes nothing");
    kit.daemon.kill9();
    kit.daemon.restart();
    kit.client = kit.daemon.client();
    assert_eq!(list(&mut kit, &session), first);
    let shown = kit.daemon.ctl(["session", "show", &session]).run().expect_code(0);
    assert!(shown.contains("in_progress: write"), "{shown}");
    let other = kit.daemon.session(&mut kit.client);
    assert_eq!(list(&mut kit, &other), json!([]), "another session has another list");
    kit.done("todo", &json!({"items": []}));
    assert_eq!(list(&mut kit, &session), json!([]));
}
