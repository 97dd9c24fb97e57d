//! `skill.*`: what there is, and what is made, changed and removed over the wire.

use std::path::PathBuf;
use std::sync::Arc;

use nano_protocol::MAX_CONTENT;
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::id::SessionRef;
use nano_protocol::method::{SkillCreate, SkillDelete, SkillGet, SkillList, SkillUpdate, SkillValidate};
use nano_protocol::session::{Session, SessionState};
use nano_protocol::skill::{
    Skill, SkillCreateParams, SkillDeleteParams, SkillInfo, SkillListParams, SkillParams, SkillUpdateParams,
    SkillValidateParams, Skills, Validated,
};
use nano_skill::Document;

use super::catalog::page;
use super::dispatch::Serve;
use super::session::invalid;
use super::{Caller, Server};
use crate::session::reading;
use crate::skills::edit::{self, Edit, EditError};
use crate::skills::library::{Library, Shelves};
use crate::skills::{disk, files, offer};

/// A page of skills ends behind so many bytes: an answer must fit into a line, escaped too.
const PAGE_BYTES: usize = 1024 * 1024;

/// Returns the session that is meant, if one is.
fn session(server: &Server, caller: &Caller, named: Option<&SessionRef>) -> Result<Option<Session>, RpcError> {
    let Some(named) = named else { return Ok(None) };
    let id = server.registry.find(caller.uid, named)?;
    Ok(Some(reading::record(server.deps(), &id)?.session))
}

fn workspace(session: Option<&Session>) -> Option<PathBuf> {
    session.map(|session| PathBuf::from(&session.workspace))
}

/// Refuses what is to be written for a session that takes nothing more.
fn open(session: Option<&Session>) -> Result<Option<PathBuf>, RpcError> {
    match session.filter(|session| session.state == SessionState::Closed) {
        Some(closed) => Err(RpcError::new(ErrorKind::Conflict, format!("session {} is closed", closed.id))),
        None => Ok(workspace(session)),
    }
}

fn refusal(why: &EditError) -> RpcError {
    let kind = match why {
        EditError::Invalid(_) => ErrorKind::InvalidParams,
        EditError::Gone(_) => ErrorKind::NotFound,
        EditError::Conflict(_) => ErrorKind::Conflict,
        EditError::Denied(..) => ErrorKind::Denied,
        EditError::TooLarge(_) => ErrorKind::TooLarge,
        EditError::Path(_) => ErrorKind::Unavailable,
    };
    let error = RpcError::new(kind, why.to_string());
    match why {
        EditError::Gone(_) => error.hint("nanoctl skills list shows what there is"),
        EditError::Denied(_, hint) => error.hint(*hint),
        EditError::Path(_) => error.hint("look at the owner, the mode and the room of that place"),
        _ => error,
    }
}

/// Does file work beside the event loop.
async fn edited<T: Send + 'static>(
    server: &Server,
    work: impl FnOnce(&Library) -> Result<T, EditError> + Send + 'static,
) -> Result<T, RpcError> {
    let library = server.deps().skills.clone();
    let done = tokio::task::spawn_blocking(move || work(&library)).await;
    done.map_err(|why| RpcError::new(ErrorKind::Internal, why.to_string()))?.map_err(|why| refusal(&why))
}

/// What a caller sees: the shelves, and whether and which of a session's skills they are.
struct Sight {
    shelves: Shelves,
    filter: Option<Vec<String>>,
    trusted: bool,
}

impl Sight {
    async fn of(server: &Server, session: Option<&Session>) -> Self {
        let skills = Arc::clone(&server.deps().skills);
        let workspace = workspace(session);
        let trusted = workspace.as_ref().is_some_and(|workspace| skills.trusts(workspace));
        let shelves = skills.look(workspace.as_deref()).await;
        Self { shelves, filter: session.and_then(|session| session.skills.clone()), trusted }
    }

    /// Returns the skill with its document as it is now: the one at `path`, else the one that counts.
    async fn detail(self, name: String, path: Option<PathBuf>) -> Result<Skill, RpcError> {
        let found = tokio::task::spawn_blocking(move || {
            let (root, skill) = edit::find(&self.shelves, &name, path.as_deref())?;
            let rows = offer::list(&self.shelves, None, self.trusted);
            let info = rows.into_iter().find(|row| *row.path == *skill.path.to_string_lossy());
            // One that cannot be read is shown with its reason all the same.
            let text = edit::read(root, skill).unwrap_or_default();
            Ok::<_, EditError>((skill.clone(), info.unwrap_or_else(|| skill.info()), text, disk::ground(root)))
        });
        let found = found.await.map_err(|why| RpcError::new(ErrorKind::Internal, why.to_string()))?;
        let (skill, info, text, ground) = found.map_err(|why| refusal(&why))?;
        let beside = match (&skill.folder, ground) {
            (Some(folder), Ok(ground)) => files::beside(Arc::new(ground), folder.clone()).await,
            _ => Vec::new(),
        };
        Ok(Skill {
            info,
            body: skill.document.body.clone(),
            metadata: skill.document.metadata.clone(),
            files: beside.iter().map(|file| file.to_string_lossy().into_owned()).collect(),
            text: text.text,
            digest: text.digest,
        })
    }
}

