//! Going down in an orderly way: stop accepting, let running calls end, cut what is left, exit; one deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How far the daemon's end is; clones share it.
#[derive(Clone, Default)]
pub struct Shutdown {
    stopping: CancellationToken,
    cutting: CancellationToken,
    tracker: TaskTracker,
    /// In milliseconds.
    drain: Arc<AtomicU64>,
}

impl Shutdown {
    /// Begins the end: nothing new starts; after `drain` what still runs is cut. The shortest drain counts.
    pub fn begin(&self, drain: Duration) {
        self.stopping.cancel();
        let cutting = self.cutting.clone();
        self.tracker.close();
        // Not tracked: it must not keep the end waiting.
        tokio::spawn(async move {
            tokio::time::sleep(drain).await;
            cutting.cancel();
        });
    }

    /// Sets how long what runs may take when nobody says.
    pub fn set_drain(&self, drain: Duration) {
        self.drain.store(u64::try_from(drain.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns how long what runs may take when nobody says.
    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain.load(Ordering::Relaxed))
    }

    /// Lets nobody wait any longer: everything has ended.
    pub fn finish(&self) {
        self.cutting.cancel();
    }

    /// Fires when nothing new may start.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Fires when what runs must end now.
    pub fn cutting(&self) -> &CancellationToken {
        &self.cutting
    }

    /// Starts a long-lived task that the end waits for.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tracing::trace!(task = name, "spawned");
        self.tracker.spawn(future)
    }

    /// Returns once every task has ended, or `limit` after the cut.
    pub async fn ended(&self, limit: Duration) {
        tokio::select! {
            () = self.tracker.wait() => {}
            () = self.clone().late(limit) => tracing::warn!("some tasks did not end in time"),
        }
    }

    /// Returns `limit` after the cut.
    pub async fn late(self, limit: Duration) {
        self.cutting.cancelled().await;
        tokio::time::sleep(limit).await;
    }
}
