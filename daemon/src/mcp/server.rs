//! One server of one session: started, listed, started anew with growing waits, and what of it can be shown.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nano_protocol::Object;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::link::Link;
use super::pins::{self, Pins};
use super::standin::{barred, standin};
use super::tool::ServerTool;
use super::{Fault, Limits, METHOD_NOT_FOUND, Mcp, Place, clean, lock, names};
use crate::config::McpConfig;
use crate::tools::{Tool, ToolSpec};

/// How long a server may take until its tools are known.
const START: Duration = Duration::from_secs(30);
/// The waits before it is started anew; the last one again and again.
const WAITS: [Duration; 4] = [Duration::ZERO, Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(5)];
/// How many pages of tools are read, and how many tools are taken.
const PAGES: usize = 50;
const MOST: usize = 256;
/// The longest name of a tool.
const NAME: usize = 128;

/// A server of a session.
pub struct Server {
    /// What is configured.
    pub config: McpConfig,
    state: tokio::sync::Mutex<State>,
    shown: Mutex<Vec<Arc<dyn Tool>>>,
    link: Mutex<Option<Arc<Link>>>,
}

#[derive(Default)]
struct State {
    failures: usize,
    again: Option<Instant>,
}

impl Server {
    /// Makes one that is not started.
    pub fn new(config: McpConfig) -> Self {
        let shown = Mutex::new(vec![standin(&config.name, Some("is being started"))]);
        Self { config, state: tokio::sync::Mutex::default(), shown, link: Mutex::default() }
    }

    /// Returns its tools, and what stands for those that cannot be had.
    pub fn shown(&self) -> Vec<Arc<dyn Tool>> {
        lock(&self.shown).clone()
    }

    /// Tells whether nothing was asked of it for that long.
    pub fn is_idle(&self, since: Duration) -> bool {
        lock(&self.link).as_ref().is_none_or(|link| link.is_idle(since))
    }

    /// Ends it.
    pub async fn end(&self) {
        let link = lock(&self.link).take();
        if let Some(link) = link {
            link.end().await;
        }
    }

    /// Has it run and its tools known, if it is time for that; returns what a person should be told.
    pub async fn prepare(&self, mcp: &Mcp, place: &Place) -> Option<Value> {
        let mut state = self.state.lock().await;
        let link = lock(&self.link).clone();
        if let Some(link) = &link {
            link.touch();
        }
        if link.as_ref().is_some_and(|link| link.is_alive() && !link.take_changed()) {
            state.failures = 0;
            return None;
        }
        if let Some(dead) = link.filter(|link| !link.is_alive()) {
            let why = format!("has ended{}", dead.why().await);
            self.end().await;
            self.failed(&mut state, &why);
        }
        if state.again.is_some_and(|again| Instant::now() < again) {
            return None;
        }
        match timeout(START, self.list(mcp, place)).await {
            Ok(Ok(hashes)) => return pins::keep(&mcp.store, &self.config.name, &hashes).await,
            Ok(Err(why)) => self.failed(&mut state, &why),
            Err(_) => self.failed(&mut state, &format!("did not list its tools within {} s", START.as_secs())),
        }
        self.end().await;
        None
    }

    fn failed(&self, state: &mut State, why: &str) {
        let wait = WAITS.get(state.failures).or(WAITS.last()).copied().unwrap_or(START);
        (state.failures, state.again) = (state.failures + 1, Some(Instant::now() + wait));
        tracing::warn!(server = self.config.name, why, "an MCP server does not serve");
        let soon = "it is tried again before a later turn";
        *lock(&self.shown) = vec![standin(&self.config.name, Some(&format!("the server {why}; {soon}")))];
    }

    async fn list(&self, mcp: &Mcp, place: &Place) -> Result<Pins, String> {
        let there = lock(&self.link).clone();
        let link = match there {
            Some(link) => link,
            None => self.start(mcp, place).await?,
        };
        let listed = match pages(&link).await {
            Ok(listed) => listed,
            Err(fault) => return Err(said(&fault, &link).await),
        };
        let (tools, hashes) = self.tools(&link, &listed);
        *lock(&self.shown) = tools;
        Ok(hashes)
    }

    async fn start(&self, mcp: &Mcp, place: &Place) -> Result<Arc<Link>, String> {
        let link = Link::start(&self.config, place, &mcp.helper, &mcp.env).await;
        let link = Arc::new(link.map_err(|why| format!("does not start: {why}"))?);
        // Kept before it has said a word: whatever happens now, it is ended.
        *lock(&self.link) = Some(Arc::clone(&link));
        if let Err(fault) = link.greet(Limits::within(START)).await {
            return Err(said(&fault, &link).await);
        }
        Ok(link)
    }

