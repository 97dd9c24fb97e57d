pub mod config;
pub mod http;
pub mod model;
pub mod sandbox;
