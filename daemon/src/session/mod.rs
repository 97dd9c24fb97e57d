//! Sessions: the double loop, its transcript, its queue, its steering.
//!
//! [`registry`] knows every session and wakes the [`actor`] of the one that has something to do. The actor owns the
//! session while it lives: it feeds the pure [`task`] machine, writes what the machine says in one commit, and only
//! then acts. Reading needs no actor: the store has it all.

pub mod actor;
mod acts;
pub mod admission;
pub mod approving;
mod batch;
mod boot;
mod call;
pub mod children;
pub mod computer;
pub mod configured;
pub mod deletion;
pub mod deps;
pub mod event_log;
pub mod idempotency;
mod ledger;
mod lending;
mod obey;
mod offered;
pub mod opening;
pub mod processes;
pub mod profiles;
pub mod prompt;
mod reaching;
pub mod reading;
mod recovery;
pub mod registry;
mod restore;
mod running;
mod servers;
pub mod skills;
mod standing;
pub mod steering_file;
pub mod steering_watch;
pub mod task;
pub mod transcript;
mod tries;
mod turn;
pub mod view;
mod waiting;
