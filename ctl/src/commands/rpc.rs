//! `rpc`: any method of the daemon, its result as it came.

use serde_json::value::RawValue;

use crate::client::Raw;
use crate::context::{Context, Start};
use crate::failure::Failure;

/// What to call.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The method, such as daemon.status
    #[arg(value_name = "METHOD")]
    method: String,
    /// Its parameters; {} unless told
    #[arg(value_name = "JSON", default_value = "{}", hide_default_value = true)]
    params: String,
}

/// Carries out `rpc`.
pub fn run(context: &Context, args: &Args) -> Result<(), Failure> {
    let wrong = |error| Failure::usage(format!("the parameters are not JSON ({error})"), "put them in single quotes");
    // In JSON a line feed can only be space; in a request it would end the line.
    let line = args.params.replace(['\n', '\r'], " ");
    let params: &RawValue = serde_json::from_str(&line).map_err(wrong)?;
    let result: Raw = context.connect(Start::Never)?.call_raw(&args.method, &params)?;
    Ok(context.output.answer(result.get())?)
}
