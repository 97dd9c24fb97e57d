//! Faults on demand: which request meets one, and what becomes of it.

use std::io::{Result, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use serde_json::json;

use super::wire::{self, Reply};
use crate::http::{self, Request};

const MIB: usize = 1 << 20;

/// A fault: the requests it is for and what happens to them. It strikes every one of them unless told how often.
///
/// The method `*` is any. The suffix is the last parts of the path, `*` for any one part; an empty one is any path:
/// `/sandboxes/*` is a sandbox itself, not what lies below it.
#[derive(Debug, Clone)]
pub struct Fault {
    method: String,
    suffix: String,
    skip: usize,
    left: usize,
    act: Act,
}

#[derive(Debug, Clone)]
enum Act {
    Hold(String),
    HoldBefore(String),
    Answer(Reply),
    NotReady(u64),
    Reset,
    Lose,
    Cut,
    Malformed,
    Oversized(usize),
}

impl Fault {
    fn new(method: &str, suffix: &str, act: Act) -> Self {
        let (method, suffix) = (method.to_owned(), suffix.to_owned());
        Self { method, suffix, skip: 0, left: usize::MAX, act }
    }

    /// Does what is asked and holds the reply until the test opens `gate`.
    pub fn hold(method: &str, suffix: &str, gate: &str) -> Self {
        Self::new(method, suffix, Act::Hold(gate.to_owned()))
    }

    /// Holds the request until the test opens `gate`, and only then does what is asked.
    pub fn hold_before(method: &str, suffix: &str, gate: &str) -> Self {
        Self::new(method, suffix, Act::HoldBefore(gate.to_owned()))
    }

    /// Does nothing and gives this answer.
    pub fn answer(method: &str, suffix: &str, reply: Reply) -> Self {
        Self::new(method, suffix, Act::Answer(reply))
    }

    /// Does nothing and sends the caller elsewhere, with 302 or 307.
    pub fn redirect(method: &str, suffix: &str, status: u16, url: &str) -> Self {
        Self::answer(method, suffix, Reply { status, ..Reply::default() }.with("location", url))
    }

    /// Does nothing and says 503 `session_not_ready`.
    pub fn not_ready(method: &str, suffix: &str, retry_after_ms: u64) -> Self {
        Self::new(method, suffix, Act::NotReady(retry_after_ms))
    }

    /// Does nothing and resets the connection before a byte of the reply.
    pub fn reset(method: &str, suffix: &str) -> Self {
        Self::new(method, suffix, Act::Reset)
    }

    /// Does what is asked and resets the connection before a byte of the reply: the caller never hears.
    pub fn lose(method: &str, suffix: &str) -> Self {
        Self::new(method, suffix, Act::Lose)
    }

    /// Does what is asked and resets the connection in the middle of the reply's body.
    pub fn cut(method: &str, suffix: &str) -> Self {
        Self::new(method, suffix, Act::Cut)
    }

    /// Does what is asked and replies with half of the JSON, as if it were whole.
    pub fn malformed(method: &str, suffix: &str) -> Self {
        Self::new(method, suffix, Act::Malformed)
    }

    /// Does what is asked and blows the reply's JSON up with so many MiB of blanks, without telling its length.
    pub fn oversized(method: &str, suffix: &str, mib: usize) -> Self {
        Self::new(method, suffix, Act::Oversized(mib))
    }

    /// Lets the first `count` of its requests pass.
    #[must_use]
    pub fn after(mut self, count: usize) -> Self {
        self.skip = count;
        self
    }

    /// Strikes only `count` times.
    #[must_use]
    pub fn times(mut self, count: usize) -> Self {
        self.left = count;
        self
    }

    /// Strikes once.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Tells whether it strikes `request`, and counts it.
    pub fn strikes(&mut self, request: &Request) -> bool {
        if !wire::is_to(request, &self.method, &self.suffix) || self.left == 0 {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.left = self.left.saturating_sub(usize::from(self.left != usize::MAX));
        true
    }

    /// Plays it: `effect` does what is asked, `pass` waits at a gate and says false when the server ends first.
    pub fn play(
        &self,
        mut stream: &TcpStream,
        request: &Request,
        effect: impl Fn() -> Reply,
        pass: impl Fn(&str) -> bool,
    ) -> Result<()> {
        match &self.act {
            Act::Hold(gate) => {
                let reply = effect();
                if pass(gate) { reply.send(&mut stream) } else { Ok(()) }
            }
            Act::HoldBefore(gate) if pass(gate) => effect().send(&mut stream),
            Act::HoldBefore(_) => Ok(()),
            Act::Answer(reply) => reply.send(&mut stream),
            Act::NotReady(wait) => not_ready(request, *wait).send(&mut stream),
            Act::Reset => reset(stream),
            Act::Lose => {
                effect();
                reset(stream)
            }
            Act::Cut => {
                let reply = effect();
                reply.send_part(&mut stream, reply.body.len() / 2)?;
                reset(stream)
            }
            Act::Malformed => {
                let mut reply = Reply { status: 200, ..effect() };
                reply.body.truncate(reply.body.len() / 2);
                reply.body.insert(0, b'{');
                reply.send(&mut stream)
            }
            Act::Oversized(mib) => blow_up(&mut stream, effect(), *mib),
        }
    }
}

fn not_ready(request: &Request, retry_after_ms: u64) -> Reply {
    let sandbox = wire::parts(&request.path).into_iter().find(|part| part.starts_with("sandbox-"));
    let details = json!({"sandbox_id": sandbox, "retry_after_ms": retry_after_ms});
    let error = json!({"code": "session_not_ready", "message": "Session is starting", "details": details});
    Reply::json(503, &json!({ "error": error }))
}

/// Ends the connection so that the caller sees a reset: nothing lingers when it is closed.
fn reset(stream: &TcpStream) -> Result<()> {
    Ok(set_socket_linger(stream, Some(Duration::ZERO))?)
}

fn blow_up(stream: &mut impl Write, mut reply: Reply, mib: usize) -> Result<()> {
    http::head(stream, reply.status, &reply.headers)?;
    let last = reply.body.pop();
    stream.write_all(&reply.body)?;
    let blanks = vec![b' '; MIB];
    for _ in 0..mib {
        stream.write_all(&blanks)?;
    }
    stream.write_all(last.as_slice())?;
    stream.flush()
}
