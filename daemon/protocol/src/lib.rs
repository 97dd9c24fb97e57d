//! The wire contract of nano: JSON-RPC 2.0 over a Unix socket, one JSON text per line.
//!
//! The daemon owns these types, `nanoctl` obeys them; neither sees the other. A change here changes what scripts rely
//! on, so every method and event has a golden line in `tests/wire.rs`.

/// Derives what every wire type has.
macro_rules! wire {
    ($($item:item)*) => {
        $(
            #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            $item
        )*
    };
}

/// Like `wire!`, for the parameters of a request: an unknown member is an error, and so is an array in place of an object.
macro_rules! params {
    ($($(#[$doc:meta])* pub struct $name:ident {
        $($(#[$about:meta])* pub $member:ident: $type:ty),* $(,)?
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            #[serde(deny_unknown_fields)]
            pub struct $name {
                $($(#[$about])* pub $member: $type),*
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    // The derived reading under the same name, which errors tell.
                    #[derive(serde::Deserialize)]
                    #[serde(deny_unknown_fields)]
                    struct $name {
                        $($(#[$about])* $member: $type),*
                    }
                    let $name { $($member),* } = $name::deserialize($crate::strict::OnlyObject(deserializer))?;
                    Ok(Self { $($member),* })
                }
            }
        )*
    };
}

/// A closed set of words, the same on the wire, on the command line and in messages.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Every word, in order of definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text).ok_or_else(|| {
                    let all: Vec<_> = Self::ALL.iter().map(|word| word.as_str()).collect();
                    format!("`{text}` is none of {}", all.join(", "))
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            // The derived reading would also take `{"word": null}`.
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let unknown = |_| serde::de::Error::unknown_variant(&text, &[$($word),+]);
                text.parse().map_err(unknown)
            }
        }
    };
}

pub mod approval;
pub mod catalog;
pub mod daemon;
pub mod error;
pub mod event;
pub mod followup;
pub mod id;
pub mod jsonrpc;
pub mod message;
pub mod method;
pub mod process;
pub mod session;
pub mod skill;
pub mod strict;
pub mod task;
pub mod time;
pub mod tool;

/// A JSON object with its keys in order of arrival.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// The protocol version this crate speaks.
pub const PROTOCOL: u64 = 1;
/// The longest line in bytes, LF not counted, that either side takes unless configured otherwise.
pub const MAX_LINE: usize = 16 * 1024 * 1024;
/// The longest message content in bytes.
pub const MAX_CONTENT: usize = 1024 * 1024;
/// The most requests in one batch.
pub const MAX_BATCH: usize = 100;
/// The deepest nesting of a JSON text.
pub const MAX_DEPTH: usize = 64;
