//! What there is before any session: `tool.*`, `booter.list`, `model.list`.

use std::path::Path;

use nano_protocol::catalog::{BooterInfo, Booters, Models, NameParams, PageParams, Tools};
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::method::{BooterList, ModelList, ToolGet, ToolList};
use nano_protocol::session::ToolMode;
use nano_protocol::tool::Tool;

use super::dispatch::Serve;
use super::{Caller, Server};
use crate::sandbox::Capabilities;
use crate::tools::set;

pub(super) fn not_found(what: &str, name: &str) -> RpcError {
    RpcError::new(ErrorKind::NotFound, format!("there is no {what} {name}"))
}

/// Returns a page by name, and where the next one begins.
pub(super) fn page<T, N: AsRef<str>>(
    mut items: Vec<T>,
    key: impl Fn(&T) -> N,
    params: &PageParams,
) -> (Vec<T>, Option<String>) {
    let name = |item: &T| key(item).as_ref().to_owned();
    items.sort_by_cached_key(name);
    if let Some(after) = &params.after {
        items.retain(|item| name(item) > *after);
    }
    let limit = params.limit.unwrap_or(200).clamp(1, 1000);
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(name);
    (items, next)
}

impl Serve for ToolList {
    async fn serve(server: &Server, _: &Caller, params: PageParams) -> Result<Tools, RpcError> {
        let tools = server.deps().tools().iter().map(|tool| set::wire(tool.as_ref())).collect();
        let (tools, next) = page(tools, |tool: &Tool| format!("{} {}", tool.name, tool.source), &params);
        Ok(Tools { tools, next })
    }
}

impl Serve for ToolGet {
    async fn serve(server: &Server, _: &Caller, params: NameParams) -> Result<Tool, RpcError> {
        let tool = server.deps().tools().into_iter().find(|tool| tool.spec().name == params.name);
        tool.map(|tool| set::wire(tool.as_ref())).ok_or_else(|| not_found("tool", &params.name))
    }
}

impl Serve for BooterList {
    async fn serve(server: &Server, _: &Caller, params: PageParams) -> Result<Booters, RpcError> {
        let deps = server.deps();
        let agent = deps.agent("default");
        let booters = deps
            .booters
            .iter()
            .map(|booter| {
                let declared = booter.declared(Path::new("."));
                let capabilities = Capabilities::Known(declared.capabilities);
                let lacking = |capability| booter.lacking(capability);
                let (kind, booted) = (booter.kind(), false);
                let fixed = declared.fixed;
                let machine = set::Machine { kind, booted, capabilities: &capabilities, fixed, lacking: &lacking };
                let choice = set::Choice {
                    mode: ToolMode::All,
                    tools: None,
                    enable_exec: agent.enable_exec,
                    enable_followup: agent.enable_followup,
                    delegate_barred: None,
                    skills_offered: false,
                };
                let offered = set::ToolSet::assemble(&deps.tools(), machine, choice).wire();
                let tools = offered.into_iter().filter(|tool| tool.source.starts_with("booter:")).collect();
                let missing = booter.missing();
                let (kind, available) = (booter.kind().to_owned(), missing.is_none());
                let note = missing.or_else(|| booter.note());
                BooterInfo { kind, available, note, tools, prompts: declared.prompts }
            })
            .collect();
        let (booters, next) = page(booters, |booter: &BooterInfo| booter.kind.clone(), &params);
        Ok(Booters { booters, next })
    }
}

impl Serve for ModelList {
    async fn serve(server: &Server, _: &Caller, params: PageParams) -> Result<Models, RpcError> {
        let (models, next) = page(server.deps().look_for_models().await.list(), |model| model.name.clone(), &params);
        Ok(Models { models, next })
    }
}

#[cfg(test)]
mod tests {
    use nano_protocol::catalog::PageParams;

    use super::page;

    #[test]
    fn pages_by_name() {
        for (limit, after, shown, next) in [
            (None, None, "a b c", None),
            (Some(2), None, "a b", Some("b")),
            (Some(2), Some("b"), "c", None),
            (Some(3), None, "a b c", None),
            (Some(0), Some("aa"), "b", Some("b")),
            (None, Some("c"), "", None),
        ] {
            let params = PageParams { limit, after: after.map(str::to_owned) };
            let (names, found) = page(vec!["b", "c", "a"], |name| *name, &params);
            assert_eq!((names.join(" ").as_str(), found.as_deref()), (shown, next), "{params:?}");
        }
    }
}
