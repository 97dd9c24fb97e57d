//! Making, finding, attaching and giving back.

use std::path::Path;
use std::time::Duration;

use nanod::booters::Booter;
use nanod::config::{BoxliteConfig, Network};
use nanod::sandbox::SandboxError;
use serde_json::json;

use crate::kit::{boot, booted, booter, config, request, run, shell, with_network, words};
use nano_tests::boxlite::{Boxlite, Fault};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_box_is_asked_for_with_what_is_configured_and_nothing_else() {
    for (network, outbound, found) in [
        (Network::Off, json!({"mode": "disabled"}), &["shell", "python", "filesystem"][..]),
        (Network::On, json!({"mode": "enabled"}), &["shell", "python", "filesystem", "network"]),
        (
            Network::Hosts(vec!["pypi.org".into()]),
            json!({"mode": "enabled", "allow_net": ["pypi.org"]}),
            &["shell", "python", "filesystem", "network"],
        ),
    ] {
        let server = Boxlite::start();
        let more = BoxliteConfig { cpus: Some(1.5), memory_mib: Some(512), ..with_network(&server, network) };
        let sandbox = boot(&booter(more)).await.unwrap();
        assert_eq!(words(sandbox.as_ref()), found);
        let made = server.seen().into_iter().find(|seen| seen.what == "POST /v1/boxes").unwrap().body;
        let names: Vec<&str> = made.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["name", "network", "entrypoint", "cmd", "image", "cpus", "memory_mib"]);
        assert_eq!(made["network"], json!({"outbound": outbound}));
        assert_eq!((&made["cpus"], &made["memory_mib"]), (&json!(2), &json!(512)));
        assert_eq!(server.boxes(), [("nano-s1".into(), "running".into())]);
    }
}

#[tokio::test]
async fn a_box_whose_handle_was_never_recorded_is_found_by_its_key() {
    let server = Boxlite::start();
    server.fault(Some(Fault::CutsAfterCreate));
    let booter = booter(config(&server));
    let first = booter.make(&request("s1")).await.unwrap();
    assert_eq!(booter.make(&request("s1")).await.unwrap(), first);
    assert_ne!(booter.make(&request("s1.2 / other")).await.unwrap(), first);
    assert_eq!(server.boxes().len(), 2);
    booter.give_back(&request("s1"), None).await.unwrap();
    booter.give_back(&request("s1.2 / other"), None).await.unwrap();
    booter.give_back(&request("s1"), None).await.unwrap();
    booter.give_back(&request("s1"), Some(&first)).await.unwrap();
    assert_eq!(server.boxes(), []);
}

#[tokio::test]
async fn a_box_that_stopped_is_started_and_one_that_is_gone_is_lost() {
    let server = Boxlite::start();
    let booter = booter(config(&server));
    let handle = booter.make(&request("s1")).await.unwrap();
    booter.attach(&request("s1"), &handle).await.unwrap();
    server.stop();
    let sandbox = booter.attach(&request("s1"), &handle).await.unwrap();
    assert_eq!(run(sandbox.as_ref(), shell("echo hi")).await.output, "hi\n");
    server.lose();
    for handle in [handle.as_str(), "", "../v1/boxes"] {
        let error = booter.attach(&request("s1"), handle).await.err().unwrap();
        assert!(matches!(error, SandboxError::Lost { .. }), "{handle}: {error}");
    }
    let error = sandbox.run(shell("echo hi"), &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, SandboxError::Lost { .. }), "{error}");
}

