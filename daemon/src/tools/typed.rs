//! A tool whose arguments have a type: they are checked in one place, in words a model can act on.

use nano_protocol::Object;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::class::Class;
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, schema};
use crate::sandbox::BoxFuture;

/// What becomes of a call.
pub type Called<'a> = BoxFuture<'a, Result<ToolOutcome, ToolFault>>;

/// A tool with arguments `A`.
pub struct Typed<A> {
    spec: ToolSpec,
    class: Class,
    work: for<'a> fn(&'a ToolContext, A) -> Called<'a>,
}

impl<A> Typed<A> {
    /// Makes the tool.
    pub fn new(spec: ToolSpec, work: for<'a> fn(&'a ToolContext, A) -> Called<'a>) -> Self {
        Self { class: Class::usual(&spec), spec, work }
    }

    /// Makes it one of another class than its kind usually is.
    #[must_use]
    pub fn classed(self, class: Class) -> Self {
        Self { class, ..self }
    }
}

impl<A: DeserializeOwned + JsonSchema + Send> Tool for Typed<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn class(&self) -> Class {
        self.class
    }

    fn call<'a>(&'a self, context: &'a ToolContext, arguments: Object) -> Called<'a> {
        match schema::decode::<A>(arguments) {
            Ok(args) => (self.work)(context, args),
            Err(why) => Box::pin(std::future::ready(Ok(ToolOutcome::Failed(why)))),
        }
    }
}
