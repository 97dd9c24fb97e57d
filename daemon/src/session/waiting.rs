//! An actor whose commit waits for room: it takes nothing up, but what somebody wants ended stops at once; that this is
//! so is recorded when there is room.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::actor::{Actor, Command};
use super::transcript;
use crate::store::{Commit, Receipt, StoreError};

/// After so long a commit counts as one that waits for room.
const SLOW: Duration = Duration::from_millis(200);
/// How many commands are held; more wait at the door.
const MOST: usize = 256;

/// What is asked of a session.
#[derive(Default)]
pub(super) struct Inbox {
    pub commands: Option<mpsc::Receiver<Command>>,
    /// Taken while a commit waited; they come before anything else.
    held: VecDeque<Command>,
}

impl Inbox {
    pub async fn recv(&mut self) -> Option<Command> {
        self.commands.as_mut()?.recv().await
    }

    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        !self.holds() && self.commands.as_ref().is_none_or(mpsc::Receiver::is_empty)
    }
}

impl Actor {
    /// Makes a commit, and learns the numbers of what it recorded.
    pub(super) async fn keep(&mut self, commit: Commit) -> Result<Receipt, StoreError> {
        let store = self.deps.store.clone();
        let mut commit = std::pin::pin!(store.commit(commit));
        let receipt = match tokio::time::timeout(SLOW, &mut commit).await {
            Ok(receipt) => receipt,
            Err(_) => self.attend(commit).await,
        }?;
        transcript::number(&mut self.transcript, &receipt);
        Ok(receipt)
    }

    /// Stops meanwhile what is to end.
    async fn attend(
        &mut self,
        mut commit: impl Future<Output = Result<Receipt, StoreError>> + Unpin,
    ) -> Result<Receipt, StoreError> {
        let cutting = self.deps.shutdown.cutting().clone();
        let (mut cut, mut late) = (false, false);
        loop {
            let deadline = self.deadline;
            tokio::select! {
                biased;
                receipt = &mut commit => return receipt,
                () = cutting.cancelled(), if !cut => {
                    cut = true;
                    self.stop_calls();
                }
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() && !late => {
                    late = true;
                    self.stop_all();
                }
                Some(command) = self.inbox.recv(), if self.inbox.held.len() < MOST => {
                    let current = self.turn_task.as_ref().or(self.machine.current());
                    if matches!(&command, Command::Close(_))
                        || matches!(&command, Command::Cancel(task, _) if current == Some(task))
                    {
                        self.stop_all();
                    }
                    self.inbox.held.push_back(command);
                }
            }
        }
    }

    /// Obeys what was asked while a commit waited.
    pub(super) async fn obey_held(&mut self) -> Result<(), StoreError> {
        match self.inbox.held.pop_front() {
            Some(command) => self.obey(command).await,
            None => Ok(()),
        }
    }

    fn stop_all(&mut self) {
        self.stop_calls();
        self.stop_model();
    }

    /// Lets the actor go if nobody asks anything of it.
    pub(super) fn retires(&self) -> bool {
        let retire = |inbox| self.registry.retire(&self.record.session.id, inbox);
        !self.inbox.holds() && self.inbox.commands.as_ref().is_none_or(retire)
    }
}
