//! The crash sweep: a daemon that dies at each point there is, one run for each, loses nothing and does nothing twice.
//!
//! A clean run of a scene lists the points that its first daemon meets. `singles` runs the scene again for each of
//! them and dies there; `pairs` dies once more on the way back, at places that `NANO_CRASH_SEED` names,
//! `NANO_CRASH_SAMPLE` of them, or with `NANO_CRASH_PAIRS=1` at all. A failure says how to repeat it, by
//! `NANO_CRASH_SCENARIO` and `NANO_CRASH_POINTS`.

mod files;
mod look;
mod parked;
mod requests;
mod run;
mod scene;
mod scenes;
mod story;
mod sweep;

macro_rules! scenes {
    ($($name:ident: $scene:expr;)+) => {$(
        mod $name {
            #[test]
            fn singles() {
                super::sweep::singles(&$scene);
            }
            #[test]
            fn pairs() {
                super::sweep::pairs(&$scene);
            }
        }
    )+};
}

scenes! {
    plain: super::scenes::PLAIN;
    reads: super::scenes::READS;
    writes: super::scenes::WRITES;
    commands: super::scenes::COMMANDS;
    background: super::scenes::BACKGROUND;
    polled: super::scenes::POLLED;
    approved: super::scenes::APPROVED;
    denied: super::scenes::DENIED;
    notes: super::scenes::NOTES;
    interrupt: super::scenes::INTERRUPT;
    cancel: super::scenes::CANCEL;
    queued: super::scenes::QUEUED;
    followup: super::scenes::FOLLOWUP;
    later: super::scenes::LATER;
    delegate: super::scenes::DELEGATE;
    closed: super::scenes::CLOSED;
    deleted: super::scenes::DELETED;
    shutdown: super::scenes::SHUTDOWN;
    rolled: super::scenes::ROLLED;
}
