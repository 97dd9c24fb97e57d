//! Command lines as people type them.
#![expect(clippy::panic, clippy::expect_used, reason = "tests")]

use super::{Parsed, command, parse};

fn words(line: &str) -> Vec<std::ffi::OsString> {
    std::iter::once("nanoctl").chain(line.split_whitespace()).map(Into::into).collect()
}

#[test]
fn the_command_line_is_sound() {
    command().debug_assert();
}

#[test]
fn global_flags_stand_anywhere() {
    for line in ["--json -q --timeout 5s session show s", "session --json show -q s --timeout 5s"] {
        let Ok(Parsed::Verb { what, cli }) = parse(words(line)) else { panic!("{line}") };
        assert_eq!(what, "session show");
        assert!(cli.global.json && cli.global.quiet && cli.global.timeout.is_some(), "{line}");
    }
}

#[test]
fn help_has_a_verbs_own_options_first_and_what_concerns_it() {
    for (line, shown, hidden) in [
        (
            "run --help",
            &["--no-autostart", "Examples:", "--idempotency-key", "read-only, workspace-write or host"][..],
            "",
        ),
        ("submit --help", &["--no-autostart", "Examples:"], ""),
        ("wait --help", &["Examples:"], "autostart"),
        ("steer --help", &["Examples:", "--redirect"], "autostart"),
        ("tasks --help", &["queued, running"], "autostart"),
        ("sessions --help", &["idle, running"], "autostart"),
        ("followup list --help", &["active, paused"], "autostart"),
        ("followup add --help", &["Examples:", "--until", "90s", "2027-01-31T09:00", "queue or replace"], "autostart"),
        ("followup add --help", &["--cron", "--external", "--file", "--match <KEY=VALUE>", "--jitter"], "autostart"),
        ("followup next --help", &["Examples:", "--cron"], "--file"),
        ("followup trigger --help", &["Examples:", "--idempotency-key", "piped"], "autostart"),
        ("skills create --help", &["Examples:", "--file", "$EDITOR"], "autostart"),
        ("skills validate --help", &["Examples:", "--strict", "PATH:LINE:COL"], "autostart"),
        ("prompts --help", &["Examples:", "--assembled"], "autostart"),
        ("events --help", &["task.finished", "session.created"], "autostart"),
    ] {
        let Ok(Parsed::Text(text)) = parse(words(line)) else { panic!("{line}") };
        assert!(shown.iter().all(|part| text.contains(part)), "{line}: {text}");
        assert!(hidden.is_empty() || !text.contains(hidden), "{line}: {text}");
        assert!(text.find("--json") > text.find("Global options:"), "{line}: {text}");
        assert!(text.find("Global options:") > text.find("--help"), "{line}: {text}");
    }
    for line in
        ["status --no-autostart", "--no-autostart status", "followup list --no-autostart", "run x --no-autostart"]
    {
        let Ok(Parsed::Verb { cli, .. }) = parse(words(line)) else { panic!("{line}") };
        assert!(cli.global.no_autostart, "{line}");
    }
}

#[test]
fn usage_names_the_verb_to_ask() {
    for (line, hint) in [
        ("", "nanoctl --help lists them"),
        ("-q followup", "nanoctl followup --help lists them"),
        ("followup list --state x", "nanoctl followup list --help says what it takes"),
        ("wait --timeout 5", "nanoctl wait --help says what it takes"),
    ] {
        assert_eq!(parse(words(line)).expect_err(line).hint, hint);
    }
}

#[test]
fn usage_is_one_line_with_a_tip() {
    for (line, why) in [
        ("", "no verb was given"),
        ("session", "no verb was given"),
        ("taks", "unrecognized subcommand 'taks'"),
        ("run --model", "a value is required for '--model <M>' but none was supplied"),
        ("wait --timeout 5", "invalid value '5' for '--timeout <DUR>'"),
        ("wait", "required arguments were not provided"),
        ("run x -s a --new b", "cannot be used with"),
        ("submit x -s a --level host", "cannot be used with"),
        ("followup add s x --in 1s --cron *", "cannot be used with"),
        ("steer s x --note --redirect", "cannot be used with"),
        ("events --type task.ended", "`task.ended` is none of session.created"),
    ] {
        let failure = parse(words(line)).expect_err(line);
        assert_eq!(failure.code(), 2, "{line}");
        assert!(failure.why.contains(why), "{line}: {}", failure.why);
        assert!(!failure.why.contains('\n') && !failure.hint.is_empty(), "{line}: {failure:?}");
    }
}
