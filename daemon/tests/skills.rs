//! Skills on real folders: which are found and which counts, what hostile folders cost, what changes while the daemon
//! runs, what sessions are offered, and what is made, changed and removed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

#[path = "skills/edit.rs"]
mod edit;
#[path = "skills/forms.rs"]
mod forms;
#[path = "skills/hostile.rs"]
mod hostile;
#[path = "skills/links.rs"]
mod links;
#[path = "skills/live.rs"]
mod live;
#[path = "skills/load.rs"]
mod load;
#[path = "skills/offer.rs"]
mod offer;
#[path = "skills/precedence.rs"]
mod precedence;
#[path = "skills/remove.rs"]
mod remove;
#[path = "skills/watch.rs"]
mod watch;
#[path = "skills/world.rs"]
mod world;