impl Serve for SkillList {
    async fn serve(server: &Server, caller: &Caller, params: SkillListParams) -> Result<Skills, RpcError> {
        let session = session(server, caller, params.session.as_ref())?;
        let Sight { shelves, filter, trusted } = Sight::of(server, session.as_ref()).await;
        let skills = offer::list(&shelves, filter.as_deref(), trusted);
        // Names may repeat; the line end sorts below whatever a longer name goes on with.
        let keyed = skills.into_iter().enumerate().map(|(at, skill)| (format!("{}\n{at:06}", skill.name), skill));
        let paging = nano_protocol::catalog::PageParams { limit: params.limit, after: params.after };
        let (mut page, mut next) = page(keyed.collect(), |(key, _)| key.clone(), &paging);
        let mut bytes = 0;
        let fitting = page
            .iter()
            .take_while(|(_, skill)| {
                bytes += size(skill);
                bytes <= PAGE_BYTES
            })
            .count()
            .max(1);
        if fitting < page.len() {
            page.truncate(fitting);
            next = page.last().map(|(key, _)| key.clone());
        }
        Ok(Skills { skills: page.into_iter().map(|(_, skill)| skill).collect(), next })
    }
}

fn size(skill: &SkillInfo) -> usize {
    let problems: usize = skill.problems.iter().map(|problem| problem.message.len()).sum();
    skill.name.len() + skill.description.len() + skill.path.len() + problems
}

impl Serve for SkillGet {
    async fn serve(server: &Server, caller: &Caller, params: SkillParams) -> Result<Skill, RpcError> {
        let session = session(server, caller, params.session.as_ref())?;
        Sight::of(server, session.as_ref()).await.detail(params.name, None).await
    }
}

impl Serve for SkillCreate {
    async fn serve(server: &Server, caller: &Caller, params: SkillCreateParams) -> Result<Skill, RpcError> {
        let session = session(server, caller, params.session.as_ref())?;
        let (name, place) = (params.name.clone(), open(session.as_ref())?);
        let everywhere = server.registry.is_admin(caller.uid);
        fits(&params.content)?;
        let path = edited(server, move |library| {
            let metadata = params.metadata.unwrap_or_default();
            let told = (params.name.as_str(), params.description.as_str());
            library.create(everywhere, place.as_deref(), told, &metadata, &params.content)
        })
        .await?;
        Sight::of(server, session.as_ref()).await.detail(name, Some(path)).await
    }
}

impl Serve for SkillUpdate {
    async fn serve(server: &Server, caller: &Caller, params: SkillUpdateParams) -> Result<Skill, RpcError> {
        let session = session(server, caller, params.session.as_ref())?;
        let (name, place) = (params.name.clone(), open(session.as_ref())?);
        let everywhere = server.registry.is_admin(caller.uid);
        if params.text.is_none() && params.description.is_none() && params.content.is_none() {
            return Err(invalid("nothing to change; give text, description or content"));
        }
        params.text.iter().chain(&params.content).try_for_each(|text| fits(text))?;
        let path = edited(server, move |library| {
            let edit = Edit { text: params.text, description: params.description, body: params.content };
            library.update(everywhere, place.as_deref(), &params.name, edit, params.digest.as_deref())
        })
        .await?;
        Sight::of(server, session.as_ref()).await.detail(name, Some(path)).await
    }
}

impl Serve for SkillDelete {
    async fn serve(server: &Server, caller: &Caller, params: SkillDeleteParams) -> Result<SkillInfo, RpcError> {
        let session = session(server, caller, params.session.as_ref())?;
        let (place, everywhere) = (open(session.as_ref())?, server.registry.is_admin(caller.uid));
        let gone = move |library: &Library| {
            library.delete(everywhere, place.as_deref(), &params.name, params.digest.as_deref())
        };
        Ok(edited(server, gone).await?.info())
    }
}

impl Serve for SkillValidate {
    async fn serve(server: &Server, caller: &Caller, params: SkillValidateParams) -> Result<Validated, RpcError> {
        let shown = |document: &Document| Validated {
            name: document.name.clone(),
            description: document.description.clone(),
            valid: document.valid,
            problems: document.problems.clone(),
        };
        match (params.text, params.name) {
            (Some(text), None) => {
                let lone = Document::read(text.as_bytes(), "");
                // Without a folder's name there is nothing to compare with.
                let folder = params.folder.unwrap_or(lone.name);
                Ok(shown(&Document::read(text.as_bytes(), &folder)))
            }
            (None, Some(name)) => {
                let session = session(server, caller, params.session.as_ref())?;
                let shelves = Sight::of(server, session.as_ref()).await.shelves;
                Ok(shown(&edit::find(&shelves, &name, None).map_err(|why| refusal(&why))?.1.document))
            }
            _ => Err(invalid("give either text or name")),
        }
    }
}

fn fits(text: &str) -> Result<(), RpcError> {
    if text.len() <= MAX_CONTENT {
        return Ok(());
    }
    Err(RpcError::new(ErrorKind::TooLarge, format!("{} bytes are too many; {MAX_CONTENT} fit", text.len())))
}
