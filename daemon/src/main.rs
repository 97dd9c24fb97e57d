//! `nanod`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(nanod::sandbox::helper::ARGUMENT) {
        return ExitCode::from(nanod::sandbox::helper::helper_main());
    }
    ExitCode::SUCCESS
}
