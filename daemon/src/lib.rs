//! nanod
pub mod sandbox;
pub mod tools;
