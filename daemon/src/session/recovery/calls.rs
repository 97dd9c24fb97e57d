//! Which calls were open, and what each class makes of that.

use nano_protocol::approval::{Approval, ApprovalState};
use nano_protocol::id::TaskId;
use nano_protocol::message::{Message, ToolCall};
use nano_protocol::task::TaskError;

use crate::session::deps::Deps;
use crate::session::offered::offered;
use crate::skills::offer::Offer;
use crate::store::record::SessionRecord;
use crate::store::record::call::CallRecord;
use crate::store::{Key, StoreError};
use crate::tools::class::Class;

/// A reply with calls that have no result in the transcript.
pub struct Interrupted {
    /// Whose reply it is.
    pub task: TaskId,
    /// How many of its calls, from the first on, have one.
    pub kept: Vec<ToolCall>,
    /// The others, in order.
    pub open: Vec<Open>,
}

/// A call without a result in the transcript.
pub struct Open {
    pub call: ToolCall,
    /// It as it was put on record, if it was started.
    pub record: Option<CallRecord>,
    pub class: Class,
    pub read_only: bool,
    /// The approval that it waits for.
    pub waits: Option<Approval>,
}

impl Open {
    /// Tells whether a person was asked before it ran.
    fn was_asked(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.approval.is_some())
    }

    /// Tells whether it was running when the daemon died.
    pub fn ran(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.result.is_none())
    }
}

/// Finds the calls of the last reply that are open.
pub fn interrupted(
    deps: &Deps,
    record: &SessionRecord,
    skills: &Offer,
    transcript: &[Message],
) -> Result<Option<Interrupted>, StoreError> {
    let Some(at) = transcript.iter().rposition(|message| !message.tool_calls.is_empty()) else { return Ok(None) };
    let (reply, after) = transcript.split_at(at + 1);
    let Some(reply) = reply.last() else { return Ok(None) };
    let answered = |call: &ToolCall| after.iter().any(|message| message.tool_call_id.as_ref() == Some(&call.id));
    let (kept, open): (Vec<_>, Vec<_>) =
        reply.tool_calls.iter().cloned().enumerate().partition(|(_, call)| answered(call));
    if open.is_empty() {
        return Ok(None);
    }
    let tools = offered(deps, record, skills);
    let found = |(at, call): (usize, ToolCall)| {
        let stored = deps.store.get::<CallRecord>(&Key::call(&record.session.id, at))?;
        let stored = stored.filter(|stored| stored.id == call.id);
        let asked = stored.as_ref().and_then(|stored| stored.approval.as_ref());
        let asked = asked.map(|id| deps.store.get::<Approval>(&Key::approval(&record.session.id, id))).transpose()?;
        let waits = asked.flatten().filter(|approval| approval.state == ApprovalState::Pending);
        // What only waited has not begun.
        let stored = stored.filter(|stored| stored.starts > 0 || stored.approval.is_none());
        let tool = tools.get(&call.name);
        // One that is not offered any more does not run again; what it was about to do to a file can be looked at.
        let gone = || deps.tools().iter().find(|tool| tool.spec().name == call.name).map(|tool| tool.class());
        let class = tool.map(|tool| tool.class()).or_else(|| gone().filter(|class| *class == Class::Verify));
        let class = class.unwrap_or(Class::Opaque);
        let read_only = tool.is_some_and(|tool| tool.spec().read_only);
        Ok(Open { record: stored, call, class, read_only, waits })
    };
    let open = open.into_iter().map(found).collect::<Result<_, StoreError>>()?;
    Ok(Some(Interrupted { task: reply.task.clone(), kept: kept.into_iter().map(|(_, call)| call).collect(), open }))
}

/// Says why a task waits for a person, if one of its calls was too dangerous to go on behind it.
pub fn held(open: &[Open]) -> Option<TaskError> {
    // One that a person has allowed is asked about again.
    let holds = |open: &&Open| open.ran() && open.class == Class::Dangerous && !open.was_asked();
    let Open { call, .. } = open.iter().find(holds)?;
    let (name, id) = (&call.name, &call.id);
    let message = format!(
        "the daemon died while the call {id} of {name} ran; see what it did, then nanoctl resume or nanoctl cancel"
    );
    Some(TaskError { kind: "restart".into(), message })
}

