//! `run`: submits a task and follows it to its end.

use std::time::Duration;

use nano_protocol::event::{Event, EventType, SubscribeParams};
use nano_protocol::method::{EventsSubscribe, Method as _, TaskCancel, TaskGet};
use nano_protocol::task::{Task, TaskParams};

use crate::client::{self, Client, Raw, decode};
use crate::commands::submit;
use crate::context::{Context, Start};
use crate::failure::{Failure, Kind};
use crate::interrupts::Interrupts;
use crate::link::Link;
use crate::render::{Live, View};

/// The same as for `submit`.
pub type Args = submit::Args;

/// How often the moving line moves and Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(120);

/// Carries out `run`.
pub fn run(context: &Context, args: &Args) -> Result<(), Failure> {
    let params = args.params(context)?;
    let interrupts = Interrupts::listen()?;
    let mut link = Link::new(context, Start::Allowed)?;
    let (raw, task) = submit::submit(&mut link, &params)?;
    let mut live = Live::new(&context.output, View::Run);
    let (raw, task) = if task.state.is_settled() {
        // The key was known and the task had ended: there is nothing to follow.
        (raw, task)
    } else {
        let followed = Follow { context, interrupts, since: task.seq.saturating_sub(1), cancelled: false, task: &task }
            .until_the_end(&mut link, &mut live);
        followed.map_err(|failure| goes_on(failure, &task))?
    };
    if context.output.json {
        context.output.answer(raw.get())?;
    } else {
        live.end(&task)?;
    }
    Failure::of_task(&task).map_or(Ok(()), Err)
}

fn goes_on(mut failure: Failure, task: &Task) -> Failure {
    match failure.kind {
        Kind::TimedOut => {
            Failure::new(Kind::TimedOut, "the time ran out, the task goes on", format!("nanoctl wait {}", task.id))
        }
        Kind::Lost | Kind::Unreachable => {
            failure.hint = format!("then nanoctl wait {}", task.id);
            failure
        }
        _ => failure,
    }
}

struct Follow<'a> {
    context: &'a Context,
    interrupts: Interrupts,
    /// The newest number seen.
    since: u64,
    /// Whether the daemon knows of the first Ctrl-C.
    cancelled: bool,
    task: &'a Task,
}

impl Follow<'_> {
    fn until_the_end(mut self, link: &mut Link<'_>, live: &mut Live<'_>) -> Result<(Raw, Task), Failure> {
        let output = &self.context.output;
        // Pieces are of use to who sees them come.
        let deltas = Some(output.terminal || output.json);
        link.persist(|client| {
            client.call::<EventsSubscribe>(&SubscribeParams {
                task: Some(self.task.id.0.clone()),
                since_seq: Some(self.since),
                deltas,
                types: self.context.output.types(),
                ..SubscribeParams::default()
            })?;
            loop {
                self.cancel_if_pressed(client, live)?;
                if let Some(end) = self.step(client, live)? {
                    return Ok(end);
                }
            }
        })
    }

    fn cancel_if_pressed(&mut self, client: &mut Client, live: &mut Live<'_>) -> Result<(), Failure> {
        if self.interrupts.pressed() && !self.cancelled {
            live.note("cancelling; Ctrl-C again stops waiting")?;
            client.call::<TaskCancel>(&self.params())?;
            self.cancelled = true;
        }
        Ok(())
    }

    fn step(&mut self, client: &mut Client, live: &mut Live<'_>) -> Result<Option<(Raw, Task)>, Failure> {
        let Some(raw) = client.next_event(Some(TICK))? else {
            live.tick();
            return Ok(None);
        };
        let event = client::event(&raw);
        if self.context.output.json {
            self.context.output.answer(raw.get())?;
        } else if let Some(event) = &event {
            live.event(event)?;
        }
        self.since = event.as_ref().and_then(|event| event.seq).unwrap_or(self.since);
        if event.is_some_and(|event| may_be_the_end(&event)) { self.look(client) } else { Ok(None) }
    }

    /// An old end may be replayed for a task that was resumed since, and a gap may hide the end: only the task tells.
    fn look(&self, client: &mut Client) -> Result<Option<(Raw, Task)>, Failure> {
        let raw = client.call_raw(TaskGet::NAME, &self.params())?;
        let task: Task = decode(&raw)?;
        Ok(task.state.is_settled().then_some((raw, task)))
    }

    fn params(&self) -> TaskParams {
        TaskParams { task: self.task.id.0.clone() }
    }
}

fn may_be_the_end(event: &Event) -> bool {
    matches!(event.kind, EventType::TaskFinished | EventType::TaskInterrupted | EventType::Gap)
}
