//! What a scene of the sweep is.

use nano_tests::model_server::Turn;
use serde_json::Value;

use super::run::Run;
use super::story::Story;

/// A short piece of work, which any number of deaths may come between.
pub struct Scene {
    pub name: &'static str,
    /// Lines of the agent.
    pub agent: &'static str,
    /// How the model answers a request with a number: by what the request holds, for any may come again.
    pub model: fn(&Value, usize) -> Turn,
    /// What lies in the workspace before, with its mode.
    pub files: &'static [(&'static str, &'static str, u32)],
    /// What clients do; each step holds over a death.
    pub play: fn(&mut Run),
    /// What must be so whenever the daemon is dead.
    pub dead: fn(&Run),
    /// What must be so in the end, beside what holds for every scene.
    pub check: fn(&mut Run, &Story),
    /// Requests of one moment: so many may be lost by a death.
    pub lanes: usize,
    /// Requests whose reply is never recorded, without any death.
    pub spare: usize,
    /// Whether the daemon ends in an orderly way too.
    pub ends: bool,
}

impl Scene {
    /// A scene in which nothing happens yet.
    pub const fn new(name: &'static str, model: fn(&Value, usize) -> Turn, play: fn(&mut Run)) -> Self {
        Self {
            name,
            agent: "",
            model,
            files: &[],
            play,
            dead: |_| {},
            check: |_, _| {},
            lanes: 1,
            spare: 0,
            ends: false,
        }
    }
}
