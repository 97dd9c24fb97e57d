//! Keys stay where they belong, and so does the rest of this machine: whatever goes wrong over there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Child;

use nano_tests::sandboxes::{Fault, Reply};

use super::faults::{Remote, World, both, hello, no_computer, obeying};
use super::*;

/// Collects every place where a key could turn up.
fn everywhere(world: &mut World, answers: &[String]) -> Vec<(&'static str, String)> {
    let mut found = vec![("log", world.daemon.log()), ("answers", answers.join("\n"))];
    found.push(("events", json!(world.daemon.history()).to_string()));
    for args in [&["booters"] as &[&str], &["--json", "booters"], &["--json", "sessions"], &["tasks"], &["-v", "tools"]]
    {
        let mut args = args.to_vec();
        args.extend((args.last() == Some(&"tools")).then_some(world.session.as_str()));
        let said = world.daemon.ctl(args).run();
        found.push(("nanoctl", said.stdout + &said.stderr));
    }
    let sessions: Value = world.client.get("session.list", &json!({}));
    for one in sessions["sessions"].as_array().cloned().unwrap_or_default() {
        let messages: Value = world.client.get("session.messages", &json!({"session": one["id"], "limit": 1000}));
        found.push(("messages", messages.to_string()));
    }
    found.push(("requests of the model", json!(world.model.requests()).to_string()));
    found.push(("processes", commands()));
    found
}

/// Returns the command line of every process there is.
fn commands() -> String {
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ") + "\n").collect()
}

/// Makes every kind of fault, some of which say the key themselves.
fn faults(remote: &Remote, method: &str, path: &str) -> Vec<Fault> {
    let says = format!("Authorization: Bearer {} is bad", remote.key());
    let told = match remote {
        Remote::Neo(_) => Bay::error(400, "validation_error", &says, &json!({"key": remote.key()})),
        Remote::Ship(_) => Reply::detail(400, says.as_str()),
    };
    let page = Reply::text(500, "text/plain", says.as_str());
    vec![
        Fault::answer(method, path, told),
        Fault::answer(method, path, Reply::detail(401, says.as_str())),
        Fault::answer(method, path, page),
        Fault::answer(method, path, Reply::text(200, "text/html", format!("<html>{says}"))),
        Fault::redirect(method, path, 307, &format!("http://127.0.0.1:9/?key={}", remote.key())),
        Fault::not_ready(method, path, 10),
        Fault::reset(method, path),
        Fault::cut(method, path),
        Fault::malformed(method, path),
        Fault::oversized(method, path, 17),
    ]
}

#[test]
fn no_key_is_seen_anywhere_after_every_fault() {
    for remote in both() {
        let (section, key) = (remote.section(), remote.key());
        let mut world = World::with(remote, section, "skills = []");
        world.daemon.kill9();
        let path = world.daemon.root().join("nanod.toml");
        let config =
            fs::read_to_string(&path).expect("the config").replacen("[daemon]", "[daemon]\nlog = \"trace\"", 1);
        fs::write(path, config).expect("the config");
        world.restart();
        let mut answers = Vec::new();
        for fault in faults(&world.remote, "POST", world.remote.create()) {
            world.remote.fault(fault.times(4));
            let fresh = session(&world.daemon, &mut world.client, world.remote.kind());
            answers.push(format!("{:?}", world.client.call("session.boot", &json!({"session": fresh}))));
            world.remote.clear_faults();
            close(&mut world.client, &fresh);
        }
        world.boot();
        fs::write(world.daemon.workspace().join("note"), "text").expect("a file");
        for (method, path, name, arguments) in [
            ("POST", world.remote.exec(), "exec", json!({"command": "echo hello"})),
            ("POST", world.remote.python(), "python", json!({"code": "1"})),
            ("POST", world.remote.upload(), "upload_file", json!({"local_path": "note"})),
            ("GET", world.remote.download(), "download_file", json!({"remote_path": "note"})),
        ] {
            for fault in faults(&world.remote, method, path) {
                world.remote.fault(fault.once());
                answers.push(world.call(name, arguments.clone()).0);
                world.remote.clear_faults();
            }
        }
        world.close();
        let log = world.daemon.log();
        assert!(log.contains("TRACE") && log.contains("could not") | log.contains("not there"), "a log worth a look");
        for (place, text) in everywhere(&mut world, &answers) {
            assert!(!text.is_empty(), "{place}");
            let at = text.find(&key).map(|at| text[text.floor_char_boundary(at.saturating_sub(300))..at].to_owned());
            assert_eq!(at, None, "the key of {} in {place}", world.remote.kind());
        }
        assert_eq!(holding(&world.daemon.state(), &key), Vec::<String>::new(), "files with the key");
    }
}

/// Returns the files below a folder that hold `text`.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).contains(text) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// A daemon of the test's own, ended before the folder that it works in.
struct Own(Child);

