//! `daemon.*`.

use std::time::Duration;

use nano_protocol::PROTOCOL;
use nano_protocol::daemon::{Done, FollowupStatus, Hello, HelloParams, Nothing, ShutdownParams, Status, StoreStatus};
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::method::{DaemonHello, DaemonReload, DaemonShutdown, DaemonStatus};
use tokio::sync::oneshot;

use super::dispatch::Serve;
use super::{Caller, Server};
use crate::session::reading;

const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Serve for DaemonHello {
    async fn serve(_: &Server, _: &Caller, params: HelloParams) -> Result<Hello, RpcError> {
        Ok(Hello { server: "nanod".into(), version: VERSION.into(), protocol: negotiate(params.protocol)? })
    }
}

/// Returns the protocol to speak with a client whose newest is `newest`.
fn negotiate(newest: u64) -> Result<u64, RpcError> {
    if (1..=PROTOCOL).contains(&newest) {
        return Ok(newest);
    }
    let message = format!("protocol {newest} is not spoken here; supported: 1 to {PROTOCOL}");
    let older = if newest > PROTOCOL { "nanod" } else { "the client" };
    Err(RpcError::new(ErrorKind::InvalidParams, message).hint(format!("upgrade {older}")))
}

impl Serve for DaemonStatus {
    async fn serve(server: &Server, _: &Caller, _: Nothing) -> Result<Status, RpcError> {
        let deps = server.deps();
        let now = deps.clock.now();
        let counted = deps.clone();
        // It reads every record: not on a thread that serves others.
        let counted = tokio::task::spawn_blocking(move || reading::counts(&counted)).await;
        let (sessions, tasks) = counted.map_err(|why| RpcError::new(ErrorKind::Internal, why.to_string()))?;
        let (active, next) = server.scheduler.brief();
        Ok(Status {
            version: VERSION.into(),
            pid: rustix::process::getpid().as_raw_pid().cast_unsigned(),
            started_at: server.started_at,
            uptime_ms: u64::try_from(now.0 - server.started_at.0).unwrap_or(0),
            sessions,
            tasks,
            followups: FollowupStatus { active, next },
            store: StoreStatus { path: deps.store.path().display().to_string(), bytes: deps.store.bytes() },
            rss_bytes: resident_bytes(),
        })
    }
}

impl Serve for DaemonShutdown {
    async fn serve(server: &Server, caller: &Caller, params: ShutdownParams) -> Result<Done, RpcError> {
        admin(server, caller, "end it")?;
        let shutdown = &server.deps().shutdown;
        shutdown.begin(params.grace_ms.map_or(shutdown.drain(), Duration::from_millis));
        Ok(Done {})
    }
}

impl Serve for DaemonReload {
    async fn serve(server: &Server, caller: &Caller, _: Nothing) -> Result<Done, RpcError> {
        admin(server, caller, "have it read its config anew")?;
        server.registry.is_open()?;
        let (reply, answer) = oneshot::channel();
        // Who does it lets go of either when the daemon goes down.
        let asked = server.reload.send(Some(reply)).await.is_ok();
        match answer.await {
            Ok(done) if asked => done.map(|()| Done {}).map_err(|why| {
                RpcError::new(ErrorKind::InvalidParams, why)
                    .hint("mend it and reload again; the old one goes on serving")
            }),
            _ => Err(RpcError::new(ErrorKind::ShuttingDown, "the daemon is going down").hint("try again later")),
        }
    }
}

fn admin(server: &Server, caller: &Caller, what: &str) -> Result<(), RpcError> {
    let is = server.registry.is_admin(caller.uid);
    let denied = || RpcError::new(ErrorKind::Denied, format!("only the daemon's user and root may {what}"));
    if is { Ok(()) } else { Err(denied()) }
}

/// Returns the resident memory of this process, as `/proc/self/statm` counts it (proc(5): pages, second field).
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::negotiate;

    #[test]
    fn speaks_what_both_speak() {
        assert_eq!(negotiate(1), Ok(1));
        for (newest, hint) in [(0, "upgrade the client"), (2, "upgrade nanod"), (u64::MAX, "upgrade nanod")] {
            let error = negotiate(newest).map_err(|error| (error.code, error.message, error.data.hint));
            let message = format!("protocol {newest} is not spoken here; supported: 1 to 1");
            assert_eq!(error, Err((-32602, message, Some(hint.to_owned()))));
        }
    }
}
