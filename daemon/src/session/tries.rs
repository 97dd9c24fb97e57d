//! How often sessions are taken up by daemons that came after one that died: counted before any of them is read, so that
//! one whose mere reading kills the daemon is found out too. Pure but for reading and writing its record.

use nano_protocol::id::SessionId;

use super::deps::Deps;
use crate::store::record::Tries;
use crate::store::{Change, Key, StoreError};

/// So many deaths of a daemon at one and the same step are enough.
const DEATHS: u32 = 3;

/// What a start does about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start {
    /// It is taken up together with others.
    Together(Tries),
    /// It is taken up alone, after the others: the daemon may have died of its taking up.
    Alone(Tries),
    /// It waits for a person.
    Waits(Tries),
}

/// Counts one more death of a daemon against a session that stands at `step`.
fn counted(tries: &Tries, step: u64) -> Tries {
    let times = if tries.step == step { tries.times + 1 } else { 1 };
    Tries { step, times, under_way: true, spared: false, parked: times >= DEATHS && tries.under_way }
}

/// Decides what a start after a death does about a session that stands at `step`; `suspects`: there are some of whose
/// taking up the daemon may have died, so it is not counted against the others; `works`: it has a task that can be held.
pub(super) fn decide(tries: &Tries, step: u64, suspects: bool, works: bool) -> Start {
    let next = counted(tries, step);
    match () {
        // It is counted when its turn comes, or it would be blamed for one before it.
        () if tries.under_way && next.times < DEATHS => Start::Alone(next),
        () if tries.under_way => Start::Waits(next),
        () if suspects => Start::Together(Tries { under_way: true, spared: true, ..tries.clone() }),
        () if works && next.times >= DEATHS => Start::Waits(Tries { under_way: false, ..next }),
        () => Start::Together(next),
    }
}

/// Returns how often a session was taken up.
pub(super) fn of(deps: &Deps, session: &SessionId) -> Result<Tries, StoreError> {
    match deps.store.get(&Key::tries(session)) {
        // It is only a count.
        Err(StoreError::Damaged(_)) => Ok(Tries::default()),
        found => Ok(found?.unwrap_or_default()),
    }
}

/// Writes it.
pub(super) fn put(session: &SessionId, tries: &Tries) -> Change {
    Change::put(Key::tries(session), tries)
}

/// Returns what is recorded once a session could be read.
pub(super) fn taken_up(session: &SessionId, tries: &Tries) -> Vec<Change> {
    let open = Tries { under_way: false, spared: false, parked: false, ..tries.clone() };
    if *tries == open { Vec::new() } else { vec![put(session, &open)] }
}

#[cfg(test)]
mod tests {
    use super::{Start, Tries, decide};

    fn tries(step: u64, times: u32, under_way: bool) -> Tries {
        Tries { step, times, under_way, spared: false, parked: false }
    }

    #[test]
    fn deaths_are_counted_against_whom_they_may_be_of() {
        let check = |before: Tries, step: u64, suspects: bool, expected: Start| {
            let found = decide(&before, step, suspects, true);
            assert_eq!(found, expected, "{before:?} at {step}, suspects: {suspects}");
        };
        check(Tries::default(), 7, false, Start::Together(tries(7, 1, true)));
        check(tries(7, 1, false), 7, false, Start::Together(tries(7, 2, true)));
        check(tries(7, 2, false), 7, false, Start::Waits(tries(7, 3, false)));
        // Without a task it only hears or tidies, and nobody would see it wait.
        assert_eq!(decide(&tries(7, 2, false), 7, false, false), Start::Together(tries(7, 3, true)));
        // It has got further meanwhile.
        check(tries(7, 2, false), 8, false, Start::Together(tries(8, 1, true)));
        // The daemon died of another one's taking up.
        check(tries(7, 2, false), 7, true, Start::Together(Tries { spared: true, ..tries(7, 2, true) }));
        check(Tries::default(), 7, true, Start::Together(Tries { spared: true, ..tries(0, 0, true) }));
        // It may have died of this one's.
        check(tries(7, 1, true), 7, true, Start::Alone(tries(7, 2, true)));
        check(tries(7, 2, true), 7, true, Start::Waits(Tries { parked: true, ..tries(7, 3, true) }));
        check(tries(0, 0, true), 7, true, Start::Alone(tries(7, 1, true)));
    }
}
