//! `reload`: has the daemon read its config anew.

use nano_protocol::daemon::Nothing;
use nano_protocol::method::{DaemonReload, Method as _};

use crate::context::{Context, Start};
use crate::failure::Failure;

/// Carries out `reload`.
pub fn run(context: &Context) -> Result<(), Failure> {
    let raw = context.connect(Start::Never)?.call_raw(DaemonReload::NAME, &Nothing {})?;
    if context.output.json {
        context.output.answer(raw.get())?;
    }
    Ok(())
}
