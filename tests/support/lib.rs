//! What the end-to-end tests stand on: the real programs in a temporary place, and a model that follows a script.
//!
//! Nothing here is part of the product. Every wait has a deadline and names what it waited for; none is a pause.
#![expect(clippy::expect_used, clippy::panic, reason = "a failure of the support is a failure of the test")]

pub mod boxlite;
pub mod client;
pub mod ctl;
pub mod daemon;
pub mod http;
pub mod leaks;
pub mod model_server;
pub mod processes;
pub mod programs;
pub mod random;
pub mod sandboxes;
pub mod skip;
pub mod transcript;
pub mod wait;
pub mod web;
