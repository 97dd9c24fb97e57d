//! Checkpoints against all lines applied one by one: whatever fails, dies or is damaged.
#![expect(clippy::unwrap_used, reason = "tests")]

mod crashes;
mod cuts;
mod damage;
mod disk;
mod world;
