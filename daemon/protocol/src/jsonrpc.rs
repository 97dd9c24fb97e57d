//! JSON-RPC 2.0 envelopes. Ids and parameters stay raw: an id is echoed byte for byte.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::RpcError;

/// A request or, without an id, a notification.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// Must be `2.0`.
    #[serde(default)]
    pub jsonrpc: Option<Box<RawValue>>,
    /// The caller's id, echoed as it came; absent in a notification. (`null` is kept as an id.)
    #[serde(default, deserialize_with = "present")]
    pub id: Option<Box<RawValue>>,
    /// The method's name.
    #[serde(default)]
    pub method: Option<Box<RawValue>>,
    /// The parameters, decoded by the method's type.
    #[serde(default)]
    pub params: Option<Box<RawValue>>,
}

/// Keeps a `null` as a present value: `Option` alone would take it for absent.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// A request as a client writes it.
#[derive(Debug, Serialize)]
pub struct OutgoingRequest<'a, P: Serialize> {
    /// `2.0`.
    pub jsonrpc: &'static str,
    /// The client's number for this request.
    pub id: u64,
    /// The method's name.
    pub method: &'a str,
    /// The parameters.
    pub params: &'a P,
}

/// An answer as the daemon writes it.
#[derive(Debug, Serialize)]
pub struct Response<'a, R: Serialize> {
    /// `2.0`.
    pub jsonrpc: &'static str,
    /// The request's id.
    pub id: &'a RawValue,
    /// The result, if it went well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<R>,
    /// The error, if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a RpcError>,
}

/// Any line a client reads: an answer or a notification.
#[derive(Debug, Deserialize)]
pub struct Incoming {
    /// The id of the request this answers; none in a notification.
    #[serde(default)]
    pub id: Option<u64>,
    /// The result, if it is a good answer.
    #[serde(default)]
    pub result: Option<Box<RawValue>>,
    /// The error, if it is a bad one.
    #[serde(default)]
    pub error: Option<RpcError>,
    /// The notification's method.
    #[serde(default)]
    pub method: Option<String>,
    /// The notification's parameters.
    #[serde(default)]
    pub params: Option<Box<RawValue>>,
}

/// The parameters of a notification `event`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EventParams {
    /// The subscription that this event is for.
    pub subscription: u64,
    /// The event.
    pub event: crate::event::Event,
}
