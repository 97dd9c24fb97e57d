//! Skills as sessions get them: what each is offered, and who is told of a change.

use std::path::Path;
use std::sync::Arc;

use nano_protocol::event::EventType;
use nano_protocol::id::SessionId;
use nano_protocol::session::{Session, SessionState};
use serde_json::json;
use tokio::sync::mpsc;

use super::deps::Deps;
use crate::skills::library::Changed;
use crate::skills::offer::Offer;
use crate::store::record::SessionRecord;
use crate::store::{Key, StoreError};

/// How many sessions a `skill.changed` names.
const NAMED: usize = 100;

/// Returns what a session is offered now.
pub async fn offer(deps: &Deps, session: &Session) -> Arc<Offer> {
    let workspace = Path::new(&session.workspace);
    let shelves = deps.skills.look(Some(workspace)).await;
    let filter = if deps.agent_is_gone(&session.agent) { Some(&[][..]) } else { session.skills.as_deref() };
    let offer = Offer::new(&shelves, filter, deps.skills.trusts(workspace));
    let away = deps.booter(&session.booter).is_some_and(|booter| booter.is_remote());
    Arc::new(if away { offer.away() } else { offer })
}

/// Has the library look again whenever something may have changed, until the daemon goes down.
pub async fn keep_watch(deps: Arc<Deps>) {
    let Some(watch) = deps.skills.watch() else { return };
    let mut told = false;
    loop {
        if watch.is_polling() && !std::mem::replace(&mut told, true) {
            let data =
                json!({"message": "no file watches are left: changed skills are noticed by looking now and then"});
            drop(deps.record(None, None, EventType::Warning, data).await);
        }
        tokio::select! {
            () = deps.shutdown.stopping().cancelled() => return,
            () = watch.something() => {}
        }
        let library = deps.skills.clone();
        if let Err(why) = tokio::task::spawn_blocking(move || library.look_again()).await {
            tracing::error!(%why, "looking at the skills panicked");
        }
    }
}

/// Records what changed in the library until the daemon goes down.
pub async fn announce(deps: Arc<Deps>, mut changed: mpsc::Receiver<Changed>) {
    loop {
        let one = tokio::select! {
            () = deps.shutdown.stopping().cancelled() => return,
            one = changed.recv() => one,
        };
        let Some(one) = one else { return };
        if let Err(error) = record(&deps, one).await {
            drop(deps.store_failed(&error));
            return;
        }
    }
}

/// Records one change: for each open session of the workspace where it happened in one, else once for all.
async fn record(deps: &Arc<Deps>, changed: Changed) -> Result<(), StoreError> {
    let (asked, what) = (deps.clone(), changed.clone());
    let found = tokio::task::spawn_blocking(move || seeing(&asked, &what)).await;
    let sessions = found.unwrap_or_else(|why| {
        tracing::error!(%why, "looking for who is offered a skill panicked");
        Vec::new()
    });
    let data = |sessions: &[SessionId]| {
        json!({
            "skills": changed.skills.iter().map(|(skill, became)| json!({
                "name": skill.document.name,
                "became": became.as_str(),
                "path": skill.path,
                "valid": skill.document.valid,
            })).collect::<Vec<_>>(),
            "source": changed.root.source.as_str(),
            "root": changed.root.path,
            "sessions": sessions.iter().take(NAMED).collect::<Vec<_>>(),
            "session_count": sessions.len(),
            "from": "next_request",
        })
    };
    if changed.root.workspace.is_none() {
        return deps.record(None, None, EventType::SkillChanged, data(&sessions)).await;
    }
    for session in sessions {
        let data = data(std::slice::from_ref(&session));
        deps.record(Some(session), None, EventType::SkillChanged, data).await?;
    }
    Ok(())
}

/// Returns the open sessions whose offer a change is about, of one workspace or of all.
fn seeing(deps: &Deps, changed: &Changed) -> Vec<SessionId> {
    let root = &changed.root;
    let ids = deps.store.ids_backwards(&Key::all(b's'), None);
    let record = |id: Result<String, StoreError>| deps.store.get::<SessionRecord>(&Key::session(&SessionId(id?)));
    // What cannot be told now is seen in the next offer all the same.
    let records = ids.filter_map(|id| record(id).ok().flatten());
    let is_offered = |session: &Session| {
        let workspace = Path::new(&session.workspace);
        let counts = |name: &String| {
            session.skills.as_ref().is_none_or(|filter| filter.contains(name))
                && !deps.skills.is_hidden(root, name, workspace)
        };
        session.state != SessionState::Closed
            && root.workspace.as_ref().is_none_or(|own| own == workspace)
            && changed.skills.iter().any(|(skill, _)| counts(&skill.document.name))
    };
    records.map(|record| record.session).filter(is_offered).map(|session| session.id).collect()
}
