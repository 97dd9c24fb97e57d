//! `demo`: a private daemon, a recorded model, real tools; the same verbs and socket that a user has.
//!
//! It succeeds only if everything it shows really happened, and leaves nothing behind.

mod stage;

use std::path::Path;
use std::time::Duration;

use nano_protocol::followup::{Followup, FollowupParams};
use nano_protocol::id::SessionRef;
use nano_protocol::message::{Message, Role};
use nano_protocol::method::{FollowupGet, SessionMessages, SessionTools};
use nano_protocol::session::{MessagesParams, SessionParams, SessionTools as Tools};

use crate::context::Context;
use crate::failure::{Failure, Kind};
use stage::Stage;

/// Nothing to choose.
#[derive(Debug, clap::Args)]
pub struct Args {}

const PAUSE: Duration = Duration::from_millis(20);

/// Carries out `demo`.
pub fn run(context: &Context, _: &Args) -> Result<(), Failure> {
    if context.output.json {
        return Err(Failure::usage("the demo has no JSON to print", "leave --json out, or see nanoctl run --json"));
    }
    let mut stage = Stage::set(context)?;
    let played = play(&stage).and_then(|()| stage.clear());
    played.map_err(|failure| stage.stopped().unwrap_or(failure))?;
    let all = "# All of it happened: the file is changed, the steering was heard, the follow-up fired.";
    Ok(context.output.answer(all)?)
}

fn play(stage: &Stage<'_>) -> Result<(), Failure> {
    let workspace = stage.workspace.display().to_string();
    stage.say("# A session, and the tools it has before its computer is booted:")?;
    stage.nanoctl(&["session", "create", "--name", "demo", "--workspace", &workspace])?;
    stage.nanoctl(&["tools", "demo", "--why"])?;
    ensure(!tools(stage)?.exact, "the tool list was exact before boot")?;

    let task = first_task(stage)?;
    stage.say("# The tools it really has, now that it is booted:")?;
    stage.nanoctl(&["tools", "demo", "--why"])?;
    let after = tools(stage)?;
    ensure(after.booted && after.exact, "the tool list was not exact after boot")?;

    follow_up(stage)?;
    stage.say("# Everything that was said and done:")?;
    stage.nanoctl(&["session", "messages", "demo"])?;
    check(&stage.workspace, &transcript(stage)?, &task)
}

fn first_task(stage: &Stage<'_>) -> Result<String, Failure> {
    stage.say("# A task; while it runs a check, something more comes to mind:")?;
    let task = stage.nanoctl(&["submit", "-s", "demo", "The app does not start. Find out why and fix it."])?;
    stage.until("the check to start", || Ok(stage.workspace.join(".started").exists()))?;
    stage.nanoctl(&["steer", "demo", "Also write down in CHANGES.md what you changed.", "--note"])?;
    // Only now may the check end: the steering is in time whatever the machine is busy with.
    stage.write(".go", "")?;
    stage.nanoctl(&["wait", &task])?;
    stage.nanoctl(&["result", &task])?;
    Ok(task)
}

fn follow_up(stage: &Stage<'_>) -> Result<(), Failure> {
    stage.say("# A message that becomes a task later:")?;
    let id = stage.nanoctl(&["followup", "add", "demo", "Is the fix still there?", "--in", "1s"])?;
    let look = || -> Result<Followup, Failure> { stage.call::<FollowupGet>(&FollowupParams { followup: id.clone() }) };
    stage.until("the follow-up to fire", || Ok(look()?.last.is_some_and(|last| last.task.is_some())))?;
    stage.nanoctl(&["followup", "show", &id])?;
    let task = look()?.last.and_then(|last| last.task).map(|task| task.0).unwrap_or_default();
    stage.nanoctl(&["wait", &task])?;
    stage.nanoctl(&["result", &task])?;
    Ok(())
}

fn check(workspace: &Path, messages: &[Message], task: &str) -> Result<(), Failure> {
    let read = |name: &str| std::fs::read_to_string(workspace.join(name)).unwrap_or_default();
    let steered = |it: &Message| it.role == Role::Steering && it.task.as_str() == task;
    let failed = messages.iter().any(|it| it.role == Role::Tool && it.ok != Some(true));
    ensure(read("app.conf").ends_with("port = 8080\n"), "app.conf was not edited")?;
    ensure(read("CHANGES.md").contains("8080"), "CHANGES.md was not written")?;
    ensure(messages.iter().any(steered), "the steering is not in the transcript")?;
    ensure(messages.iter().any(|it| it.role == Role::Followup), "the follow-up is not in the transcript")?;
    ensure(!failed, "a tool did not do what it was asked")
}

fn tools(stage: &Stage<'_>) -> Result<Tools, Failure> {
    stage.call::<SessionTools>(&SessionParams { session: session() })
}

fn transcript(stage: &Stage<'_>) -> Result<Vec<Message>, Failure> {
    let params = MessagesParams { session: session(), ..MessagesParams::default() };
    Ok(stage.call::<SessionMessages>(&params)?.messages)
}

fn session() -> SessionRef {
    SessionRef("demo".into())
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::new(Kind::Failed, otherwise, "the lines above show how far it came")) }
}
