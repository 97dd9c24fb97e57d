//! The keeper: one thread flushes the memory when it has been quiet, and makes a checkpoint when the journal has grown.
//! Nothing waits for it, and it sleeps while nothing is written.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use super::ground::Ground;
use super::{Gate, StoreError};

/// How long nothing is written before the memory is flushed.
const QUIET: Duration = Duration::from_secs(1);
/// After so many times that, it is flushed although it is not quiet.
const PATIENCE: u32 = 10;

#[derive(Default)]
struct State {
    /// How often something was applied since the last flush.
    applied: u64,
    ending: bool,
}

#[derive(Default)]
struct Bell {
    state: Mutex<State>,
    rung: Condvar,
}

impl Bell {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until there is something to flush and it has been quiet; true: this is the end.
    fn wait(&self) -> bool {
        let idle = |state: &mut State| state.applied == 0 && !state.ending;
        let mut state = self.rung.wait_while(self.state(), idle).unwrap_or_else(PoisonError::into_inner);
        for _ in 0..PATIENCE {
            let before = state.applied;
            let same = |state: &mut State| !state.ending;
            let waited = self.rung.wait_timeout_while(state, QUIET, same).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            if state.ending || state.applied == before {
                break;
            }
        }
        state.applied = 0;
        state.ending
    }
}

/// A handle to the thread.
pub(super) struct Keeper {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread.
    pub fn start(
        ground: Arc<Ground>,
        memory: Gate,
        failure: Arc<watch::Sender<Option<StoreError>>>,
    ) -> std::io::Result<Self> {
        let bell = Arc::new(Bell::default());
        let heard = bell.clone();
        let work = move || {
            let mut ending = false;
            while !ending {
                ending = heard.wait();
                match ground.flush(&memory) {
                    Ok(()) => {}
                    // The journal has it all.
                    Err(StoreError::NoRoom(why)) => tracing::warn!(why, "the memory waits for room"),
                    Err(error) => {
                        tracing::error!(%error, "the memory cannot be kept");
                        failure.send_replace(Some(error));
                        return;
                    }
                }
                ground.keep_short(ending);
                ground.room.keep_ballast();
            }
        };
        let thread = std::thread::Builder::new().name("store-keeper".into()).spawn(work)?;
        Ok(Self { bell, thread: Some(thread) })
    }

    /// Tells that something was applied.
    pub fn applied(&self) {
        let mut state = self.bell.state();
        state.applied += 1;
        if state.applied == 1 {
            self.bell.rung.notify_one();
        }
    }

    /// Has it flush a last time and waits for its end.
    pub fn end(&mut self) {
        self.bell.state().ending = true;
        self.bell.rung.notify_one();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the store's keeper panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_heard_at_once_and_work_after_it_was_quiet() {
        let bell = Bell::default();
        bell.state().applied = 3;
        assert!(!bell.wait());
        assert_eq!(bell.state().applied, 0);
        bell.state().ending = true;
        assert!(bell.wait());
    }
}
