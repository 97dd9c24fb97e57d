//! Tools that change a file of the session: each says on record what it is about to do.

use std::sync::Arc;

use nano_protocol::Object;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::class::Class;
use super::intents::{self, Intents};
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, file_tool, schema};
use crate::sandbox::BoxFuture;
use crate::sandbox::place::Place;
use crate::sandbox::workspace::Workspace;
use crate::store::record::call::Mark;

/// Where the work of such a tool says what it is about to do.
pub struct Intended(Option<Arc<Intents>>);

impl Intended {
    /// Puts on record that `contents` are about to take the place of a file that is as `before` says.
    pub fn record(&self, place: &Place, before: Option<Mark>, contents: &[u8], says: &str) -> Result<(), String> {
        intents::intend(self.0.as_ref(), place, before, intents::of_bytes(contents), says)
    }
}

/// What such a tool does with its arguments.
type Work<A> = fn(&Workspace, &A, &Intended) -> Result<String, String>;

/// A tool that changes a file.
pub struct ChangingTool<A> {
    spec: ToolSpec,
    work: Work<A>,
}

impl<A: JsonSchema> ChangingTool<A> {
    /// Makes a tool whose arguments are `A`.
    pub fn new(name: &'static str, description: &'static str, work: Work<A>) -> Self {
        Self { spec: file_tool::spec::<A>(name, description, false), work }
    }
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> Tool for ChangingTool<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn class(&self) -> Class {
        Class::Verify
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Object,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        let (workspace, work) = (Arc::clone(&context.workspace), self.work);
        let intended = Intended(context.intents.clone());
        Box::pin(file_tool::done(context, move || work(&workspace, &schema::decode(arguments)?, &intended)))
    }
}
