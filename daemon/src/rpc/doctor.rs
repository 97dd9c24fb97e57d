//! `daemon.doctor`: what of the daemon and its machine is as it should be, and what to do where it is not.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use nano_protocol::daemon::{Check, Doctor, Nothing};
use nano_protocol::error::RpcError;
use nano_protocol::method::DaemonDoctor;

use super::dispatch::Serve;
use super::{Caller, Server};
use crate::config::{Api, Config};
use crate::sandbox::{cgroup, features};
use crate::skills::offer;

impl Serve for DaemonDoctor {
    async fn serve(server: &Server, _: &Caller, _: Nothing) -> Result<Doctor, RpcError> {
        let deps = server.deps();
        let config = &deps.configured().config;
        let places = &server.start.places;
        let models = deps.look_for_models().await;
        let skills = offer::list(&deps.skills.look(None).await, None, false);
        let bad: Vec<_> =
            skills.iter().filter(|skill| !skill.problems.is_empty()).map(|skill| skill.name.as_str()).collect();
        let mut checks = vec![store(server), socket(&places.socket), keys(config, &places.config), addresses(config)];
        checks.push(names("models", &models.names().collect::<Vec<_>>(), "configure one, or set OPENAI_API_KEY"));
        checks.extend(deps.booters.iter().map(|booter| {
            let detail = booter.missing().or_else(|| booter.note()).unwrap_or_else(|| "ready".into());
            some(&format!("booter {}", booter.kind()), booter.is_whole(), detail, None)
        }));
        checks.extend(machine());
        checks.push(problems(skills.len(), &bad));
        let supervised =
            if server.start.notifies { "is told how far the daemon is" } else { "did not start this daemon" };
        checks.push(good("service manager", supervised));
        checks.push(good("time zone", &config.daemon.time_zone));
        Ok(Doctor { checks })
    }
}

fn good(name: &str, detail: &str) -> Check {
    Check { name: name.into(), ok: true, partial: false, detail: detail.into(), hint: None }
}

/// Something that is there as a whole, or in part.
fn some(name: &str, whole: bool, detail: String, hint: Option<&str>) -> Check {
    let hint = hint.filter(|_| !whole).map(str::to_owned);
    Check { name: name.into(), ok: true, partial: !whole, detail, hint }
}

fn wrong(name: &str, detail: String, hint: &str) -> Check {
    Check { name: name.into(), ok: false, partial: false, detail, hint: Some(hint.into()) }
}

fn store(server: &Server) -> Check {
    let store = &server.deps().store;
    let failure = store.failure().map(|why| (why.to_string(), "see the daemon's log; nanod store check says more"));
    let full = store.has_room().err().map(|why| (why.to_string(), "make room on that disk"));
    match failure.or(full) {
        Some((why, hint)) => wrong("store", why, hint),
        None => good("store", &format!("{}, {} KiB, takes new work", store.path().display(), store.bytes() / 1024)),
    }
}

fn socket(path: &Path) -> Check {
    let hint = "restart the daemon: nobody can connect any more";
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            wrong("socket", format!("{} is not a socket", path.display()), hint)
        }
        Ok(found) => {
            let (mode, group) = (found.mode() & 0o777, found.gid());
            let detail = format!("{}, mode {mode:04o}, group {group}", path.display());
            let is_closed = mode.trailing_zeros() >= 3;
            if is_closed { good("socket", &detail) } else { wrong("socket", detail, "chmod o= it") }
        }
        Err(why) => wrong("socket", format!("{}: {why}", path.display()), hint),
    }
}

