//! What a session shows without being woken: its tools, its prompts.

use nano_protocol::session::{SessionPrompts, SessionTools};

use super::deps::Deps;
use super::offered::{booter_prompts, offered, seen};
use super::{prompt, skills};
use crate::store::record::SessionRecord;

pub use super::offered::refresh_tools;

/// Returns the list that the model gets, and what it does not get.
pub async fn tools(deps: &Deps, record: &SessionRecord) -> SessionTools {
    let record = &seen(deps, record);
    let session = &record.session;
    let skills = skills::offer(deps, session).await;
    let set = offered(deps, record, &skills);
    SessionTools {
        session: session.id.clone(),
        booter: session.booter.clone(),
        booted: session.booted,
        exact: set.exact,
        capabilities: session.capabilities.clone(),
        revision: record.revision,
        tools: set.wire(),
        withheld: set.withheld,
    }
}

/// Returns the prompt in its parts and as the model gets it.
pub async fn prompts(deps: &Deps, record: &SessionRecord) -> SessionPrompts {
    let record = &seen(deps, record);
    let session = &record.session;
    let skills = skills::offer(deps, session).await;
    let set = offered(deps, record, &skills);
    let persona = deps.agent(&session.agent).system_prompt;
    let prompts = prompt::parts(&persona, booter_prompts(deps, record), skills.prompts(), &set.wire());
    let assembled = prompt::assembled(&prompts);
    SessionPrompts { session: session.id.clone(), booted: session.booted, exact: set.exact, prompts, assembled }
}
