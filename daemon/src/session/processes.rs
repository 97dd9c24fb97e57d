//! Background processes of sessions: commands that go on when the task that began them has ended.
//!
//! What is on record, and in which commit:
//!
//! | commit | holds |
//! | --- | --- |
//! | begin | the record, `running`; the command starts only after it, and the call's result leaves after that |
//! | end | the record with its end, the event `process.exited`, and a mark that this is untold |
//! | note | the mark's removal, and a waiting note for the next model request |
//! | result | the mark's removal, and the result of the call that shows the end |
//! | unhear | the note's removal, and the mark again: a call is about to show the end instead |
//!
//! A process that is `running` on record when a daemon starts has died with the one before: that is its end, as `lost`.
//! So there is one end, and of mark, note and result exactly one at any moment: a death between two commits neither loses
//! the notice nor doubles it.

mod background;
mod begin;
mod end;
mod live;
mod log;
mod notice;
mod reading;
mod said;

pub use end::{deleted, lost};
pub use live::Processes;
pub use log::{Page, Part};
pub(super) use notice::{take_untold, untold};
pub use reading::{kill, list, log, process};
