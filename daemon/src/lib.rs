//! The daemon.
pub mod config;
pub mod schedule;
pub mod session;
