//! Ctrl-C while a task is followed: the first one asks for its end, the second one leaves it running.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::failure::{Failure, Kind};

const LEFT_RUNNING: i32 = 130;

/// Whether Ctrl-C was pressed.
#[derive(Debug, Default)]
pub struct Interrupts(Arc<AtomicBool>);

impl Interrupts {
    /// Starts to listen. The second Ctrl-C ends the program with 130 whatever it does.
    pub fn listen() -> Result<Self, Failure> {
        let pressed = Arc::new(AtomicBool::new(false));
        if is_ignored() {
            // A shell that put us into the background said that Ctrl-C is not for us.
            return Ok(Self(pressed));
        }
        // The order matters: the exit looks at the flag before this press sets it.
        let exit = flag::register_conditional_shutdown(SIGINT, LEFT_RUNNING, Arc::clone(&pressed));
        let armed = exit.and_then(|_| flag::register(SIGINT, Arc::clone(&pressed)));
        armed.map_err(|error| {
            Failure::new(Kind::Refused, format!("signals cannot be watched ({error})"), "use nanoctl submit")
        })?;
        Ok(Self(pressed))
    }

    /// Tells whether Ctrl-C was pressed.
    pub fn pressed(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

fn is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (SIGINT - 1)) != 0)
}