    /// Makes tools of what was listed; what is no proper one is withheld alone.
    fn tools(&self, link: &Arc<Link>, listed: &[Value]) -> (Vec<Arc<dyn Tool>>, Pins) {
        let server = &self.config.name;
        let raw: Vec<&str> =
            listed.iter().map(|tool| tool.get("name").and_then(Value::as_str).unwrap_or_default()).collect();
        let (mut tools, mut hashes, mut seen) = (Vec::new(), Pins::new(), BTreeMap::new());
        for ((tool, raw), name) in listed.iter().zip(&raw).zip(names::model_names(server, &raw)) {
            match seen.entry(name.clone()) {
                Entry::Vacant(place) => drop(place.insert(tool)),
                // Pages may overlap.
                Entry::Occupied(first) if *first.get() == tool || raw.is_empty() => continue,
                Entry::Occupied(_) => {
                    let why = "the server lists another tool of this name; the first one counts";
                    tools.push(barred(server, format!("{name}*"), Some(why.into())));
                    continue;
                }
            }
            let made = if tools.len() >= MOST {
                Err(format!("the server has more than {MOST} tools"))
            } else {
                spec(server, tool, &name)
            };
            match made {
                Ok(spec) => {
                    hashes.insert((*raw).to_owned(), pins::hash(tool));
                    let output_schema =
                        tool.get("outputSchema").and_then(Value::as_object).and_then(|one| clean::schema(one).ok());
                    let (raw, link) = ((*raw).to_owned(), Arc::clone(link));
                    tools.push(Arc::new(ServerTool { spec, output_schema, raw, link }) as Arc<dyn Tool>);
                }
                Err(why) => tools.push(barred(server, name, Some(why))),
            }
        }
        if tools.is_empty() {
            tools.push(standin(server, Some("the server has no tools")));
        }
        (tools, hashes)
    }
}

/// Reads every page of the list.
async fn pages(link: &Link) -> Result<Vec<Value>, Fault> {
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..PAGES {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let page = link.request("tools/list", params, Limits::within(START), &CancellationToken::new()).await;
        let page = match page {
            // A server may have none.
            Err(Fault::Refused(METHOD_NOT_FOUND, _)) => return Ok(all),
            page => page?,
        };
        let tools =
            page.get("tools").and_then(Value::as_array).ok_or_else(|| Fault::Broken("its list is none".into()))?;
        all.extend(tools.iter().take(MOST + 1 - all.len()).cloned());
        let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if next.is_none() || next == cursor || all.len() > MOST {
            return Ok(all);
        }
        cursor = next;
    }
    Ok(all)
}

/// Says what a server did instead of answering.
async fn said(fault: &Fault, link: &Link) -> String {
    match fault {
        Fault::Refused(code, why) => format!("refused to begin: {why} ({code})"),
        Fault::Gone | Fault::Away => format!("ended before its tools were known{}", link.why().await),
        Fault::Late(limit) => format!("gave no answer within {} s", limit.as_secs_f64()),
        Fault::Cancelled => "was not waited for".into(),
        Fault::Forgotten => "forgets its session again and again".into(),
        Fault::Broken(why) => format!("cannot be used: {why}"),
    }
}

/// Returns what is fixed about a tool, or why it cannot be offered.
fn spec(server: &str, tool: &Value, name: &str) -> Result<ToolSpec, String> {
    let raw = tool.get("name").and_then(Value::as_str).filter(|raw| !raw.is_empty()).ok_or("it has no name")?;
    if raw.len() > NAME || raw.chars().any(char::is_control) {
        return Err(format!("its name has more than {NAME} bytes, or control characters"));
    }
    let nothing = Object::new();
    let schema = match tool.get("inputSchema") {
        Some(Value::Object(schema)) => schema,
        None => &nothing,
        Some(_) => return Err("its schema is no object".into()),
    };
    let input_schema = clean::schema(schema)?;
    let words = tool.get("description").or(tool.get("title")).and_then(Value::as_str);
    let description = clean::text(words.unwrap_or_default());
    let source = format!("mcp:{server}").into();
    let (name, description) = (name.to_owned().into(), description.into());
    Ok(ToolSpec { name, description, input_schema, source, requires: &[], read_only: false })
}
