//! The daemon.
pub mod config;
