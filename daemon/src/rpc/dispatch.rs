//! From a method's name to the function that serves it, with its parameters decoded by type.

use nano_protocol::daemon::Nothing;
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::method::{self, Method};
use serde_json::value::{RawValue, to_raw_value};

use super::{Caller, Server};

/// Serves one method.
pub(super) trait Serve: Method {
    /// Does what the method says.
    fn serve(
        server: &Server,
        caller: &Caller,
        params: Self::Params,
    ) -> impl Future<Output = Result<Self::Result, RpcError>> + Send;
}

macro_rules! route {
    ($($name:ident, $wire:literal, $params:ty, $result:ty;)+) => {
        async fn route(
            server: &Server,
            caller: &Caller,
            method: &str,
            params: Option<&RawValue>,
        ) -> Result<Box<RawValue>, RpcError> {
            match method {
                $($wire => run::<method::$name>(server, caller, params).await,)+
                "rpc.discover" => decode(params).and_then(|Nothing {}| encode(&super::discover::document())),
                unknown => Err(no_such_method(unknown)),
            }
        }
    };
}

nano_protocol::methods!(route);

/// Calls a method by name.
pub(super) async fn call(
    server: &Server,
    caller: &Caller,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Box<RawValue>, RpcError> {
    route(server, caller, method, params).await
}

async fn run<M: Serve>(server: &Server, caller: &Caller, params: Option<&RawValue>) -> Result<Box<RawValue>, RpcError> {
    let params = decode(params)?;
    encode(&M::serve(server, caller, params).await?)
}

fn decode<P: serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Result<P, RpcError> {
    let text = params.map(RawValue::get).filter(|text| *text != "null").unwrap_or("{}");
    let invalid = |why: String| RpcError::new(ErrorKind::InvalidParams, why);
    if !text.starts_with('{') {
        return Err(invalid("params must be an object".into()));
    }
    serde_json::from_str(text).map_err(|why| {
        let why = why.to_string();
        // The place in the line says nothing to the caller: the line is ours to parse.
        invalid(why.split(" at line ").next().unwrap_or(&why).to_owned())
    })
}

fn encode<R: serde::Serialize>(result: &R) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(result).map_err(|why| RpcError::new(ErrorKind::Internal, why.to_string()))
}

fn no_such_method(name: &str) -> RpcError {
    let near = |known: &&&str| strsim::damerau_levenshtein(known, name) <= 3;
    let error = RpcError::new(ErrorKind::MethodNotFound, format!("there is no method {name}"));
    match method::NAMES.iter().find(near) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint("rpc.discover lists what there is"),
    }
}
