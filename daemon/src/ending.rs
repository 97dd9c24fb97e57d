//! The end of the daemon, in order and with one deadline: what runs, what serves it, connections, the last writes.

use std::time::Duration;

use futures_util::future::join;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::session::deps::Deps;
use crate::session::registry::Registry;
use crate::store::StoreError;

/// How long what was cut may take to end: TERM, two seconds, KILL, and some air.
const ENDING: Duration = Duration::from_millis(3500);
/// How long after the cut servers of tools and background processes are waited for; what is left of the time is the
/// last writes' alone. The helpers of those that take longer end them.
const BESIDE: Duration = Duration::from_millis(3700);
/// How long after the cut the store may tidy up; nothing is lost without that.
const LAST: Duration = Duration::from_millis(4400);

/// Waits for the end to be asked for and ends: waits for what runs, then lets connections go, which `closing` tells.
/// Returns how the store had failed, if it had.
pub async fn end(
    deps: &Deps,
    registry: &Registry,
    serving: JoinHandle<()>,
    closing: &CancellationToken,
) -> Option<StoreError> {
    let shutdown = &deps.shutdown;
    shutdown.stopping().cancelled().await;
    tracing::info!("going down");
    let late = tokio::spawn(shutdown.clone().late(LAST));
    let tasks = async {
        shutdown.ended(ENDING).await;
        shutdown.finish();
    };
    let beside = async {
        shutdown.cutting().cancelled().await;
        join(deps.mcp.end_all(), deps.processes.ended()).await;
    };
    tokio::select! {
        _ = join(tasks, beside) => {}
        () = shutdown.clone().late(BESIDE) => tracing::warn!("some servers of tools or processes did not end in time"),
    }
    closing.cancel();
    // What a store says that is closed is no failure.
    let failure = deps.failure();
    let last = async {
        if serving.await.is_err() {
            tracing::error!("the listener panicked");
        }
        registry.stopped().await;
        deps.store.close().await;
    };
    tokio::select! {
        () = last => {}
        _ = late => tracing::warn!("the store was still writing; it goes on with that at the next start"),
    }
    failure.or_else(|| deps.store.failure())
}