impl Drop for Own {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts a daemon for `bay` without a key, beside a file that a server left with `key` for `endpoint`.
fn with_file(bay: &Bay, key: &str, endpoint: &str, check: impl FnOnce(&mut Client, &str)) {
    let model = obeying();
    let extra = format!("[booters.shipyard_neo]\nendpoint = \"{}\"\n", bay.url());
    let mut daemon = daemon(&model, extra);
    daemon.kill9();
    let folder = daemon.root().join("bay");
    fs::create_dir(&folder).expect("a folder");
    let left = json!({"api_key": key, "endpoint": endpoint, "generated_at": "2026-11-30T12:00:00"});
    fs::write(folder.join("credentials.json"), left.to_string()).expect("a file");
    let log = fs::File::create(daemon.root().join("own.log")).expect("a log");
    let own = Own(daemon.command().env("BAY_DATA_DIR", &folder).stderr(log).spawn().expect("nanod starts"));
    let mut client = nano_tests::wait::until("the daemon", || {
        let mut client = Client::connect(&daemon.socket()).ok()?;
        client.try_call("daemon.status", &json!({}))?.ok()?;
        Some(client)
    });
    let session = session(&daemon, &mut client, "shipyard_neo");
    check(&mut client, &session);
    close(&mut client, &session);
    drop(own);
    let log = fs::read_to_string(daemon.root().join("own.log")).expect("a log");
    assert!(!log.contains(key), "{log}");
}

#[test]
fn bug_09_a_key_left_for_this_very_server_is_used() {
    let bay = Bay::start();
    with_file(&bay, &bay.key(), &bay.url(), |client, session| {
        let task = client.run(session, &json!(hello()).to_string());
        assert_eq!((task.error, result(client, session)), (None, ("hello".into(), true)));
    });
    wait_none(&bay);
}

#[test]
fn a_key_left_for_another_server_goes_nowhere() {
    let (foreign, own) = (Bay::start(), Bay::start());
    with_file(&foreign, &own.key(), &own.url(), |client, session| {
        let task = client.submit(session, &json!(hello()).to_string());
        let why = no_computer(&client.settled(&task.id));
        assert!(why.contains("credentials.json") && why.contains("booters.shipyard_neo.access_token"), "{why}");
        assert!(why.contains(&own.url()) && !why.contains(&own.key()), "{why}");
    });
    assert_eq!((foreign.requests().len(), own.requests().len()), (0, 0));
}

/// Makes the ways out of the workspace that a model, or a repository, may have made.
fn ways_out(root: &Path, work: &Path) -> Vec<String> {
    symlink(root.join("nanod.toml"), work.join("link")).expect("a link");
    symlink("../nanod.toml", work.join("relative")).expect("a link");
    symlink("..", work.join("up")).expect("a link");
    let absolute = root.join("nanod.toml").display().to_string();
    let mut ways: Vec<String> =
        ["../nanod.toml", "./../nanod.toml", "sub/../../nanod.toml", "link", "relative"].map(Into::into).into();
    ways.extend(["up/nanod.toml", "/proc/self/cwd/nanod.toml", "nanod.sock/../../nanod.toml"].map(Into::into));
    ways.extend([absolute.clone(), format!("{}/../nanod.toml", work.display()), format!("file://{absolute}")]);
    ways
}

const RESTRICTED: [&str; 2] = ["skills = []", "skills = []\nrestrict_to_workspace = false"];

#[test]
fn no_file_beside_the_workspace_leaves_this_machine() {
    for agent in RESTRICTED {
        for remote in both() {
            let section = remote.section();
            let mut world = World::with(remote, section, agent);
            let (root, work) = (world.daemon.root().to_owned(), world.daemon.workspace());
            for way in ways_out(&root, &work) {
                let (text, ok) = world.call("upload_file", json!({"local_path": way, "remote_path": "got"}));
                assert!(!ok && text.contains("local_path"), "{way}: {text}");
            }
            assert_eq!(world.remote.requests_to("POST", world.remote.upload()).len(), 0);
            fs::write(root.join("beside"), "mine").expect("a file");
            fs::hard_link(root.join("beside"), work.join("hard")).expect("a hard link");
            assert!(
                world.call("upload_file", json!({"local_path": "hard"})).1,
                "a hard link is a file of the workspace"
            );
            let there = world.remote.requests();
            let (key, config) = (world.remote.key(), "test-key");
            assert!(there.iter().all(|one| !one.text().contains(&key) && !one.text().contains(config)));
        }
    }
}

#[test]
fn no_file_beside_the_workspace_is_written() {
    for agent in RESTRICTED {
        for remote in both() {
            let section = remote.section();
            let mut world = World::with(remote, section, agent);
            let (root, work) = (world.daemon.root().to_owned(), world.daemon.workspace());
            let config = fs::read_to_string(root.join("nanod.toml")).expect("the config");
            world.exec("echo evil > note");
            let listed = |folder: &Path| fs::read_dir(folder).expect("a folder").count();
            let ways = ways_out(&root, &work);
            let count = listed(&root);
            for way in ways.iter().cloned().chain(["../evil", "up/evil", "/evil"].map(Into::into)) {
                let (text, ok) = world.call("download_file", json!({"remote_path": "note", "local_path": way}));
                assert!(!ok || way.starts_with("file:"), "a name like any other, within the workspace: {way}: {text}");
            }
            assert_eq!(fs::read_to_string(root.join("nanod.toml")).expect("the config"), config);
            assert_eq!(listed(&root), count);
            assert!(!Path::new("/evil").exists());
        }
    }
}
