//! `rpc.discover`: the `OpenRPC` document of every method, made of the wire types.

use nano_protocol::error::{ErrorData, ErrorKind, RpcError};
use nano_protocol::event::Event;
use nano_protocol::method::{self, Method};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Schemas of what the daemon takes and of what it gives: an optional member is another thing in each.
struct Schemas {
    taken: SchemaGenerator,
    given: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        // OpenRPC's own choice is draft 7. References count from the document's root.
        let settings = || SchemaSettings::draft07().with(|it| it.definitions_path = "/components/schemas".into());
        Self { taken: settings().for_deserialize().into(), given: settings().for_serialize().into() }
    }

    fn method<M: Method<Params: JsonSchema, Result: JsonSchema>>(&mut self) -> Value {
        json!({
            "name": M::NAME,
            "paramStructure": "by-name",
            "params": descriptors(M::Params::json_schema(&mut self.taken).to_value()),
            "result": {"name": "result", "schema": self.given.subschema_for::<M::Result>()},
            "errors": errors().map(|(name, _)| json!({"$ref": format!("#/components/errors/{name}")})).collect::<Vec<_>>(),
        })
    }

    fn components(mut self) -> Value {
        // No method's result holds it: it comes as the notification `event`.
        self.given.subschema_for::<Event>();
        self.given.subschema_for::<ErrorData>();
        let mut schemas = self.given.take_definitions(true);
        schemas.extend(self.taken.take_definitions(true));
        json!({"schemas": schemas, "errors": errors().collect::<Map<_, _>>()})
    }
}

/// Returns a content descriptor for each member of an object's schema.
fn descriptors(mut object: Value) -> Vec<Value> {
    let required = object["required"].take();
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
    let Value::Object(members) = object["properties"].take() else { return Vec::new() };
    let descriptor = |(name, mut schema): (String, Value)| {
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        json!({"name": name, "description": description, "required": is_required(&name), "schema": schema})
    };
    members.into_iter().map(descriptor).collect()
}

/// Returns the errors that a method may answer, by name.
fn errors() -> impl Iterator<Item = (String, Value)> {
    let kinds = ErrorKind::CODES.into_iter().map(|(kind, _)| kind);
    // These three are said before a method is known.
    let of_methods =
        kinds.filter(|kind| !matches!(kind, ErrorKind::Parse | ErrorKind::InvalidRequest | ErrorKind::MethodNotFound));
    of_methods.map(|kind| {
        let name = json!(kind).as_str().unwrap_or_default().to_owned();
        (name.clone(), json!(RpcError::new(kind, name.replace('_', " "))))
    })
}

macro_rules! document {
    ($($name:ident, $wire:literal, $params:ty, $result:ty;)+) => {
        /// Returns the `OpenRPC` document of every method.
        pub(super) fn document() -> Value {
            let mut schemas = Schemas::new();
            let methods = vec![$(schemas.method::<method::$name>()),+];
            json!({
                "openrpc": "1.3.2",
                "info": {"title": "nanod", "version": env!("CARGO_PKG_VERSION")},
                "methods": methods,
                "components": schemas.components(),
            })
        }
    };
}

nano_protocol::methods!(document);

#[cfg(test)]
mod tests;