/// What is to be done about an open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its result is on record.
    Known,
    /// It was never started, and is not now.
    Never,
    /// It is run again.
    Again,
    /// Its file is looked at.
    Look,
    /// Nobody knows what it did.
    Unknown,
    /// It waits for a person, as it did before.
    Waits,
}

/// Says what is to be done; `goes_on`: its task goes on by itself.
pub fn verdict(class: Class, record: Option<&CallRecord>, goes_on: bool) -> Verdict {
    match (record, class) {
        (None, _) => Verdict::Never,
        (Some(record), _) if record.result.is_some() => Verdict::Known,
        (_, Class::Pure | Class::Keyed) if goes_on => Verdict::Again,
        // Before that a person is asked again.
        (Some(record), Class::Dangerous) if goes_on && record.approval.is_some() => Verdict::Again,
        // An older version said nothing before it changed a file.
        (Some(record), Class::Verify) if record.begun.is_some() => Verdict::Look,
        (Some(_), Class::Pure | Class::Keyed | Class::Verify | Class::Opaque | Class::Dangerous) => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use nano_protocol::Object;
    use nano_protocol::message::ToolCall;
    use nano_protocol::time::Timestamp;

    use super::{Open, Verdict, held, verdict};
    use crate::store::record::call::{CallRecord, CallResult};
    use crate::tools::class::Class::{self, Dangerous, Keyed, Opaque, Pure, Verify};

    #[test]
    fn a_dangerous_call_that_ran_holds_its_task() {
        let begun = Some(CallRecord { begun: Some(Timestamp(1)), ..CallRecord::default() });
        let ended = Some(CallRecord { result: Some(CallResult::default()), ..CallRecord::default() });
        let open = |class: Class, record: &Option<CallRecord>| {
            let call = ToolCall { id: "c1".into(), name: "wipe".into(), arguments: Object::new(), arguments_raw: None };
            Open { call, record: record.clone(), class, read_only: false, waits: None }
        };
        let why = held(&[open(Opaque, &begun), open(Dangerous, &begun)]).map(|why| why.message).unwrap_or_default();
        assert!(why.contains("the call c1 of wipe"), "{why}");
        for (class, record) in [(Dangerous, &None), (Dangerous, &ended), (Opaque, &begun), (Verify, &begun)] {
            assert_eq!(held(&[open(class, record)]), None, "{class:?} {record:?}");
        }
    }

    #[test]
    fn each_class_gets_its_own() {
        let begun = CallRecord { begun: Some(Timestamp(1)), starts: 1, ..CallRecord::default() };
        let ended = CallRecord { result: Some(CallResult::default()), ..begun.clone() };
        let old = CallRecord { begun: None, starts: 0, ..begun.clone() };
        let check = |class: Class, goes_on: Verdict, waits: Verdict, old_version: Verdict| {
            assert_eq!(verdict(class, Some(&begun), true), goes_on, "{class:?} goes on");
            assert_eq!(verdict(class, Some(&begun), false), waits, "{class:?} waits");
            assert_eq!(verdict(class, Some(&old), true), old_version, "{class:?} of an older version");
            assert_eq!(verdict(class, Some(&ended), true), Verdict::Known, "{class:?} had ended");
            assert_eq!(verdict(class, None, true), Verdict::Never, "{class:?} had not begun");
        };
        check(Pure, Verdict::Again, Verdict::Unknown, Verdict::Again);
        check(Keyed, Verdict::Again, Verdict::Unknown, Verdict::Again);
        check(Verify, Verdict::Look, Verdict::Look, Verdict::Unknown);
        check(Opaque, Verdict::Unknown, Verdict::Unknown, Verdict::Unknown);
        check(Dangerous, Verdict::Unknown, Verdict::Unknown, Verdict::Unknown);
    }
}
