//! What Bay tells of a sandbox. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::sandbox::{Capabilities, Capability};

/// How a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Without compute: right after it was made about to start, later started by the next call.
    Idle,
    /// On the way to serving.
    Starting,
    /// Serving.
    Ready,
    /// It could not be started.
    Failed,
    /// Its time is over.
    Gone,
}

/// Returns the status in a reply, if there is one; a word that is not known is one on the way.
pub fn status(sandbox: &Value) -> Option<Status> {
    Some(match sandbox.get("status")?.as_str()? {
        "ready" => Status::Ready,
        "idle" => Status::Idle,
        "failed" => Status::Failed,
        "expired" | "deleted" => Status::Gone,
        _ => Status::Starting,
    })
}

/// Returns what the sandbox says it can do: a list that is missing is not an empty one.
pub fn capabilities(sandbox: &Value) -> Capabilities {
    match sandbox.get("capabilities") {
        Some(Value::Array(words)) => {
            let known: BTreeSet<_> = words.iter().filter_map(Value::as_str).filter_map(Capability::parse).collect();
            Capabilities::Known(known)
        }
        _ => Capabilities::Unknown,
    }
}

/// Returns in how many seconds the time in this field comes; `now` is in seconds since the epoch.
pub fn seconds_until(sandbox: &Value, field: &str, now: f64) -> Option<f64> {
    Some(instant(sandbox.get(field)?.as_str()?)?.as_duration().as_secs_f64() - now)
}

/// Reads a time with or without a zone; without one it is UTC.
fn instant(text: &str) -> Option<Timestamp> {
    let naive = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp());
    text.parse().ok().or_else(naive)
}

/// Returns the profile that can do most: one with a browser, then the most capabilities, then the default one.
pub fn best_profile(profiles: &Value) -> Option<String> {
    let items = profiles.get("items")?.as_array()?;
    let rank = |profile: &&Value| {
        let words = profile.get("capabilities").and_then(Value::as_array).into_iter().flatten();
        let words: BTreeSet<&str> = words.filter_map(Value::as_str).collect();
        let id = profile.get("id").and_then(Value::as_str).unwrap_or_default();
        (words.contains("browser"), words.len(), id == super::boot::DEFAULT, std::cmp::Reverse(id.to_owned()))
    };
    let named = items.iter().filter(|profile| profile.get("id").is_some_and(Value::is_string));
    Some(named.max_by_key(rank)?.get("id")?.as_str()?.to_owned())
}

/// Returns the ids of all profiles, in order.
pub fn profile_ids(profiles: &Value) -> BTreeSet<String> {
    let items = profiles.get("items").and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|profile| Some(profile.get("id")?.as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{best_profile, instant, seconds_until};

    #[test]
    fn times_without_a_zone_are_utc() {
        for (text, expected) in [
            ("1970-01-01T00:00:10.5", Some(10_500)),
            ("1970-01-01T00:00:10.5Z", Some(10_500)),
            ("1970-01-01T01:00:10+01:00", Some(10_000)),
            ("soon", None),
        ] {
            assert_eq!(instant(text).map(jiff::Timestamp::as_millisecond), expected, "{text}");
        }
        let left = seconds_until(&json!({"expires_at": "1970-01-01T00:01:00"}), "expires_at", 20.0);
        assert!(left.is_some_and(|left| (left - 40.0).abs() < 1e-6), "{left:?}");
        assert_eq!(seconds_until(&json!({"expires_at": null}), "expires_at", 20.0), None);
    }

    #[test]
    fn profiles() {
        let profile = |id: &str, words: &[&str]| json!({"id": id, "capabilities": words});
        let check = |items: Vec<Value>, expected: Option<&str>| {
            for items in [items.clone(), items.into_iter().rev().collect()] {
                assert_eq!(best_profile(&json!({"items": items})).as_deref(), expected);
            }
        };
        let (data, plain) = (["filesystem", "shell", "python"], ["python", "shell", "filesystem"]);
        check(vec![profile("python-data", &data), profile("python-default", &plain)], Some("python-default"));
        check(vec![profile("b", &["browser"]), profile("a", &data)], Some("b"));
        check(vec![profile("b", &plain), profile("a", &plain), json!({}), json!({"id": 5})], Some("a"));
        check(vec![], None);
        assert_eq!(best_profile(&json!([])), None);
    }
}
