//! `attach` and `events`: what happens, live and replayed.

use std::time::Duration;

use nano_protocol::approval::ApprovalListParams;
use nano_protocol::event::{Event, EventType, SubscribeParams};
use nano_protocol::id::{SessionId, SessionRef, TaskId};
use nano_protocol::method::{ApprovalList, EventsSubscribe, SessionList};
use nano_protocol::session::{ListParams, Session, SessionState};

use crate::client::{self, Client, Raw};
use crate::commands::approvals::{pending, question};
use crate::context::{Context, Start};
use crate::failure::{Failure, Kind};
use crate::link::Link;
use crate::render::{Live, View};
use crate::summary::summary;

const TICK: Duration = Duration::from_millis(120);
/// A replay is over at the newest number; where that one is another owner's, after so much silence.
const SILENCE: Duration = Duration::from_secs(1);

/// Which session to follow.
#[derive(Debug, clap::Args)]
pub struct Attach {
    /// The session: id, prefix of the id or name; the newest open one unless told
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Show what came after this number first
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
}

/// Which events.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Go on with what happens from now on
    #[arg(short, long)]
    follow: bool,
    /// Those after this number; all that are kept unless told, none with --follow
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    #[arg(long = "type", value_name = "T", help = types())]
    types: Vec<EventType>,
    /// Only those of this session
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,
}

fn types() -> String {
    let all: Vec<_> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
    format!("Only those of this type; may be given again: {}", all.join(", "))
}

/// Carries out `attach`: until the session is closed.
pub fn attach(context: &Context, args: Attach) -> Result<(), Failure> {
    let mut link = Link::new(context, Start::Never)?;
    let session = args.session.map_or_else(|| choose(context, &mut link), |session| Ok(SessionRef(session)))?;
    let params = SubscribeParams {
        session: Some(session),
        since_seq: args.since,
        deltas: Some(true),
        types: context.output.types(),
        ..SubscribeParams::default()
    };
    let mut live = Live::new(&context.output, View::Attach);
    if args.since.is_none() && !context.output.json {
        let waiting = ApprovalListParams { session: params.session.clone(), ..pending() };
        for approval in link.persist(|client| client.call::<ApprovalList>(&waiting))?.approvals.iter().rev() {
            live.note(&question(approval))?;
        }
    }
    follow(&mut link, params, |raw| {
        let Some(raw) = raw else {
            live.tick();
            return Ok(true);
        };
        let event = client::event(raw);
        if context.output.json {
            context.output.answer(raw.get())?;
        } else if let Some(event) = &event {
            live.event(event)?;
        }
        Ok(event.is_none_or(|event| event.kind != EventType::SessionClosed))
    })
}

/// Carries out `events`.
pub fn run(context: &Context, args: Args) -> Result<(), Failure> {
    let mut link = Link::new(context, Start::Never)?;
    let session = args.session.map(SessionRef);
    let wanted = |event: &Event| args.types.is_empty() || args.types.contains(&event.kind);
    let show = |raw: &Raw, event: Option<&Event>| -> Result<(), Failure> {
        // A type that is unknown here cannot have been asked for.
        match event {
            Some(event) if wanted(event) && context.output.json => Ok(context.output.answer(raw.get())?),
            Some(event) if wanted(event) => Ok(context.output.answer(&line(event))?),
            None if args.types.is_empty() => Ok(context.output.answer(raw.get())?),
            _ => Ok(()),
        }
    };
    if args.follow {
        let deltas = args.types.iter().any(|kind| !kind.is_durable()).then_some(true);
        let params = SubscribeParams { session, since_seq: args.since, deltas, ..SubscribeParams::default() };
        return follow(&mut link, params, |raw| {
            raw.map_or(Ok(true), |raw| show(raw, client::event(raw).as_ref()).map(|()| true))
        });
    }
    let params = SubscribeParams { session, since_seq: Some(args.since.unwrap_or(0)), ..SubscribeParams::default() };
    replay(&mut context.connect(Start::Never)?, &params, show)
}

/// Hands events to `each`, over restarts too, until it says false; none at each tick.
fn follow(
    link: &mut Link<'_>,
    mut params: SubscribeParams,
    mut each: impl FnMut(Option<&Raw>) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    link.persist(|client| {
        let head = client.call::<EventsSubscribe>(&params)?.head_seq;
        // What happens while the daemon is away must not be missed either.
        params.since_seq = params.since_seq.or(Some(head));
        loop {
            let raw = client.next_event(Some(TICK))?;
            let seq = raw.as_ref().and_then(|raw| client::event(raw)).and_then(|event| event.seq);
            params.since_seq = seq.or(params.since_seq);
            if !each(raw.as_ref())? {
                return Ok(());
            }
        }
    })
}

/// Hands the events up to now to `show`.
pub fn replay(
    client: &mut Client,
    params: &SubscribeParams,
    mut show: impl FnMut(&Raw, Option<&Event>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let head = client.call::<EventsSubscribe>(params)?.head_seq;
    let mut seen = params.since_seq.unwrap_or(0);
    while seen < head {
        let Some(raw) = client.next_event(Some(SILENCE))? else { return Ok(()) };
        let event = client::event(&raw);
        seen = event.as_ref().and_then(|event| event.seq).unwrap_or(seen);
        if seen <= head {
            show(&raw, event.as_ref())?;
        }
    }
    Ok(())
}

/// Takes the newest open session and says which one that is.
fn choose(context: &Context, link: &mut Link<'_>) -> Result<SessionRef, Failure> {
    let session = link.persist(newest_open)?;
    let name = session.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
    context.output.note(&format!("attached to {}{name}", session.id));
    Ok(SessionRef::from(&session.id))
}

fn newest_open(client: &mut Client) -> Result<Session, Failure> {
    let list = client.call::<SessionList>(&ListParams::default())?;
    let open = list.sessions.into_iter().find(|session| session.state != SessionState::Closed);
    let none = || Failure::new(Kind::NotFound, "there is no open session", "nanoctl run or nanoctl session create");
    open.ok_or_else(none)
}

fn line(event: &Event) -> String {
    let seq = event.seq.map_or_else(|| "-".into(), |seq| seq.to_string());
    let about = event.task.as_ref().map(TaskId::as_str).or(event.session.as_ref().map(SessionId::as_str));
    let detail = summary(event);
    let line = format!("{seq:>6}  {}  {:<18}  {}  {detail}", event.at, event.kind, about.unwrap_or("-"));
    line.trim_end().to_owned()
}
