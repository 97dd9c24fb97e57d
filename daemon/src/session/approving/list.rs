//! Reading approvals as the store has them.

use nano_protocol::approval::{Approval, ApprovalState, Approvals};
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::id::SessionId;

use super::Answer;
use crate::session::actor::Command;
use crate::session::deps::unavailable;
use crate::session::reading::{cut, page};
use crate::session::registry::Registry;
use crate::store::Key;

/// Returns all approvals that `uid` may see, newest first.
fn seen(registry: &Registry, uid: u32, session: Option<&SessionId>) -> Result<Vec<Approval>, RpcError> {
    let prefix = session.map_or_else(|| Key::all(b'q'), |session| Key::below(b'q', session.as_str()));
    let found: Vec<Approval> = registry.deps().store.readable(&prefix).map_err(|error| unavailable(&error))?;
    let mut found: Vec<_> = found.into_iter().filter(|approval| registry.sees(uid, &approval.session)).collect();
    found.sort_by(|one, other| other.id.cmp(&one.id));
    Ok(found)
}

/// Returns a page of the approvals that `uid` may see, newest first.
pub fn approvals(
    registry: &Registry,
    uid: u32,
    session: Option<&SessionId>,
    state: Option<ApprovalState>,
    (limit, after): (Option<usize>, Option<String>),
) -> Result<Approvals, RpcError> {
    let limit = page(limit)?;
    let wanted = |approval: &Approval| {
        let older = after.as_ref().is_none_or(|after| approval.id.0 < *after);
        older && state.is_none_or(|state| approval.state == state)
    };
    let (approvals, more) = cut(seen(registry, uid, session)?.into_iter().filter(wanted), limit);
    let next = approvals.last().filter(|_| more).map(|last| last.id.0.clone());
    Ok(Approvals { approvals, next })
}

/// Hands a person's answer to the session whose call waits for it.
pub async fn answer(registry: &Registry, uid: u32, id: &str, allow: bool, always: bool) -> Result<Approval, RpcError> {
    if always && !allow {
        return Err(RpcError::new(ErrorKind::InvalidParams, "always goes with allow alone"));
    }
    let approval = find(registry, uid, id)?;
    let answer = Answer { approval: approval.id.clone(), by: uid, allow, always };
    if approval.state != ApprovalState::Pending {
        return answer.came_late(approval);
    }
    registry.ask(&approval.session, |reply| Command::Answer(answer, reply)).await
}

/// Returns the approval that `uid` means by an id or the beginning of one.
fn find(registry: &Registry, uid: u32, id: &str) -> Result<Approval, RpcError> {
    let found =
        seen(registry, uid, None)?.into_iter().filter(|approval| !id.is_empty() && approval.id.0.starts_with(id));
    let mut found: Vec<Approval> = found.take(6).collect();
    if found.len() > 1 {
        let names: Vec<&str> = found.iter().map(|one| one.id.as_str()).collect();
        let message = format!("{id} may be any of {}", names.join(", "));
        return Err(RpcError::new(ErrorKind::InvalidParams, message));
    }
    let gone = || {
        let hint = "nanoctl approvals lists what waits";
        RpcError::new(ErrorKind::NotFound, format!("there is no approval {id}")).hint(hint)
    };
    found.pop().ok_or_else(gone)
}
