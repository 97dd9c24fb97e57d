//! `approvals`, `approve` and `deny`; and the warning that nobody may be there to answer.

use std::io;
use std::time::Duration;

use nano_protocol::approval::{Approval, ApprovalAnswerParams, ApprovalListParams, ApprovalState};
use nano_protocol::event::{EventType, SubscribeParams};
use nano_protocol::id::SessionRef;
use nano_protocol::method::{AgentGet, ApprovalAnswer, ApprovalList, EventsSubscribe, Method as _, SessionGet};
use nano_protocol::session::SessionParams;

use crate::client;
use crate::commands::page;
use crate::context::{Context, Start};
use crate::failure::Failure;
use crate::link::Link;
use crate::output::Output;
use crate::summary::member;
use crate::table::Column::{Extra, Text, Whole};

const TICK: Duration = Duration::from_millis(500);

/// Which approvals.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only those of this session
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,
    /// Only those in this state: pending (unless told), allowed, denied or expired
    #[arg(long, value_name = "S", conflicts_with = "all")]
    state: Option<ApprovalState>,
    /// Those in every state
    #[arg(long)]
    all: bool,
    /// Show those that wait, then each that comes and what becomes of it
    #[arg(long, conflicts_with_all = ["state", "all", "limit", "after"])]
    watch: bool,
    /// At most so many; 200 unless told
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Those after this page
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
}

/// An approval to allow.
#[derive(Debug, clap::Args)]
pub struct Allow {
    /// Its id, or a beginning of it that no other has
    #[arg(value_name = "ID")]
    approval: String,
    /// Allow the same call for the rest of the session, too
    #[arg(long)]
    always: bool,
}

/// An approval to deny.
#[derive(Debug, clap::Args)]
pub struct Deny {
    /// Its id, or a beginning of it that no other has
    #[arg(value_name = "ID")]
    approval: String,
}

/// Carries out `approvals`.
pub fn list(context: &Context, args: List) -> Result<(), Failure> {
    let List { session, state, all, watch: watches, limit, after } = args;
    let state = state.or((!all).then_some(ApprovalState::Pending));
    let params = ApprovalListParams { session: session.map(SessionRef), state, limit, after };
    if watches {
        return watch(context, params);
    }
    context.show::<ApprovalList>(&params, |output, list| {
        let rows: Vec<_> = list.approvals.iter().map(row).collect();
        let head = [Whole("ID"), Whole("STATE"), Text("WHAT"), Extra("WHY"), Extra("UNTIL"), Extra("SESSION")];
        page(output, &head, &rows, list.next.as_ref(), "no call waits for an answer")
    })
}

/// Asks for all that wait.
pub fn pending() -> ApprovalListParams {
    ApprovalListParams { state: Some(ApprovalState::Pending), ..ApprovalListParams::default() }
}

fn row(it: &Approval) -> Vec<String> {
    let (id, state) = (it.id.to_string(), it.state.to_string());
    vec![id, state, it.what.clone(), it.why.clone(), it.expires_at.to_string(), it.session.to_string()]
}

/// Shows what waits, then what comes, over restarts too.
fn watch(context: &Context, mut list: ApprovalListParams) -> Result<(), Failure> {
    list.state = Some(ApprovalState::Pending);
    let types = Some(vec![EventType::ApprovalRequested, EventType::ApprovalAnswered]);
    let mut params = SubscribeParams { session: list.session.clone(), types, ..SubscribeParams::default() };
    Link::new(context, Start::Never)?.persist(|client| {
        let head = client.call::<EventsSubscribe>(&params)?.head_seq;
        if params.since_seq.is_none() {
            for approval in client.call::<ApprovalList>(&list)?.approvals.iter().rev() {
                tell(&context.output, approval)?;
            }
        }
        // What happens while the daemon is away must not be missed either.
        params.since_seq = params.since_seq.or(Some(head));
        loop {
            let Some(event) = client.next_event(Some(TICK))?.and_then(|raw| client::event(&raw)) else { continue };
            params.since_seq = event.seq.or(params.since_seq);
            if let Some(approval) = member::<Approval>(&event.data, "approval") {
                tell(&context.output, &approval)?;
            }
        }
    })
}

fn tell(output: &Output, it: &Approval) -> io::Result<()> {
    if output.json {
        return output.answer(&serde_json::to_string(it).unwrap_or_default());
    }
    output.answer(&row(it).join("  "))
}

/// Carries out `approve`.
pub fn approve(context: &Context, args: Allow) -> Result<(), Failure> {
    let always = args.always.then_some(true);
    answer(context, &ApprovalAnswerParams { approval: args.approval, allow: true, always })
}

/// Carries out `deny`.
pub fn deny(context: &Context, args: Deny) -> Result<(), Failure> {
    answer(context, &ApprovalAnswerParams { approval: args.approval, allow: false, always: None })
}

fn answer(context: &Context, params: &ApprovalAnswerParams) -> Result<(), Failure> {
    context.show::<ApprovalAnswer>(params, |output, it| {
        output.answer(&format!("{} {}", it.id, it.state))?;
        output.note(&format!("{}{}", it.what, if it.always { ", for the rest of the session" } else { "" }));
        Ok(())
    })
}

/// Says, in one line, that a call waits and how to answer.
pub fn question(it: &Approval) -> String {
    let Approval { id, what, why, expires_at, .. } = it;
    format!("waits for you until {expires_at}: {what} ({why}); nanoctl approve {id}, or nanoctl deny {id}")
}

/// Warns that a session's rules ask a person: what comes later may come when nobody is there.
pub fn warn_of_questions(context: &Context, session: SessionRef) -> Result<(), Failure> {
    let mut client = context.connect(Start::Never)?;
    let session = client.call::<SessionGet>(&SessionParams { session })?;
    let name = nano_protocol::catalog::NameParams { name: session.agent };
    let agent = client::decode::<nano_protocol::catalog::AgentInfo>(&client.call_raw(AgentGet::NAME, &name)?)?;
    let asks = |rule: &&String| rule.rsplit(':').next().is_some_and(|level| level.trim() == "ask");
    if let Some(rule) = agent.approve.iter().find(asks) {
        let wait = agent.approve_timeout_ms.unwrap_or_default() / 1000;
        context.output.warn(&format!(
            "a rule of agent {} asks a person ({rule}): where nobody answers within {wait} s, such a call is denied",
            agent.name
        ));
    }
    Ok(())
}
