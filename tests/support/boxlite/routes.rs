//! What each path does, and the faults.

use std::io::Result;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use rustix::process::Signal;
use serde_json::{Value, json};
use tungstenite::Message;

use super::execution::{Execution, Next};
use super::wire::{refuse, reply, upgrade};
use super::{Seen, Shared};
use crate::http::{Request, read};

/// What a bad server, or a bad host, does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A start fails, with these words.
    StartFails(String),
    /// A start never ends.
    StartHangs,
    /// Every request is refused for its key.
    Unauthorized,
    /// Every request is sent elsewhere.
    Redirect(String),
    /// Every reply is this text, with status 200.
    Says(String),
    /// A connection that shows output is reset after so many frames.
    Resets(usize),
    /// The same, the first time.
    ResetsOnce(usize),
    /// Programs end, and their end cannot be waited for.
    WaitFails,
    /// A connection that shows output cannot be opened.
    NoAttach,
    /// A box is made, but the connection is cut before the reply.
    CutsAfterCreate,
}

const FIELDS: [&str; 20] = [
    "name",
    "image",
    "rootfs_path",
    "cpus",
    "memory_mib",
    "disk_size_gb",
    "working_dir",
    "env",
    "entrypoint",
    "cmd",
    "user",
    "tty",
    "network",
    "secrets",
    "auto_stop",
    "auto_delete",
    "auto_resume",
    "detach",
    "volumes",
    "advanced",
];

/// Serves one connection.
pub fn serve(stream: TcpStream, shared: &Arc<Shared>) -> Result<()> {
    let request = read(&stream)?;
    let what = format!("{} {}", request.method, request.path);
    let authorization = request.header("authorization").map(str::to_owned);
    shared.lock().seen.push(Seen { what, authorization: authorization.clone(), body: request.json() });
    let key = shared.key.as_ref().map(|key| format!("Bearer {key}"));
    let fault = shared.lock().fault.clone();
    match &fault {
        Some(Fault::Unauthorized) => return refuse(&stream, 401, "unauthenticated", "invalid or missing API key"),
        Some(Fault::Redirect(to)) => return reply(&stream, 307, Some(to), ""),
        Some(Fault::Says(text)) => return reply(&stream, 200, None, text),
        _ if key.is_some() && authorization != key => {
            return refuse(&stream, 401, "unauthenticated", "invalid or missing API key");
        }
        _ => {}
    }
    let path: Vec<&str> = request.path.trim_start_matches("/v1/").split('/').collect();
    match (request.method.as_str(), path.as_slice()) {
        ("GET", ["me"]) => reply(&stream, 200, None, r#"{"type":"local"}"#),
        ("GET", ["boxes"]) => {
            let boxes: Vec<Value> = shared.boxes().into_iter().map(|(_, found)| found).collect();
            reply(&stream, 200, None, &json!({"boxes": boxes}).to_string())
        }
        ("POST", ["boxes"]) => create(&stream, shared, &request, fault.as_ref()),
        (_, ["boxes", id, rest @ ..]) => match shared.read(id) {
            Some(found) => of_box(stream, shared, &request, (id, &found), rest),
            None => refuse(&stream, 404, "not_found", &format!("box not found: {id}")),
        },
        _ => reply(&stream, 404, None, ""),
    }
}

fn create(stream: &TcpStream, shared: &Shared, request: &Request, fault: Option<&Fault>) -> Result<()> {
    let wish = request.json();
    let strange = wish.as_object().into_iter().flatten().find(|(name, _)| !FIELDS.contains(&name.as_str()));
    if let Some((name, _)) = strange {
        return refuse(stream, 400, "invalid_argument", &format!("unknown field `{name}`"));
    }
    if wish.get("cpus").is_some_and(|cpus| !cpus.is_u64()) {
        return refuse(stream, 400, "invalid_argument", "cpus: expected u8");
    }
    if shared.boxes().iter().any(|(_, found)| found["name"] == wish["name"]) {
        return refuse(stream, 409, "already_exists", "a box of this name exists");
    }
    let id = {
        let mut state = shared.lock();
        state.made += 1;
        format!("box{}x{}", std::process::id(), state.made)
    };
    let found =
        json!({"box_id": id, "name": wish["name"], "status": "configured", "image": wish["image"], "pid": null});
    shared.write(&id, &found);
    if fault == Some(&Fault::CutsAfterCreate) {
        shared.lock().fault = None;
        return stream.shutdown(Shutdown::Both);
    }
    reply(stream, 201, None, &found.to_string())
}

type Box<'a> = (&'a str, &'a Value);

fn of_box(stream: TcpStream, shared: &Arc<Shared>, request: &Request, of: Box<'_>, rest: &[&str]) -> Result<()> {
    let (id, found) = of;
    match (request.method.as_str(), rest) {
        ("GET", []) => reply(&stream, 200, None, &found.to_string()),
        ("DELETE", []) => {
            shared.remove(id);
            reply(&stream, 204, None, "")
        }
        ("POST", ["start"]) => start(&stream, shared, id),
        ("POST", ["stop"]) => {
            shared.set_status(id, "stopped");
            reply(&stream, 200, None, &shared.read(id).unwrap_or_default().to_string())
        }
        ("POST", ["exec"]) => {
            // It starts what stopped.
            shared.set_status(id, "running");
            let wish = request.json();
            match Execution::start(id, &shared.folder(id), &wish) {
                Ok(execution) => {
                    let mut state = shared.lock();
                    let name = format!("exec-{}", state.executions.len() + 1);
                    state.executions.insert(name.clone(), execution);
                    drop(state);
                    reply(&stream, 201, None, &json!({"execution_id": name}).to_string())
                }
                Err(why) => refuse(&stream, 500, "internal", &format!("spawn failed: {why}")),
            }
        }
        (_, ["executions", execution, rest @ ..]) => {
            let known = shared.lock().executions.get(*execution).cloned();
            match known.filter(|known| known.of_box == id) {
                Some(known) => of_execution(stream, shared, request, (execution, &known), rest),
                None => refuse(&stream, 404, "not_found", &format!("execution not found: {execution}")),
            }
        }
        _ => reply(&stream, 404, None, ""),
    }
}

fn start(stream: &TcpStream, shared: &Shared, id: &str) -> Result<()> {
    let fault = shared.lock().fault.clone();
    match fault {
        Some(Fault::StartFails(why)) => refuse(stream, 500, "internal", &why),
        Some(Fault::StartHangs) => {
            // Until the caller leaves.
            stream.set_read_timeout(Some(Duration::from_mins(1)))?;
            read(stream).map(drop)
        }
        _ => {
            shared.set_status(id, "running");
            reply(stream, 200, None, &shared.read(id).unwrap_or_default().to_string())
        }
    }
}

fn of_execution(
    stream: TcpStream,
    shared: &Shared,
    request: &Request,
    of: (&str, &Arc<Execution>),
    rest: &[&str],
) -> Result<()> {
    let (id, execution) = of;
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let status = match execution.exit() {
                Some(_) if shared.lock().fault == Some(Fault::WaitFails) => {
                    json!({"execution_id": id, "status": "completed", "exit_code": -1})
                }
                Some(code) => json!({"execution_id": id, "status": "completed", "exit_code": code}),
                None => json!({"execution_id": id, "status": "running"}),
            };
            reply(&stream, 200, None, &status.to_string())
        }
        ("DELETE", []) => {
            execution.signal(Signal::KILL);
            shared.lock().executions.remove(id);
            reply(&stream, 204, None, "")
        }
        ("POST", ["signal"]) => {
            let number = request.json()["signal"].as_i64();
            let Some(signal) = number.and_then(|number| Signal::from_named_raw(i32::try_from(number).ok()?)) else {
                return refuse(&stream, 400, "invalid_argument", "no such signal");
            };
            execution.signal(signal);
            reply(&stream, 204, None, "")
        }
        ("GET", ["attach"]) => {
            let mut state = shared.lock();
            let fault = state.fault.clone();
            if matches!(fault, Some(Fault::ResetsOnce(_))) {
                state.fault = None;
            }
            let refuses = fault == Some(Fault::NoAttach);
            state.attached.push(stream.try_clone()?);
            drop(state);
            match request.header("sec-websocket-key") {
                _ if refuses || !execution.claim() => {
                    refuse(&stream, 409, "invalid_state", "another client is attached")
                }
                Some(key) => attach(stream, key, execution, fault.as_ref()),
                None => refuse(&stream, 400, "invalid_argument", "no WebSocket"),
            }
        }
        _ => reply(&stream, 404, None, ""),
    }
}

