//! Follow-ups: when they are due, and that they fire.

pub mod booking;
pub mod calendar;
pub mod scheduler;
mod slots;
