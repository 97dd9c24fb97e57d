//! Beginning one: on record first, then started, then looked after until its end is on record.

use std::sync::Arc;

use nano_protocol::id::{ProcessId, SessionId, TaskId};
use nano_protocol::process::{Process, ProcessState};

use super::end::{Ending, record_end};
use super::live::Live;
use super::reading::of_session;
use super::said;
use crate::booters::program::signal_name;
use crate::crash;
use crate::sandbox::helper::News;
use crate::sandbox::{self, Command, Sandbox, SandboxError};
use crate::session::deps::{Deps, unavailable};
use crate::session::registry::Registry;
use crate::store::record::process::ProcessRecord;
use crate::store::{Change, Commit, Key};
use crate::tools::ToolContext;

/// How many may run for one session at once.
const AT_ONCE: usize = 16;
/// How many that have ended are kept of a session.
const KEPT: usize = 100;

/// Who begins one, and where.
pub(super) struct Who {
    session: SessionId,
    task: TaskId,
    call: String,
    sandbox: Arc<dyn Sandbox>,
    folder: std::path::PathBuf,
}

impl Who {
    /// Returns who calls; none: the session has no computer.
    pub(super) fn of(context: &ToolContext) -> Option<Self> {
        let ToolContext { session, task, call, spill, .. } = context;
        let (session, task, call, folder) = (session.clone(), task.clone(), call.clone(), spill.clone());
        Some(Self { session, task, call, sandbox: context.sandbox.clone()?, folder })
    }
}

/// Begins one, or says why not.
pub(super) async fn begin(registry: &Registry, who: Who, command: Command) -> Result<(Process, Arc<Live>), String> {
    let deps = registry.deps();
    let id = ProcessId::from_ulid(&deps.clock.ulid());
    let process = Process {
        output: who.folder.join(format!("{id}.log")).to_string_lossy().into_owned(),
        id,
        session: who.session,
        task: who.task,
        call: who.call,
        command: command.text.clone(),
        cwd: command.cwd.iter().map(|cwd| cwd.to_string_lossy()).collect(),
        state: ProcessState::Running,
        status: None,
        signal: None,
        limits: Vec::new(),
        started_at: deps.clock.now(),
        ended_at: None,
    };
    record_begin(deps, &process).await?;
    let command = Command { spill: process.output.clone().into(), ..command };
    match who.sandbox.start(command).await {
        Ok(mut running) => {
            let live = Arc::new(Live::new(&mut running));
            deps.processes.add(&process.id, live.clone());
            // Not one of those that the daemon's end waits for: it is told when they have ended.
            tokio::spawn(look_after(registry.clone(), process.clone(), running, live.clone()));
            Ok((process, live))
        }
        Err(why) => Err(forget(deps, &process, &why).await),
    }
}

/// Puts one on record, and lets the oldest go.
async fn record_begin(deps: &Deps, process: &Process) -> Result<(), String> {
    let known = of_session(deps, &process.session).map_err(|error| unavailable(&error).message)?;
    let (running, ended): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|known| known.process.state == ProcessState::Running);
    if running.len() >= AT_ONCE {
        return Err(format!("{} processes run in the background already: end one with `process` first", running.len()));
    }
    let record = ProcessRecord { process: process.clone(), bytes: 0, tail: String::new() };
    let of_session = Key::session_process(&process.session, &process.id);
    let mut changes = vec![Change::put(Key::process(&process.id), &record), Change::put(of_session, &1)];
    let gone: Vec<Process> = ended.into_iter().skip(KEPT).map(|record| record.process).collect();
    changes.extend(gone.iter().flat_map(forgotten));
    crash::point("process.record.before");
    deps.store.commit(Commit::asked(changes)).await.map_err(|error| deps.store_failed(&error).message)?;
    crash::point("process.record.after");
    for old in gone {
        tokio::fs::remove_file(old.output).await.ok();
    }
    Ok(())
}

fn forgotten(process: &Process) -> [Change; 3] {
    let Process { id, session, .. } = process;
    [Key::process(id), Key::session_process(session, id), Key::untold(session, id)].map(Change::Delete)
}

/// Takes one off the record that did not start; says why.
async fn forget(deps: &Deps, process: &Process, why: &SandboxError) -> String {
    let removed = deps.store.commit(Commit::owed(forgotten(process).into())).await;
    tokio::fs::remove_file(&process.output).await.ok();
    removed.map_or_else(|error| deps.store_failed(&error).message, |_| why.to_string())
}

/// Waits for its end, brings that about where it is told to, and records it.
async fn look_after(registry: Registry, process: Process, mut running: sandbox::process::Process, live: Arc<Live>) {
    let mut ending = Ending::default();
    tokio::select! {
        () = whole(&mut running, &mut ending) => running.drain().await,
        () = live.stop.cancelled() => {
            crash::point("process.kill.before");
            end(&mut running, &mut ending).await;
            ending.killed = true;
            crash::point("process.kill.after");
        }
        () = registry.deps().shutdown.cutting().cancelled() => {
            // The next daemon finds it running on record: it is lost.
            running.ended().await;
            registry.deps().processes.remove(&process.id);
            return live.ended.cancel();
        }
    }
    record_end(&registry, &process, &ending, &live).await;
    registry.deps().processes.remove(&process.id);
    live.ended.cancel();
}

/// Waits until nothing of it runs any more; notes how its shell ended.
async fn whole(running: &mut sandbox::process::Process, ending: &mut Ending) {
    while let Some(news) = running.news().await {
        note(&news, ending);
    }
    if ending.status.is_none() && ending.signal.is_none() {
        // Somebody has killed its helper.
        ending.limits.extend(running.ended().await);
        ending.signal = Some("SIGKILL".into());
    }
}

/// Ends it with all that it has started.
async fn end(running: &mut sandbox::process::Process, ending: &mut Ending) {
    running.end();
    let all = async {
        while let Some(news) = running.news().await {
            note(&news, ending);
        }
    };
    tokio::time::timeout(said::PATIENCE, all).await.ok();
    ending.limits.extend(running.ended().await);
    running.drain().await;
}

fn note(news: &News, ending: &mut Ending) {
    match news {
        News::Exited(status) => ending.status = Some(*status),
        News::Signalled(number) => ending.signal = Some(signal_name(*number)),
        News::Limited(limit) => ending.limits.push(limit.clone()),
        News::Started | News::Failed(_) => {}
    }
}
