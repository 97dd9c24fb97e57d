//! How long a server asks to wait: in headers or in the body, as seconds, durations or instants.

use std::time::Duration;

const DAY: f64 = 86_400.0;
const UNITS: [(&str, f64); 15] = [
    ("ms", 0.001),
    ("millisecond", 0.001),
    ("milliseconds", 0.001),
    ("µs", 0.000_001),
    ("s", 1.0),
    ("sec", 1.0),
    ("second", 1.0),
    ("seconds", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("minute", 60.0),
    ("minutes", 60.0),
    ("h", 3600.0),
    ("hours", 3600.0),
    ("d", DAY),
];

/// Returns the wait that the headers, else the body, ask for; `now` is in seconds since the Unix epoch.
pub fn asked<'a>(header: impl Fn(&str) -> Option<&'a str>, body: &str, now: f64) -> Option<Duration> {
    let millis = header("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok()).map(|ms| ms / 1000.0);
    let after = || header("retry-after").and_then(|text| seconds(text, now));
    let seconds = millis.or_else(after).or_else(|| reset(&header, now)).or_else(|| in_body(body));
    Duration::try_from_secs_f64(seconds?.max(0.0)).ok()
}

/// The latest reset of those limits that are used up.
fn reset<'a>(header: impl Fn(&str) -> Option<&'a str>, now: f64) -> Option<f64> {
    let used_up = |kind: &str| header(&format!("x-ratelimit-remaining{kind}")).is_none_or(|left| left.trim() == "0");
    let of = |kind: &str| header(&format!("x-ratelimit-reset{kind}")).and_then(|text| seconds(text, now));
    ["-requests", "-tokens", ""].into_iter().filter(|kind| used_up(kind)).filter_map(of).reduce(f64::max)
}

/// Reads seconds, a duration such as `6m0s`, seconds or milliseconds since the epoch, or an HTTP date.
fn seconds(text: &str, now: f64) -> Option<f64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        let instant = if number > DAY * 1e6 { number / 1000.0 } else { number };
        return number.is_finite().then_some(if number > DAY { instant - now } else { number });
    }
    let date = || {
        let parser = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
        parser.parse_timestamp(text).ok().map(|instant| instant.as_duration().as_secs_f64() - now)
    };
    duration(text).or_else(date)
}

fn in_body(body: &str) -> Option<f64> {
    let after = |mark: &str| Some(body.split_once(mark)?.1.trim_start_matches([' ', '"', ':', '\\']));
    ["retryDelay", "ry again in", "etry in", "etry after"].into_iter().find_map(|mark| duration(after(mark)?))
}

/// Reads the longest start of `text` that is a duration: numbers, each with a unit; a lone number is seconds.
fn duration(text: &str) -> Option<f64> {
    let (mut rest, mut sum) = (text, None);
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(digits);
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else { return sum };
        let behind = behind.trim_start();
        let letters = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(letters);
        match UNITS.iter().find(|(word, _)| *word == unit) {
            Some((_, factor)) => sum = Some(sum.unwrap_or(0.0) + number * factor),
            None => return sum.or(Some(number)),
        }
        rest = behind.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::asked;

    const NOW: f64 = 1_796_043_500.0;

    fn check(headers: &[(&str, &str)], body: &str, millis: Option<u64>) {
        let header = |name: &str| headers.iter().find(|(one, _)| *one == name).map(|(_, value)| *value);
        assert_eq!(asked(header, body, NOW), millis.map(Duration::from_millis), "{headers:?} {body}");
    }

    #[test]
    fn headers() {
        for (name, value, millis) in [
            ("retry-after", "7", Some(7000)),
            ("retry-after", " 1.5 ", Some(1500)),
            ("retry-after", "0", Some(0)),
            ("retry-after", "86400", Some(86_400_000)),
            ("retry-after", "1796043600", Some(100_000)),
            ("retry-after", "1796043600000", Some(100_000)),
            ("retry-after", "1796043400", Some(0)),
            ("retry-after", "Mon, 30 Nov 2026 13:00:00 GMT", Some(100_000)),
            ("retry-after", "Mon, 30 Nov 2026 12:00:00 GMT", Some(0)),
            ("retry-after", "30s", Some(30_000)),
            ("retry-after", "soon", None),
            ("retry-after", "", None),
            ("retry-after", "-5", Some(0)),
            ("retry-after", "inf", None),
            ("retry-after", "NaN", None),
            ("retry-after-ms", "1500", Some(1500)),
            ("retry-after-ms", "x", None),
            ("x-ratelimit-reset-requests", "6m0s", Some(360_000)),
            ("x-ratelimit-reset-tokens", "120ms", Some(120)),
            ("x-ratelimit-reset-requests", "1h2m3.5s", Some(3_723_500)),
            ("x-ratelimit-reset", "1796043600", Some(100_000)),
        ] {
            check(&[(name, value)], "", millis);
        }
    }

    #[test]
    fn the_finest_header_first() {
        check(&[("retry-after", "2"), ("retry-after-ms", "1500")], "", Some(1500));
        check(&[("retry-after", "2"), ("x-ratelimit-reset-requests", "6m0s")], "try again in 9s", Some(2000));
        check(&[("retry-after", "x"), ("x-ratelimit-reset-tokens", "3s")], "", Some(3000));
        check(&[("x-ratelimit-reset-requests", "6m0s"), ("x-ratelimit-reset-tokens", "3s")], "", Some(360_000));
        let left = ("x-ratelimit-remaining-requests", "59");
        check(&[left, ("x-ratelimit-reset-requests", "6m0s"), ("x-ratelimit-reset-tokens", "3s")], "", Some(3000));
    }

    #[test]
    fn bodies() {
        for (body, millis) in [
            (r#"{"error":{"details":[{"retryDelay":"33s"}]}}"#, Some(33_000)),
            (r#"{"retryDelay" : "1.5s"}"#, Some(1500)),
            (r#"{"message":"{\"retryDelay\": \"2s\"}"}"#, Some(2000)),
            ("Rate limit reached. Please try again in 1.2s. Visit …", Some(1200)),
            ("Try again in 6m0s.", Some(360_000)),
            ("try again in 20 ms", Some(20)),
            ("Please retry after 5 seconds", Some(5000)),
            ("retry in 2 minutes", Some(120_000)),
            ("retry after 10", Some(10_000)),
            ("try again later", None),
            ("", None),
        ] {
            check(&[], body, millis);
        }
    }
}
