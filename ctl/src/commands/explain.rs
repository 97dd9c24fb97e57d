//! `explain`: why the calls of a task ran or did not.

use std::collections::HashMap;

use nano_protocol::approval::{Approval, ApprovalListParams};
use nano_protocol::event::{EventType, SubscribeParams};
use nano_protocol::id::SessionRef;
use nano_protocol::message::{Message, NotRun, Outcome, ToolCall};
use nano_protocol::method::{ApprovalList, SessionMessages, TaskGet};
use nano_protocol::session::MessagesParams;
use nano_protocol::task::{Task, TaskParams};
use serde_json::json;

use crate::client::Client;
use crate::commands::events::replay;
use crate::commands::page;
use crate::context::{Context, Start};
use crate::failure::Failure;
use crate::summary::{label, text};
use crate::table::Column::{Text, Whole};

/// Which task.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its id
    #[arg(value_name = "TASK")]
    task: String,
}

/// What is known of a call.
struct Told {
    call: ToolCall,
    result: Option<Message>,
    /// The level and its reason, as the start of the call has them.
    policy: Option<(String, String)>,
    approval: Option<Approval>,
}

/// Carries out `explain`.
pub fn run(context: &Context, args: Args) -> Result<(), Failure> {
    let mut client = context.connect(Start::Never)?;
    let task = client.call::<TaskGet>(&TaskParams { task: args.task })?;
    let calls = calls(&mut client, &task)?;
    if context.output.json {
        for told in &calls {
            let (level, why) = told.why();
            let (call, name, became) = (&told.call.id, &told.call.name, told.became());
            let line = json!({"call": call, "name": name, "became": became, "level": level, "why": why, "approval": told.approval});
            context.output.answer(&line.to_string())?;
        }
        return Ok(());
    }
    let rows: Vec<_> = calls.iter().map(Told::row).collect();
    let head = [Text("CALL"), Whole("BECAME"), Whole("LEVEL"), Text("WHY")];
    Ok(page(&context.output, &head, &rows, None, "the task has made no call")?)
}

fn calls(client: &mut Client, task: &Task) -> Result<Vec<Told>, Failure> {
    let messages = messages(client, task)?;
    let approvals = approvals(client, task)?;
    let mut policies = policies(client, task)?;
    let made = messages.iter().flat_map(|message| &message.tool_calls);
    let told = made.map(|call| Told {
        call: call.clone(),
        result: messages.iter().find(|message| message.tool_call_id.as_ref() == Some(&call.id)).cloned(),
        policy: policies.remove(&call.id),
        approval: approvals.iter().find(|approval| approval.call == call.id).cloned(),
    });
    Ok(told.collect())
}

fn messages(client: &mut Client, task: &Task) -> Result<Vec<Message>, Failure> {
    let session = SessionRef::from(&task.session);
    let mut params = MessagesParams { session, after_seq: None, limit: Some(1000) };
    let mut all = Vec::new();
    loop {
        let page = client.call::<SessionMessages>(&params)?;
        all.extend(page.messages.into_iter().filter(|message| message.task == task.id));
        params.after_seq = page.next_after_seq;
        if params.after_seq.is_none() {
            return Ok(all);
        }
    }
}

/// Returns the task's approvals, the newest first.
fn approvals(client: &mut Client, task: &Task) -> Result<Vec<Approval>, Failure> {
    let session = Some(SessionRef::from(&task.session));
    let mut params = ApprovalListParams { session, limit: Some(1000), ..ApprovalListParams::default() };
    let mut all = Vec::new();
    loop {
        let page = client.call::<ApprovalList>(&params)?;
        all.extend(page.approvals.into_iter().filter(|approval| approval.task == task.id));
        params.after = page.next;
        if params.after.is_none() {
            return Ok(all);
        }
    }
}

/// Returns what rules said of each call that started, as far as events are kept.
fn policies(client: &mut Client, task: &Task) -> Result<HashMap<String, (String, String)>, Failure> {
    let (task, since_seq) = (Some(task.id.0.clone()), Some(task.seq.saturating_sub(1)));
    let params = SubscribeParams { task, since_seq, ..SubscribeParams::default() };
    let mut all = HashMap::new();
    replay(client, &params, |_, event| {
        let started = event.filter(|event| event.kind == EventType::ToolStarted).map(|event| &event.data);
        if let Some((data, policy)) = started.and_then(|data| Some((data, data.get("policy")?))) {
            let said = (text(policy, "level").to_owned(), text(policy, "why").to_owned());
            all.insert(text(data, "call").to_owned(), said);
        }
        Ok(())
    })?;
    Ok(all)
}

impl Told {
    /// Returns what became of the call.
    fn became(&self) -> String {
        match &self.result {
            None if self.approval.as_ref().is_some_and(|approval| approval.answered_at.is_none()) => "waits".into(),
            None => "open".into(),
            Some(result) => match (result.not_run.map(NotRun::as_str), result.outcome.map(Outcome::as_str)) {
                (Some(why), _) => format!("not run: {why}"),
                (None, Some(outcome)) => outcome.into(),
                (None, None) => if result.ok == Some(true) { "ran" } else { "failed" }.into(),
            },
        }
    }

    /// Returns the level, and what made it so.
    fn why(&self) -> (String, String) {
        if let Some(it) = &self.approval {
            let by = it.answered_by.map(|uid| format!(" by uid {uid}"));
            let end = it.reason.as_ref().map(|reason| format!(" ({reason})")).or(by).unwrap_or_default();
            return ("ask".into(), format!("{}; {} {}{end}", it.why, it.id, it.state));
        }
        let denied = self.result.as_ref().filter(|result| result.not_run == Some(NotRun::Denied));
        let first = |text: &str| text.split(". ").next().unwrap_or_default().to_owned();
        match (denied, &self.policy) {
            (Some(result), _) => ("deny".into(), first(&result.content)),
            (None, Some(policy)) => policy.clone(),
            (None, None) => ("allow".into(), "no rule".into()),
        }
    }

    fn row(&self) -> Vec<String> {
        let (level, why) = self.why();
        vec![label(&self.call.name, Some(&self.call.arguments)), self.became(), level, why]
    }
}
