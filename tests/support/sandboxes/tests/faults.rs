//! Faults on demand.

use std::net::TcpStream;

use serde_json::{Value, json};

use super::bay::{caller, create};
use super::caller::{Heard, hear};
use crate::sandboxes::{Bay, Fault, Reply};

const CREATE: &str = "/v1/sandboxes";

fn create_under(bay: &Bay, fault: Fault) -> Heard {
    bay.fault(fault.once());
    caller(bay).post(CREATE, &json!({}))
}

fn is_silent(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket");
    let silent = stream.peek(&mut [0]).is_err();
    stream.set_nonblocking(false).expect("a socket");
    silent
}

#[test]
fn a_gate_holds_the_reply_after_the_effect_or_before() {
    let bay = Bay::start();
    bay.fault(Fault::hold("POST", CREATE, "late").once());
    bay.fault(Fault::hold_before("POST", CREATE, "early").once());
    let send = || caller(&bay).send("POST", CREATE, b"{}");
    let late = send();
    crate::wait::until("the effect", || (bay.sandboxes().len() == 1).then_some(()));
    let early = send();
    assert_eq!(bay.wait_requests("POST", "/sandboxes", 2).len(), 2);
    assert!(is_silent(&late) && is_silent(&early) && bay.sandboxes().len() == 1);
    bay.open("late");
    bay.open("early");
    hear(late).expect(201);
    hear(early).expect(201);
    assert_eq!(bay.sandboxes().len(), 2);
}

#[test]
fn a_broken_reply_has_its_effect_or_has_not() {
    let bay = Bay::start();
    let heard = create_under(&bay, Fault::reset("POST", CREATE));
    assert!(heard.broken && heard.head.is_empty() && bay.sandboxes().is_empty());
    let heard = create_under(&bay, Fault::lose("POST", CREATE));
    assert!(heard.broken && heard.head.is_empty() && bay.sandboxes().len() == 1);
    let heard = create_under(&bay, Fault::cut("POST", CREATE));
    assert!(heard.broken && bay.sandboxes().len() == 2, "{heard:?}");
    let heard = create_under(&bay, Fault::malformed("POST", CREATE));
    assert!(!heard.broken && heard.status == 200 && heard.json().is_null() && !heard.body.is_empty());
    let heard = create_under(&bay, Fault::oversized("POST", CREATE, 3));
    assert!(heard.body.len() > 3 << 20 && heard.expect(201)["id"].is_string());
    assert_eq!(bay.sandboxes().len(), 4);
}

#[test]
fn an_answer_can_be_given() {
    let (bay, trap) = (Bay::start(), Bay::start());
    let teapot = Reply::json(418, &json!({"tea": true})).with("Retry-After", "7");
    let heard = create_under(&bay, Fault::answer("POST", CREATE, teapot));
    assert!(heard.expect(418)["tea"] == true && heard.head.contains("Retry-After: 7"));
    let heard = create_under(&bay, Fault::redirect("POST", CREATE, 307, &trap.url()));
    assert!(heard.status == 307 && heard.head.contains(&format!("location: {}", trap.url())), "{}", heard.head);
    let id = create(&bay, &json!({}));
    bay.fault(Fault::not_ready("POST", "/shell/exec", 1500).times(2));
    let run = || caller(&bay).post(&format!("/v1/sandboxes/{id}/shell/exec"), &json!({"command": "true"}));
    let expected = json!({"sandbox_id": id, "retry_after_ms": 1500});
    assert_eq!([0; 2].map(|_| run().expect_error(503, "session_not_ready")), [expected.clone(), expected]);
    run().expect(200);
    assert!(trap.requests().is_empty());
}

#[test]
fn a_fault_strikes_whom_and_when_it_is_told() {
    let bay = Bay::start();
    let id = create(&bay, &json!({}));
    let path = format!("/v1/sandboxes/{id}");
    bay.fault(Fault::answer("GET", "/sandboxes/*", Reply::json(500, &Value::Null)).after(1).times(2));
    let statuses = [0; 4].map(|_| caller(&bay).get(&path).status);
    assert_eq!(statuses, [200, 500, 500, 200]);
    bay.fault(Fault::answer("*", "/history", Reply::json(500, &Value::Null)));
    assert_eq!([0; 3].map(|_| caller(&bay).get(&format!("{path}/history")).status), [500; 3]);
    caller(&bay).get(&path).expect(200);
    bay.clear_faults();
    caller(&bay).get(&format!("{path}/history")).expect(200);
}

#[test]
fn requests_are_kept_as_they_came() {
    let bay = Bay::start();
    let sent = caller(&bay).with("Idempotency-Key", "k").post(CREATE, &json!({"ttl": 5}));
    sent.expect(201);
    let request = &bay.requests_to("POST", "/sandboxes")[0];
    assert_eq!(request.header("authorization"), Some(format!("Bearer {}", bay.key()).as_str()));
    assert_eq!((request.header("idempotency-key"), request.json()), (Some("k"), json!({"ttl": 5})));
    caller(&bay).get("/v1/sandboxes?limit=3");
    assert_eq!((bay.requests()[1].path.as_str(), bay.requests()[1].query.as_str()), (CREATE, "limit=3"));
}

#[test]
fn a_chunked_body_is_read() {
    let bay = Bay::start();
    let address = bay.url().replace("http://", "");
    let mut stream = TcpStream::connect(address).expect("a live fake");
    let head = format!("POST {CREATE} HTTP/1.1\r\nAuthorization: Bearer {}\r\n", bay.key());
    let body = "Transfer-Encoding: chunked\r\n\r\n4\r\n{\"tt\r\n5\r\nl\":7}\r\n0\r\n\r\n";
    std::io::Write::write_all(&mut stream, (head + body).as_bytes()).expect("a request sent");
    assert!(hear(stream).expect(201)["expires_at"].is_string());
}
