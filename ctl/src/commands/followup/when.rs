//! What a follow-up waits for, as options of a command line.

use std::time::Duration;

use nano_protocol::followup::{On, Trigger};

use crate::duration::{self, millis};
use crate::failure::Failure;

/// When it fires: exactly one of them.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct When {
    /// Once, after so long: 90s, 10m, 1h30m, 2d
    #[arg(long = "in", value_name = "DUR", value_parser = duration::parse)]
    after_time: Option<Duration>,
    /// Once, at this instant: 2027-01-31T08:00:00Z, or 2027-01-31T09:00 of --tz
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Again and again, every so long: 90s, 1h30m
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    every: Option<Duration>,
    /// By a cron expression of 5 or 6 fields
    #[arg(long, value_name = "EXPR")]
    cron: Option<String>,
    /// When this task has ended
    #[arg(long, hide = true, value_name = "TASK")]
    after: Option<String>,
    /// When an event of this type comes
    #[arg(long, hide = true, value_name = "EVENT")]
    on: Option<String>,
    /// When a file that fits appears below the workspace
    #[arg(long, hide = true, value_name = "GLOB")]
    file: Option<String>,
    /// Only when it is triggered from outside
    #[arg(long, hide = true)]
    external: bool,
}

impl When {
    /// Returns the trigger; a usage error where none was given.
    pub fn trigger(self) -> Result<Trigger, Failure> {
        let on = On { task: self.after, event: self.on, file: self.file, ..On::default() };
        let trigger = Trigger {
            after_ms: self.after_time.map(millis),
            at: self.at,
            every_ms: self.every.map(millis),
            cron: self.cron,
            on: (on != On::default()).then_some(on),
            external: self.external.then_some(true),
            ..Trigger::default()
        };
        // Clap would name the hidden ones, too.
        if trigger == Trigger::default() {
            return Err(Failure::usage("it is not said when", "add --in, --at, --every or --cron"));
        }
        Ok(trigger)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "tests")]

    use clap::Parser;

    use super::When;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        when: When,
    }

    #[test]
    fn every_option_has_its_trigger() {
        for (args, trigger) in [
            (&["--in", "1h30m"][..], r#"{"after_ms":5400000}"#),
            (&["--at", "2027-01-31T08:00:00"], r#"{"at":"2027-01-31T08:00:00"}"#),
            (&["--every", "90s"], r#"{"every_ms":90000}"#),
            (&["--cron", "0 9 * * 1-5"], r#"{"cron":"0 9 * * 1-5"}"#),
            (&["--after", "tsk_1"], r#"{"on":{"task":"tsk_1"}}"#),
            (&["--on", "task.finished"], r#"{"on":{"event":"task.finished"}}"#),
            (&["--file", "*.csv"], r#"{"on":{"file":"*.csv"}}"#),
            (&["--external"], r#"{"external":true}"#),
        ] {
            let line = Line::try_parse_from(["x"].iter().chain(args)).expect("a command line");
            let made = line.when.trigger().expect("a trigger");
            assert_eq!(serde_json::to_string(&made).expect("JSON"), trigger, "{args:?}");
        }
    }
}
