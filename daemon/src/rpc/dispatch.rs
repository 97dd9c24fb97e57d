//! From a method's name to the function that serves it, with its parameters decoded by type.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
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
    // A panic ends this request and nothing else, and it is answered all the same.
    let served = AssertUnwindSafe(route(server, caller, method, params)).catch_unwind().await;
    served.unwrap_or_else(|_| {
        tracing::error!(method, "a request panicked");
        Err(RpcError::new(ErrorKind::Internal, format!("{method} failed inside the daemon; its log has the details")))
    })
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
        invalid(why.rsplit_once(" at line ").map_or(why.as_str(), |(why, _)| why).to_owned())
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

#[cfg(test)]
#[expect(clippy::expect_used, reason = "tests")]
mod tests {
    use nano_protocol::followup::ScheduleParams;
    use nano_protocol::task::SubmitParams;
    use serde::de::DeserializeOwned;
    use serde_json::value::RawValue;

    use super::decode;

    /// Returns what is wrong with `params`; empty: nothing.
    fn check<P: DeserializeOwned>(params: &str) -> String {
        let raw = RawValue::from_string(params.to_owned()).expect("the row is JSON");
        decode::<P>(Some(&raw)).err().map_or_else(String::new, |error| format!("{} {}", error.code, error.message))
    }

    #[test]
    fn params_as_they_should_not_be() {
        let schedule = |trigger: &str| format!(r#"{{"session":"s","content":"c","trigger":{trigger}}}"#);
        for (params, says) in [
            (r#"[null,null,"c"]"#, "-32602 params must be an object"),
            (r#""c""#, "-32602 params must be an object"),
            ("{}", "-32602 missing field `content`"),
            ("null", "-32602 missing field `content`"),
            (r#"{"content":"c"}"#, ""),
            (r#"{"content":"c","create":null,"limits":null}"#, ""),
            (r#"{"content":"c","create":{},"limits":{}}"#, ""),
            (r#"{"content":"c","create":[]}"#, "-32602 invalid type: sequence, expected struct CreateParams"),
            (r#"{"content":"c","create":["web"]}"#, "-32602 invalid type: sequence, expected struct CreateParams"),
            (r#"{"content":"c","limits":[1,2,3,4]}"#, "-32602 invalid type: sequence, expected struct Limits"),
            (r#"{"content":"c","metadata":[1]}"#, "-32602 invalid type: sequence, expected a map"),
            (r#"{"content":["c"]}"#, "-32602 invalid type: sequence, expected a string"),
            (r#"{"content":"c","session":["s"]}"#, "-32602 invalid type: sequence, expected a string"),
            (
                r#"{"content":"c","a at line 2":1}"#,
                "-32602 unknown field `a at line 2`, expected one of `session`, `create`, `content`, `metadata`, `idempotency_key`, `limits`",
            ),
        ] {
            assert_eq!(check::<SubmitParams>(params), says, "{params}");
        }
        for (trigger, says) in [
            (r#"{"after_ms":1}"#, ""),
            ("[1]", "-32602 invalid type: sequence, expected struct Trigger"),
            (r#"{"on":["tsk_1"]}"#, "-32602 invalid type: sequence, expected struct On"),
            (r#"{"on":{"match":[]}}"#, "-32602 invalid type: sequence, expected a map"),
        ] {
            assert_eq!(check::<ScheduleParams>(&schedule(trigger)), says, "{trigger}");
        }
    }

    #[test]
    fn no_params_are_an_empty_object() {
        assert!(decode::<SubmitParams>(None).is_err());
        assert!(decode::<nano_protocol::daemon::Nothing>(None).is_ok());
    }
}
