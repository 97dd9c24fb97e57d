//! The fakes against the facts that were seen on the wire of the real servers.

mod bay;
mod bay_files;
mod bay_skills;
mod caller;
mod faults;
mod ships;
