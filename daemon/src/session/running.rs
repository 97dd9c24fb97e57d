//! The calls that an actor has begun. Where it ended by a panic they go on; before the session is taken up again they are
//! ended, for what becomes of a call is judged by its not running any more.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TrackedFuture;

/// Longer than a call that is stopped takes to end, or to be abandoned.
const PATIENCE: Duration = Duration::from_secs(8);

/// The calls of one actor; clones share them.
#[derive(Clone, Default)]
pub(super) struct Running {
    stop: CancellationToken,
    calls: TaskTracker,
}

impl Running {
    /// Returns what stops one of them.
    pub fn token(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Counts a call until it has ended.
    pub fn track<F: Future>(&self, call: F) -> TrackedFuture<F> {
        self.calls.track_future(call)
    }

    /// Ends what still runs, and waits for that.
    pub async fn ended(&self) {
        self.stop.cancel();
        self.calls.close();
        if tokio::time::timeout(PATIENCE, self.calls.wait()).await.is_err() {
            tracing::warn!("calls of an actor that panicked did not end in time");
        }
    }
}
