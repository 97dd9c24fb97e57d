//! Sessions.

pub mod steering_file;
