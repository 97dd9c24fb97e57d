//! `nanod`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: a helper has no runtime, no configuration and no log.
    if let Some(status) = nanod::sandbox::helper::run_if_asked(std::env::args_os().nth(1).as_deref()) {
        return ExitCode::from(status);
    }
    ExitCode::SUCCESS
}
