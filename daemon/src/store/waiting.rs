//! What waits in the writer: commits and who asked for them, and how long room is waited for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nano_protocol::event::Event;

use super::journal::line::Line;
use super::{Answer, Commit, Receipt, StoreError};

/// A commit and who waits for it.
pub struct Waiting {
    /// What is to be made durable.
    pub commit: Commit,
    /// Whom to tell.
    pub answer: Option<Answer>,
}

impl Waiting {
    /// Tells who waits what it came to.
    pub fn answer(self, outcome: Result<Receipt, StoreError>) {
        if let Some(answer) = self.answer {
            // Nobody waits any more: what came of it stands all the same.
            drop(answer.send(outcome));
        }
    }
}

/// Refuses what is asked for, and returns what is owed.
pub fn refuse(commits: Vec<Waiting>, why: &str) -> Vec<Waiting> {
    let (asked, owed): (Vec<_>, Vec<_>) = commits.into_iter().partition(|one| one.commit.asked);
    refuse_all(asked, why);
    owed
}

/// Refuses all of it.
pub fn refuse_all(commits: Vec<Waiting>, why: &str) {
    for one in commits {
        one.answer(Err(StoreError::NoRoom(why.to_owned())));
    }
}

/// Commits that are durable and that the memory does not show yet.
pub struct Unseen {
    /// Their lines.
    pub lines: Vec<Line>,
    /// Those who wait, and what they are told.
    pub commits: Vec<(Waiting, Receipt)>,
}

impl Unseen {
    /// Returns the events of all of them.
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.commits.iter().flat_map(|(_, receipt)| receipt).cloned().collect()
    }

    /// Tells those who asked for it that it is done: it is, and nobody can read anything older meanwhile.
    pub fn answer_asked(&mut self) {
        for (one, receipt) in self.commits.iter_mut().filter(|(one, _)| one.commit.asked) {
            one.answer.take().into_iter().for_each(|answer| drop(answer.send(Ok(receipt.clone()))));
        }
    }

    /// Tells those who wait that it is done.
    pub fn answer(self) {
        self.commits.into_iter().for_each(|(one, receipt)| one.answer(Ok(receipt)));
    }
}

/// When something that failed is tried again: at first soon, then ever more seldom.
#[derive(Debug)]
pub struct Patience {
    first: Duration,
    longest: Duration,
    wait: Duration,
    due: Option<Instant>,
}

impl Patience {
    /// Waits for `first` after one failure, and for `longest` after many.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, wait: Duration::ZERO, due: None }
    }

    /// Waits longer than the last time.
    pub fn longer(&mut self) {
        self.wait = (self.wait * 2).clamp(self.first, self.longest);
        self.due = Some(Instant::now() + self.wait);
    }

    /// Returns how long is still to be waited; nothing where nothing failed.
    pub fn left(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Tells whether it may be tried now.
    pub fn is_over(&self) -> bool {
        self.left().is_none_or(|left| left.is_zero())
    }

    /// Waits no more.
    pub fn end(&mut self) {
        (self.wait, self.due) = (Duration::ZERO, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_twice_the_last_up_to_the_longest() {
        let mut patience = Patience::new(Duration::from_secs(100), Duration::from_secs(350));
        assert!(patience.is_over() && patience.left().is_none());
        for expected in [100, 200, 350, 350] {
            patience.longer();
            assert_eq!(patience.wait, Duration::from_secs(expected));
            assert!(!patience.is_over());
        }
        patience.end();
        assert!(patience.is_over());
        patience.longer();
        assert_eq!(patience.wait, Duration::from_secs(100));
    }
}