#[tokio::test]
async fn a_box_that_does_not_start_says_why() {
    for (fault, expected) in [
        (Fault::StartFails("guest did not become ready within 30s".into()), "guest did not become ready within 30s"),
        (Fault::StartHangs, "a box may take 1 s to start (booters.boxlite.start_timeout)"),
    ] {
        let server = Boxlite::start();
        server.fault(Some(fault));
        let booter = booter(BoxliteConfig { start_timeout: Duration::from_secs(1), ..config(&server) });
        let error = boot(&booter).await.err().unwrap();
        let text = error.to_string();
        assert!(matches!(error, SandboxError::Boot { .. }) && text.contains(expected), "{text}");
        // A machine on which guests cannot boot is named as the reason.
        let obstacle = booter.note().and_then(|note| Some(note.split_once(", unless")?.0.to_owned()));
        assert!(obstacle.is_none_or(|obstacle| text.contains(&obstacle)), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_is_none_is_named_and_nothing_is_followed() {
    let other = Boxlite::start();
    for (fault, expected) in [
        (Fault::Unauthorized, "wants a key"),
        (Fault::Redirect(format!("{}/v1/boxes", other.url())), "redirect"),
        (Fault::Says("<html>".into()), "cannot be read"),
        (Fault::Says("{}".into()), "cannot be read"),
        (Fault::Says(r#"{"boxes": [{"box_id": "../x", "name": "nano-s1"}]}"#.into()), "id"),
        (Fault::Says("x".repeat(5 << 20)), "more than"),
    ] {
        let server = Boxlite::start();
        server.fault(Some(fault.clone()));
        let error = boot(&booter(config(&server))).await.err().unwrap().to_string();
        assert!(error.contains(expected) && error.len() < 1000, "{expected}: {error}");
    }
    assert!(other.seen().is_empty());
    let gone = {
        let server = Boxlite::start();
        config(&server)
    };
    let error = boot(&booter(gone)).await.err().unwrap().to_string();
    assert!(error.contains("refused"), "{error}");
}

#[tokio::test]
async fn a_server_that_goes_away_between_calls_is_told_of() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    drop(server);
    let error = sandbox.run(shell("echo hi"), &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(&error, SandboxError::Failed(why) if why.contains("nothing was done")), "{error}");
}

#[test]
fn what_is_missing_is_said() {
    let check = |config: BoxliteConfig, expected: &str| {
        let here = config.endpoint.is_none();
        let missing = booter(config).missing().unwrap();
        assert!(missing.contains(expected), "{missing}");
        // What a guest needs of this machine is told from the beginning, not once all else is there.
        let able = Path::new("/dev/kvm").exists();
        assert!(able || missing.contains("/dev/kvm") == here, "{missing}");
    };
    let default = BoxliteConfig::default;
    let command =
        |command: &str| BoxliteConfig { command: Some(command.into()), path: "/bin:relative".into(), ..default() };
    let away = || BoxliteConfig { endpoint: Some("http://10.0.0.1:8100".into()), ..default() };
    check(default(), "booters.boxlite.command = \"boxlite\"");
    check(command("no-such-program"), "there is no program no-such-program");
    check(command("/etc/passwd"), "there is no program /etc/passwd");
    check(command("sh"), "booters.boxlite.image");
    check(away(), "booters.boxlite.image");
    check(BoxliteConfig { rootfs_path: Some("/no/such".into()), ..command("sh") }, "/no/such");
    // What is on another machine cannot be looked at.
    assert_eq!(booter(BoxliteConfig { rootfs_path: Some("/no/such".into()), ..away() }).missing(), None);
    assert_eq!(booter(BoxliteConfig { image: Some("x".into()), ..away() }).missing(), None);
}

#[test]
fn the_prompt_promises_nothing_that_only_a_boot_can_tell() {
    let server = Boxlite::start();
    for (network, expected) in [
        (Network::Off, "It has no network."),
        (Network::On, "It may use the network, as far as there is one."),
        (Network::Hosts(vec!["a".into(), "b".into()]), "Of the network, as far as there is one, it may use only a, b."),
    ] {
        let [prompt] = &booter(with_network(&server, network)).declared("/".as_ref()).prompts[..] else {
            panic!("one part")
        };
        assert!(prompt.text.contains(expected), "{}", prompt.text);
        assert!(prompt.text.contains("where its image has python3"), "{}", prompt.text);
    }
}