fn attach(stream: TcpStream, key: &str, execution: &Arc<Execution>, fault: Option<&Fault>) -> Result<()> {
    let resets = match fault {
        Some(Fault::Resets(after) | Fault::ResetsOnce(after)) => Some(*after),
        _ => None,
    };
    let raw = stream.try_clone()?;
    let (mut reading, mut writing) = upgrade(stream, key)?;
    let fed = Arc::clone(execution);
    std::thread::spawn(move || {
        // Until the caller has gone, or was sent away.
        while let Ok(message) = reading.read() {
            match message {
                Message::Binary(bytes) => fed.input(Some(&bytes)),
                Message::Text(text) if text.contains("stdin_eof") => fed.input(None),
                _ => {}
            }
        }
        fed.release();
    });
    let mut seen = 0;
    while let Some(next) = execution.next(seen) {
        if resets.is_some_and(|after| seen >= after) {
            execution.release();
            // A close without a linger is a reset.
            set_socket_linger(&raw, Some(Duration::ZERO))?;
            return raw.shutdown(Shutdown::Both);
        }
        let sent = match next {
            Next::Frame(frame) => writing.send(Message::Binary(frame.into())),
            Next::Exit(code) => {
                let code = if fault == Some(&Fault::WaitFails) { -1 } else { code };
                let exit = json!({"type": "exit", "exit_code": code}).to_string();
                writing.send(Message::Text(exit.into())).and_then(|()| writing.close(None)).ok();
                writing.flush().ok();
                return Ok(());
            }
        };
        if sent.is_err() {
            return Ok(());
        }
        seen += 1;
    }
    Ok(())
}
