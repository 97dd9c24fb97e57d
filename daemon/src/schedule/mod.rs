//! Follow-ups: when they are due.

pub mod calendar;