/// Looks whether files with keys are for the daemon's eyes alone.
fn keys(config: &Config, file: &Path) -> Check {
    let holds_keys = config.models.iter().any(|model| model.api_key.is_some());
    let files = config.secret_files.iter().map(std::path::PathBuf::as_path).chain(holds_keys.then_some(file));
    let open = files.filter(|file| fs::metadata(file).is_ok_and(|found| is_open(found.mode())));
    let open: Vec<_> = open.map(|file| file.display().to_string()).collect();
    if open.is_empty() {
        return good("key files", "nobody else can read them");
    }
    wrong("key files", format!("everybody can read {}", open.join(", ")), "chmod o= them")
}

fn is_open(mode: u32) -> bool {
    mode & 0o004 != 0
}

/// Looks whether what is said to models, keys too, can be read on the way.
fn addresses(config: &Config) -> Check {
    let clear: Vec<_> =
        config.models.iter().filter(|model| model.api == Api::OpenAi && is_clear(&model.base_url)).collect();
    let names = clear.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ");
    let detail = format!("{names}: http without encryption to another machine");
    match clear.iter().any(|model| model.api_key.is_some()) {
        true => wrong(
            "model addresses",
            format!("{detail}, with a key"),
            "use https, or a tunnel that ends on this machine",
        ),
        false if clear.is_empty() => good("model addresses", "encrypted, or on this machine"),
        false => some("model addresses", false, detail, Some("use https")),
    }
}

fn is_clear(address: &str) -> bool {
    let Ok(address) = url::Url::parse(address) else { return false };
    let here = match address.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => true,
    };
    address.scheme() == "http" && !here
}

fn names(what: &str, names: &[&str], hint: &str) -> Check {
    if names.is_empty() { wrong(what, "none".into(), hint) } else { good(what, &names.join(", ")) }
}

fn problems(count: usize, bad: &[&str]) -> Check {
    let detail = format!("{count} found, {} with problems", bad.len());
    let hint = format!("nanoctl skills validate; {}", bad.join(", "));
    some("skills", bad.is_empty(), detail, Some(&hint))
}

/// Looks at what the machine has for confining commands.
fn machine() -> [Check; 3] {
    let landlock = features::landlock();
    let version = landlock.map_or_else(|| "not in this kernel".into(), |version| format!("version {version}"));
    let has = |it| if it { "there" } else { "not there" }.to_owned();
    let (seccomp, groups) = (features::seccomp(), cgroup::ground().words());
    let counted = if groups.is_empty() { "none may be written".into() } else { groups.join(", ") };
    let delegate =
        "run nanod as a service with Delegate=yes; without, each process is limited, not all of them together";
    [
        some("landlock", landlock.is_some(), version, Some("a kernel from 5.13 on has it")),
        some("seccomp", seccomp, has(seccomp), None),
        some("control groups", groups.len() > 2, counted, Some(delegate)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_in_the_clear() {
        for (address, expected) in [
            ("http://127.0.0.1:1/v1", false),
            ("http://127.9.9.9/v1", false),
            ("http://[::1]:1/v1", false),
            ("http://localhost/v1", false),
            ("http://a.localhost/v1", false),
            ("https://example.com/v1", false),
            ("http://example.com/v1", true),
            ("HTTP://192.168.1.2/v1", true),
            ("http://localhost.example.com/v1", true),
            ("http://127.0.0.1.example.com/v1", true),
            ("http://0x7f000001/v1", false),
        ] {
            assert_eq!(is_clear(address), expected, "{address}");
        }
    }

    #[test]
    fn modes_of_key_files() {
        for (mode, expected) in [(0o600, false), (0o640, false), (0o644, true), (0o604, true), (0o666, true)] {
            assert_eq!(is_open(mode), expected, "{mode:o}");
        }
    }

    #[test]
    fn partial_is_not_wrong() {
        let whole = some("n", true, "d".into(), Some("h"));
        assert!(whole.ok && !whole.partial && whole.hint.is_none());
        let part = some("n", false, "d".into(), Some("h"));
        assert!(part.ok && part.partial && part.hint.is_some());
        assert!(!names("models", &[], "h").ok && names("models", &["a"], "h").ok);
    }
}
