//! Stand-ins for the servers that give sandboxes: [`Bay`] is Shipyard Neo's, [`Ships`] the old Shipyard's.
//!
//! They speak the wire of the real ones on a free port of loopback, keep files in real folders and really run shell
//! commands and Python there; an interpreter keeps its variables until its runtime ends. A browser is a script. A test
//! can ask what was sent ([`Server::requests`]), push the clock forward ([`Server::advance`]) and order faults
//! ([`Server::fault`]). Whatever they started ends with them.
//!
//! `/workspace` (or what a ship calls it) and `/tmp` stand for folders of the sandbox's own, in commands and in what
//! they say; but a program sees the real paths, so one that takes them apart sees more than a real sandbox shows.

mod bay;
mod clock;
mod faults;
mod files;
mod multipart;
mod python;
mod run;
mod server;
mod shape;
mod ships;
mod wire;

#[cfg(test)]
mod tests;

pub use bay::{Bay, Boot, Browsed, Capabilities, Profile};
pub use faults::Fault;
pub use server::{Api, Server};
pub use ships::{AtLimit, Ships};
pub use wire::Reply;
