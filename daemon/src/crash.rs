//! Points at which a test may have the daemon die: one before and one behind everything that has an effect.
//!
//! Only builds with debug assertions have them. `NANO_CRASH_LOG` names a file that the name of every point met is
//! appended to, one a line; `NANO_CRASH_AT` is the number of the point, counted from 1 in this process, at which the
//! process is killed as `kill -9` does; `NANO_CRASH_AT_NAME` is the name of the point at whose first meeting it is.

/// Notes that the daemon has come to the point `name`.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    armed::met(name);
}

/// Does nothing: this is no test build.
#[cfg(not(debug_assertions))]
#[inline]
pub fn point(_: &str) {}

/// Returns the size that a test has the store's disk be of, by `NANO_DISK_SIZE`: on a small one the journal rolls soon.
#[expect(clippy::disallowed_methods, reason = "a test says it, and nobody else")]
pub fn disk_size() -> Option<u64> {
    let said = if cfg!(debug_assertions) { std::env::var("NANO_DISK_SIZE").ok() } else { None };
    said?.parse().ok()
}

#[cfg(debug_assertions)]
mod armed {
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::sync::{Mutex, OnceLock, PoisonError};

    use rustix::process::{Signal, getpid, kill_process};

    struct Armed {
        log: Option<File>,
        at: Option<u64>,
        name: Option<String>,
        met: Mutex<u64>,
    }

    #[expect(clippy::disallowed_methods, reason = "a test says it, and nobody else")]
    fn armed() -> &'static Armed {
        static ARMED: OnceLock<Armed> = OnceLock::new();
        ARMED.get_or_init(|| Armed {
            log: std::env::var_os("NANO_CRASH_LOG")
                .and_then(|path| OpenOptions::new().create(true).append(true).open(path).ok()),
            at: std::env::var("NANO_CRASH_AT").ok().and_then(|at| at.parse().ok()),
            name: std::env::var("NANO_CRASH_AT_NAME").ok(),
            met: Mutex::new(0),
        })
    }

    pub(super) fn met(name: &str) {
        let armed = armed();
        if armed.log.is_none() && armed.at.is_none() && armed.name.is_none() {
            return;
        }
        // Held to the end: no other point is met, and nothing else of this kind done, while this one dies.
        let mut met = armed.met.lock().unwrap_or_else(PoisonError::into_inner);
        *met += 1;
        if let Some(mut log) = armed.log.as_ref() {
            drop(log.write_all(format!("{name}\n").as_bytes()));
        }
        if armed.at == Some(*met) || armed.name.as_deref() == Some(name) {
            die();
        }
    }

    /// Ends the process; the thread does nothing more, however long the signal takes.
    fn die() -> ! {
        kill_process(getpid(), Signal::KILL).ok();
        loop {
            std::thread::park();
        }
    }
}
