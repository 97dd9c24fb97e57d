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
    let found = TimeZone::get(zone).ok().filter(|found| !found.is_unknown());
    let (found, name) =
        found.and_then(|found| Some((found.clone(), found.iana_name()?.to_owned()))).ok_or_else(|| {
            let shown = crate::sandbox::workspace::shown(zone);
            format!("unknown time zone `{shown}`; {}", near(zone))
        })?;
    let local = now.to_zoned(found.clone());
    let summer = if found.to_offset_info(now).dst().is_dst() { ", daylight saving time" } else { "" };
    let utc = now.strftime("%Y-%m-%dT%H:%M:%SZ");
    Ok(format!("{} ({name}{summer})\n{utc} (UTC)", local.strftime("%A, %Y-%m-%dT%H:%M:%S%:z")))
}

/// Returns the zones whose name, or last part, is nearest.
fn near(zone: &str) -> String {
    let asked = zone.to_lowercase().replace(' ', "_");
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let city = name.rsplit('/').next().unwrap_or(&name);
        strsim::jaro_winkler(&name, &asked).max(strsim::jaro_winkler(city, &asked))
    };
    let all = jiff::tz::db().available().map(|name| (likeness(name.as_str()), name.as_str().to_owned()));
    let mut alike: Vec<_> = all.filter(|(likeness, _)| *likeness > 0.88).collect();
    alike.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.cmp(other)));
    let names: Vec<_> = alike.into_iter().take(3).map(|(_, name)| name).collect();
    match names.as_slice() {
        [] => "give an IANA name such as Europe/Berlin or UTC".into(),
        names => format!("did you mean {}?", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::tell;

    #[test]
    fn times() {
        let check = |zone, expected: Result<&str, &str>| {
            let told = tell(jiff::Timestamp::UNIX_EPOCH, zone);
            assert_eq!(told.as_deref().map_err(String::as_str), expected);
        };
        check("UTC", Ok("Thursday, 1970-01-01T00:00:00+00:00 (UTC)\n1970-01-01T00:00:00Z (UTC)"));
        let unknown = "unknown time zone `Xyzzy/Qwop`; give an IANA name such as Europe/Berlin or UTC";
        check("Xyzzy/Qwop", Err(unknown));
        for (zone, meant) in
            [("Berlin", "Europe/Berlin"), ("Europe/Berln", "Europe/Berlin"), ("new york", "America/New_York")]
        {
            let told = tell(jiff::Timestamp::UNIX_EPOCH, zone).unwrap_err();
            assert!(told.contains(&format!("did you mean {meant}")), "{told}");
        }
        for zone in ["", "Etc/Unknown", "../../etc/passwd", "+02:00", "a\u{1b}b"] {
            assert!(tell(jiff::Timestamp::UNIX_EPOCH, zone).is_err_and(|why| !why.contains('\u{1b}')), "{zone}");
        }
    }

    #[test]
    fn summer_and_winter() {
        for (at, expected) in [
            ("2026-03-29T00:59:59Z", "Sunday, 2026-03-29T01:59:59+01:00 (Europe/Berlin)\n2026-03-29T00:59:59Z (UTC)"),
            (
                "2026-03-29T01:00:00Z",
                "Sunday, 2026-03-29T03:00:00+02:00 (Europe/Berlin, daylight saving time)\n2026-03-29T01:00:00Z (UTC)",
            ),
            (
                "2026-10-25T00:30:00Z",
                "Sunday, 2026-10-25T02:30:00+02:00 (Europe/Berlin, daylight saving time)\n2026-10-25T00:30:00Z (UTC)",
            ),
            ("2026-10-25T01:30:00Z", "Sunday, 2026-10-25T02:30:00+01:00 (Europe/Berlin)\n2026-10-25T01:30:00Z (UTC)"),
        ] {
            assert_eq!(tell(at.parse().unwrap(), "europe/berlin").as_deref(), Ok(expected));
        }
    }
}
