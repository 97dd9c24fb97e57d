//! `datetime`: what time it is.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::typed::Typed;
use super::{Tool, ToolOutcome, ToolSpec, schema};

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// An IANA time zone such as Europe/Berlin; the daemon's unless given.
    zone: Option<String>,
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let spec = ToolSpec {
        name: "datetime".into(),
        description: "Tells the date, the time and the day of the week.".into(),
        input_schema: schema::schema::<Args>(),
        source: "core".into(),
        requires: &[],
        read_only: true,
    };
    Typed::new(spec, |context, args: Args| {
        let zone = args.zone.as_deref().unwrap_or(&context.time_zone);
        let told = tell(Timestamp::now(), zone);
        Box::pin(std::future::ready(Ok(told.map_or_else(ToolOutcome::Failed, ToolOutcome::Done))))
    })
}

fn tell(now: Timestamp, zone: &str) -> Result<String, String> {
    let found = TimeZone::get(zone).map_err(|_| {
        format!(
            "unknown time zone `{}`; give an IANA name such as Europe/Berlin or UTC",
            crate::sandbox::workspace::shown(zone)
        )
    })?;
    let local = now.to_zoned(found);
    Ok(format!("{} ({zone})\n{} (UTC)", local.strftime("%A, %Y-%m-%dT%H:%M:%S%:z"), now.strftime("%Y-%m-%dT%H:%M:%SZ")))
}

#[cfg(test)]
mod tests {
    use super::tell;

    #[test]
    fn times() {
        let check = |zone, expected: Result<&str, &str>| {
            let told = tell(jiff::Timestamp::UNIX_EPOCH, zone);
            assert_eq!(told.as_deref().map_err(String::as_str), expected);
        };
        check("UTC", Ok("Thursday, 1970-01-01T00:00:00+00:00 (UTC)\n1970-01-01T00:00:00Z (UTC)"));
        let unknown = "unknown time zone `Mars`; give an IANA name such as Europe/Berlin or UTC";
        check("Mars", Err(unknown));
    }
}
