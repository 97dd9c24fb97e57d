//! The keeper: one thread flushes the memory when it has been quiet, and makes a checkpoint when the journal has grown.
//! Nothing waits for it, and it sleeps while nothing is written.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use super::ground::Ground;
use super::waiting::Patience;
use super::{Gate, StoreError};

/// How long nothing is written before the memory is flushed.
const QUIET: Duration = Duration::from_secs(1);
/// After so many times that, it is flushed although it is not quiet.
const PATIENCE: u32 = 10;
/// How long after one that failed the next checkpoint is tried, at first.
const FIRST: Duration = Duration::from_secs(10);
/// How long checkpoints are left alone at most, after many that failed.
const LONGEST: Duration = Duration::from_mins(10);
/// How long a memory that finds no room is left alone at most.
const MOST: Duration = Duration::from_secs(20);

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

    /// Sleeps until there is something to flush and it has been quiet, or for as long as it is told; true: this is the
    /// end.
    fn wait(&self, most: Option<Duration>) -> bool {
        let idle = |state: &mut State| state.applied == 0 && !state.ending;
        let mut state = match most {
            None => self.rung.wait_while(self.state(), idle).unwrap_or_else(PoisonError::into_inner),
            Some(most) => {
                let waited = self.rung.wait_timeout_while(self.state(), most, idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
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

/// Keeps the memory on disk and the journal short until the end.
fn keep(bell: &Bell, ground: &Ground, memory: &Gate) -> Result<(), StoreError> {
    let (mut room, mut short) = (Patience::new(QUIET, MOST), Patience::new(FIRST, LONGEST));
    let mut ending = false;
    while !ending {
        ending = bell.wait(room.left());
        match ground.flush(memory) {
            Ok(()) => room.end(),
            // The journal has it all.
            Err(StoreError::NoRoom(why)) => {
                tracing::warn!(why, "the memory waits for room");
                room.longer();
            }
            Err(error) => return Err(error),
        }
        if short.is_over() {
            match ground.keep_short(ending) {
                Ok(()) => short.end(),
                Err(error) => {
                    tracing::warn!(%error, "no checkpoint was made; the journal stays longer");
                    short.longer();
                }
            }
        }
        if room.left().is_none() {
            ground.room.keep_ballast();
        }
    }
    Ok(())
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
            let kept = catch_unwind(AssertUnwindSafe(|| keep(&heard, &ground, &memory)));
            let error = match kept {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(_) => StoreError::Failed("its keeper panicked".into()),
            };
            tracing::error!(%error, "the memory cannot be kept");
            failure.send_replace(Some(error));
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
        assert!(!bell.wait(None));
        assert_eq!(bell.state().applied, 0);
        bell.state().applied = 0;
        assert!(!bell.wait(Some(Duration::ZERO)), "it is told how long");
        bell.state().ending = true;
        assert!(bell.wait(None));
    }
}
