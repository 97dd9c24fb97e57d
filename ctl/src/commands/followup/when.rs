//! What a follow-up waits for, as options of a command line.

use std::time::Duration;

use nano_protocol::Object;
use nano_protocol::followup::{On, Trigger};
use serde_json::Value;

use crate::duration::{self, millis};
use crate::failure::Failure;

/// When it fires: at most one of them.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct Times {
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
}

/// What it fires upon: at most one of them, and no time beside it.
#[derive(Debug, clap::Args)]
#[group(multiple = false, conflicts_with = "Times")]
pub struct Happenings {
    /// Once, when this task has ended
    #[arg(long, value_name = "TASK")]
    after: Option<String>,
    /// Whenever an event of this type comes, such as task.finished
    #[arg(long, value_name = "EVENT")]
    on: Option<String>,
    /// Whenever a file that fits appears below the workspace, such as inbox/*.csv
    #[arg(long, value_name = "GLOB")]
    file: Option<String>,
    /// Only by nanoctl followup trigger
    #[arg(long)]
    external: bool,
}

/// What a follow-up waits for.
#[derive(Debug, clap::Args)]
pub struct When {
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    happenings: Happenings,
    /// With --on: what the event's data must hold; VALUE is JSON, else a text, and KEY may be dotted
    #[arg(long = "match", value_name = "KEY=VALUE", value_parser = pair)]
    matches: Vec<(String, Value)>,
}

impl Times {
    /// Returns the trigger; a usage error where none was given.
    pub fn trigger(self) -> Result<Trigger, Failure> {
        given(self.wire(), "add --in, --at, --every or --cron")
    }

    fn wire(self) -> Trigger {
        Trigger {
            after_ms: self.after_time.map(millis),
            at: self.at,
            every_ms: self.every.map(millis),
            cron: self.cron,
            ..Trigger::default()
        }
    }
}

impl When {
    /// Returns the trigger; a usage error where none was given.
    pub fn trigger(self) -> Result<Trigger, Failure> {
        let Happenings { after, on, file, external } = self.happenings;
        // Clap would not ask for --on where another of its group is given.
        if on.is_none() && !self.matches.is_empty() {
            return Err(Failure::usage("--match belongs to --on", "add --on EVENT, or leave it out"));
        }
        let matches = (!self.matches.is_empty()).then(|| self.matches.into_iter().collect::<Object>());
        let on = On { task: after, event: on, file, matches };
        let on = (on != On::default()).then_some(on);
        let trigger = Trigger { on, external: external.then_some(true), ..self.times.wire() };
        given(trigger, "add --in, --at, --every, --cron, --after, --on, --file or --external")
    }
}

fn given(trigger: Trigger, hint: &str) -> Result<Trigger, Failure> {
    if trigger == Trigger::default() { Err(Failure::usage("it is not said when", hint)) } else { Ok(trigger) }
}

/// Reads `KEY=VALUE`: what is no JSON is a text, so that words need no quotes of their own.
fn pair(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("it is not KEY=VALUE")?;
    Ok((key.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "tests")]

    use clap::Parser;

    use super::When;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        when: When,
    }

    fn line(args: &[&str]) -> Result<Line, clap::Error> {
        Line::try_parse_from(["x"].iter().chain(args))
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
            (
                &["--on", "task.finished", "--match", "state=failed", "--match", "exit.code=1", "--match", "a=\"1\""],
                r#"{"on":{"event":"task.finished","match":{"state":"failed","exit.code":1,"a":"1"}}}"#,
            ),
            (
                &["--on", "x", "--match", "a=b=c", "--match", "b=", "--match", "c=null", "--match", "d={\"e\":[true]}"],
                r#"{"on":{"event":"x","match":{"a":"b=c","b":"","c":null,"d":{"e":[true]}}}}"#,
            ),
            (&["--file", "*.csv"], r#"{"on":{"file":"*.csv"}}"#),
            (&["--external"], r#"{"external":true}"#),
        ] {
            let made = line(args).expect("a command line").when.trigger().expect("a trigger");
            assert_eq!(serde_json::to_string(&made).expect("JSON"), trigger, "{args:?}");
        }
    }

    #[test]
    fn one_kind_alone() {
        let kinds = [
            &["--in", "1s"][..],
            &["--at", "x"],
            &["--every", "1s"],
            &["--cron", "* * * * *"],
            &["--after", "t"],
            &["--on", "e"],
            &["--file", "f"],
            &["--external"],
        ];
        for (at, one) in kinds.iter().enumerate() {
            for other in &kinds[at + 1..] {
                let error = line(&[*one, *other].concat()).expect_err("two kinds").to_string();
                assert!(error.contains("cannot be used with"), "{error}");
            }
        }
        for bad in [&["--on", "e", "--match", "a"][..], &["--on", "e", "--match", "=b"]] {
            assert!(line(bad).is_err_and(|error| error.exit_code() == 2), "{bad:?}");
        }
        for bad in [&[][..], &["--match", "a=b"], &["--external", "--match", "a=b"], &["--in", "1s", "--match", "a=b"]]
        {
            assert!(line(bad).expect("a command line").when.trigger().is_err(), "{bad:?}");
        }
    }
}
