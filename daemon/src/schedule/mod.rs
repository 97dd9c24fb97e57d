//! Follow-ups: when they are due, and that they fire.
//!
//! [`calendar`] is pure and tells slots; `slots` and `states` are pure and tell what becomes of them; [`scheduler`] owns
//! all follow-ups and makes every change to them in one commit, one at a time. It sleeps on an `alarm` until the first
//! in its `book` is due, `listen`s to events, and looks at `files`.

pub mod acts;
mod alarm;
mod book;
pub mod booking;
mod by_agent;
pub mod calendar;
mod files;
mod firing;
mod listen;
pub mod scheduler;
mod slots;
mod states;
mod tidy;

#[cfg(test)]
mod tests;
