//! Programs in a ship.

use std::path::PathBuf;
use std::time::Duration;

use nanod::sandbox::Ending;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::runs::failing;
use super::server::{Act, Asked, Server, say};
use super::{boot, program, run, until};

/// The server's own.
const LIMIT: Duration = Duration::from_secs(28);

fn is_exec(asked: &Asked, act: &str) -> bool {
    asked.line.contains("/exec ") && asked.json()["type"] == act
}

/// A server whose kernel says this.
fn kernel(data: &Value) -> Server {
    let reply = json!({"success": true, "data": data, "error": null});
    Server::start(move |asked| if is_exec(asked, "ipython/exec") { say(200, &reply) } else { Act::Serve })
}

#[tokio::test]
async fn python_says_what_it_printed_drew_and_failed_of() {
    let out = |text: &str, images: Value, error: Value| {
        json!({"success": error.is_null(), "execution_count": 1, "output": {"text": text, "images": images},
            "error": error, "kernel_id": "k"})
    };
    for (data, ending, expected) in [
        (out("hi\n", json!([]), Value::Null), Ending::Exited(0), "hi\n"),
        (
            out("", json!([{"image/png": "AAAA"}]), Value::Null),
            Ending::Exited(0),
            "[1 image, image/png, 3 bytes, not shown]",
        ),
        (out("a", json!([]), json!("\u{1b}[0;31mNameError\u{1b}[0m: x")), Ending::Exited(1), "a\nNameError: x"),
        (out("", json!([]), json!("Code execution timed out")), Ending::TimedOut, "Code execution timed out"),
    ] {
        let server = kernel(&data);
        let sandbox = boot(&server).await;
        let report = run(sandbox.as_ref(), program("1", 20)).await.unwrap();
        assert_eq!((report.ending, report.output.as_str()), (ending, expected));
    }
}

#[tokio::test]
async fn bug_16_python_says_where_its_own_limit_is() {
    let server =
        kernel(&json!({"success": false, "output": {"text": "", "images": []}, "error": "Code execution timed out"}));
    let sandbox = boot(&server).await;
    let report = run(sandbox.as_ref(), program("x", 300)).await.unwrap();
    assert!(report.ending == Ending::Limited(LIMIT) && report.output.contains("stopped after 28 s here"), "{report:?}");
    assert_eq!(server.asked("/exec ")[0].json()["payload"], json!({"code": "x", "timeout": 28}));
    let server = failing(say(400, &json!({"detail": "Request timeout"})));
    let sandbox = boot(&server).await;
    let report = run(sandbox.as_ref(), program("x", 300)).await.unwrap();
    assert!(report.ending == Ending::Limited(LIMIT) && report.output.contains("may still run"), "{report:?}");
}

#[tokio::test]
async fn a_long_output_of_python_lies_whole_in_the_sandbox() {
    let text = "line\n".repeat(30_000);
    let server = kernel(&json!({"success": true, "output": {"text": text, "images": []}, "error": null}));
    let sandbox = boot(&server).await;
    let report = run(sandbox.as_ref(), program("1", 20)).await.unwrap();
    let spill: PathBuf = report.spill.unwrap();
    assert!(report.output.contains(spill.to_str().unwrap()) && report.output.len() < 60_000);
    assert_eq!(std::fs::read_to_string(server.path(spill.to_str().unwrap())).unwrap(), text);
}

#[tokio::test]
async fn a_cancelled_program_is_not_waited_for() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let receiver = std::sync::Mutex::new(receiver);
    let server = Server::start(move |asked| {
        if is_exec(asked, "ipython/exec") {
            receiver.lock().unwrap().recv_timeout(Duration::from_secs(30)).ok();
        }
        Act::Serve
    });
    let sandbox = boot(&server).await;
    let cancel = CancellationToken::new();
    let (report, ()) = tokio::join!(sandbox.run(program("1", 20), &cancel), async {
        until(|| !server.asked("/exec ").is_empty()).await;
        cancel.cancel();
    });
    assert_eq!(report.unwrap().ending, Ending::Cancelled);
    drop(sender);
}
