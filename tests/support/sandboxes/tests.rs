//! The fakes against the facts that were seen on the wire of the real servers.

mod bay;
mod caller;
