//! Time zones by name, from the system's database or the one that is built in.

use jiff::tz::TimeZone;

use super::env::Env;

/// Returns the IANA name of the zone that `name` names in any case.
pub fn known(name: &str) -> Result<String, String> {
    let unknown = || format!("\"{}\" is not a known time zone; give one such as Europe/Berlin", name.escape_debug());
    let zone = TimeZone::get(name).map_err(|_| unknown())?;
    // What has no name, such as `Etc/Unknown`, stands for a zone that could not be found.
    zone.iana_name().filter(|_| !zone.is_unknown()).map(str::to_owned).ok_or_else(unknown)
}

/// Returns the IANA name of the system's zone; UTC only where nothing names one.
pub fn system(env: &Env) -> String {
    let variable = env.get("TZ").map(|tz| tz.trim_start_matches(':'));
    let from_variable = variable.map(|tz| tz.rsplit_once("zoneinfo/").map_or(tz, |(_, name)| name));
    let link = || Some(std::fs::read_link("/etc/localtime").ok()?.to_str()?.rsplit_once("zoneinfo/")?.1.to_owned());
    let file = || std::fs::read_to_string("/etc/timezone").ok().map(|text| text.trim().to_owned());
    from_variable
        .and_then(|name| known(name).ok())
        .or_else(|| link().and_then(|name| known(&name).ok()))
        .or_else(|| file().and_then(|name| known(&name).ok()))
        .unwrap_or_else(|| "UTC".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{known, system};
    use crate::config::Env;

    #[test]
    fn names() {
        for (name, expected) in [
            ("Europe/Berlin", Some("Europe/Berlin")),
            ("europe/berlin", Some("Europe/Berlin")),
            ("UTC", Some("UTC")),
            ("Mars/Olympus", None),
            ("", None),
            ("+02:00", None),
            ("Etc/Unknown", None),
            ("../../etc/passwd", None),
        ] {
            assert_eq!(known(name).ok().as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn the_variable_wins() {
        for (tz, expected) in [
            ("Asia/Tokyo", "Asia/Tokyo"),
            (":Asia/Tokyo", "Asia/Tokyo"),
            ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ] {
            assert_eq!(system(&Env::of(0, &[("TZ", tz)])), expected);
        }
        assert!(known(&system(&Env::of(0, &[("TZ", "no such zone")]))).is_ok());
    }
}
