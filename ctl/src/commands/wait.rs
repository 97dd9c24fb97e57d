//! `wait`: until tasks have ended; exits as the first one given that did not succeed.

use nano_protocol::method::{Method as _, TaskWait};
use nano_protocol::task::{Task, WaitParams};

use crate::client::decode;
use crate::context::{Context, Start};
use crate::failure::{Failure, Kind};
use crate::link::Link;

/// What to wait for.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The tasks' ids
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<String>,
}

/// Carries out `wait`.
pub fn run(context: &Context, args: &Args) -> Result<(), Failure> {
    let mut link = Link::new(context, Start::Never)?;
    let mut first = None;
    for task in &args.tasks {
        match one(context, &mut link, task) {
            Ok(None) => {}
            Ok(Some(failure)) => first = first.or(Some(failure)),
            // The others are waited for all the same: an unknown task is one that did not succeed.
            Err(failure) if matches!(failure.kind, Kind::NotFound | Kind::Refused) => first = first.or(Some(failure)),
            Err(failure) if failure.kind == Kind::TimedOut => {
                return Err(Failure::new(
                    Kind::TimedOut,
                    "the time ran out, the task goes on",
                    format!("nanoctl wait {task}"),
                ));
            }
            Err(failure) => return Err(failure),
        }
    }
    first.map_or(Ok(()), Err)
}

fn one(context: &Context, link: &mut Link<'_>, task: &str) -> Result<Option<Failure>, Failure> {
    let params = WaitParams { task: task.to_owned(), timeout_ms: None };
    loop {
        let raw = link.persist(|client| client.call_raw(TaskWait::NAME, &params))?;
        let task: Task = decode(&raw)?;
        if !task.state.is_settled() {
            // A daemon may bound how long one request waits.
            context.pause()?;
            continue;
        }
        if context.output.json {
            context.output.answer(raw.get())?;
        }
        return Ok(Failure::of_task(&task));
    }
}
