//! `doctor`: what of the daemon and its machine is missing or wrong.

use nano_protocol::daemon::{Check, Doctor, Nothing};
use nano_protocol::method::{DaemonDoctor, Method as _};

use crate::client::decode;
use crate::context::{Context, Start};
use crate::failure::{Failure, Kind};

/// Carries out `doctor`.
pub fn run(context: &Context) -> Result<(), Failure> {
    let raw = context.connect(Start::Never)?.call_raw(DaemonDoctor::NAME, &Nothing {})?;
    let Doctor { checks } = decode(&raw)?;
    if context.output.json {
        context.output.answer(raw.get())?;
    } else {
        context.output.answer(&checks.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    }
    match checks.iter().filter(|check| !check.ok).count() {
        0 => Ok(()),
        wrong => Err(Failure::new(
            Kind::Failed,
            format!("{wrong} of {} checks found something wrong", checks.len()),
            "do what the lines with ✗ say",
        )),
    }
}

fn line(check: &Check) -> String {
    let mark = match (check.ok, check.partial) {
        (false, _) => "✗",
        (true, true) => "~",
        (true, false) => "✓",
    };
    let hint = check.hint.as_ref().map_or_else(String::new, |hint| format!(" → {hint}"));
    format!("{mark} {}: {}{hint}", check.name, check.detail)
}

#[cfg(test)]
mod tests {
    use nano_protocol::daemon::Check;

    use super::line;

    #[test]
    fn a_check_is_one_line() {
        let check = |ok, partial, hint: Option<&str>| {
            line(&Check { name: "n".into(), ok, partial, detail: "d".into(), hint: hint.map(str::to_owned) })
        };
        assert_eq!(check(true, false, None), "✓ n: d");
        assert_eq!(check(true, true, Some("h")), "~ n: d → h");
        assert_eq!(check(false, false, Some("h")), "✗ n: d → h");
    }
}
