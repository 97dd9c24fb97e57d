//! What `systemd-analyze calendar` says.

use std::process::Command;

use jiff::Timestamp as Instant;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::spec::{Field, Spec};

/// Whether there is one to ask.
pub fn is_here() -> bool {
    Command::new("systemd-analyze").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Asks for the next times of each expression after `from`.
pub fn slots(specs: &[Spec], zone: &str, from: i64, count: usize) -> Vec<Vec<i64>> {
    let base = Instant::from_second(from).expect("a time").strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let mut command = Command::new("systemd-analyze");
    command.env("TZ", "UTC").env("LC_ALL", "C").arg("calendar").arg(format!("--iterations={count}"));
    command.arg(format!("--base-time={base}")).arg("--");
    command.args(specs.iter().map(|spec| translate(spec, zone)));
    let output = command.output().expect("systemd-analyze runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "systemd-analyze: {text}{}", String::from_utf8_lossy(&output.stderr));
    text.split("\n\n").map(|block| block.lines().filter_map(elapse).collect()).collect()
}

/// Reads `Next elapse: Mon 2027-03-01 07:30:00 UTC` and `Iter. #2: …`.
fn elapse(line: &str) -> Option<i64> {
    let (head, time) = line.split_once(": ")?;
    let time = time.trim().strip_suffix(" UTC")?;
    (head.ends_with("Next elapse") || head.contains("Iter. #")).then_some(())?;
    let local: DateTime = time.split_once(' ')?.1.parse().expect("a time");
    Some(Offset::UTC.to_timestamp(local).expect("a time").as_second())
}

/// Spells an expression as systemd does, each field by its values.
fn translate(spec: &Spec, zone: &str) -> String {
    let (any_day, any_weekday) = spec.free();
    let names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let weekdays: Vec<_> = spec.weekdays.values.iter().map(|weekday| names[*weekday as usize]).collect();
    let weekdays = if any_weekday { String::new() } else { weekdays.join(",") };
    let days = if any_day { "*".to_owned() } else { list(&spec.days.values) };
    let field = |field: &Field| list(&field.values);
    let (months, hours, minutes) = (field(&spec.months), field(&spec.hours), field(&spec.minutes));
    format!("{weekdays} *-{months}-{days} {hours}:{minutes}:{} {zone}", list(&spec.seconds())).trim().to_owned()
}

fn list(values: &[u32]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
