//! Something else behind the endpoint, or nobody, or somebody who does not know the key.

use std::net::TcpListener;

use super::*;

/// Points a booter at an address with its own key and returns why no computer comes of it.
fn check(remote: Remote, endpoint: &str, says: &[&str]) {
    let (kind, key) = (remote.kind(), remote.key());
    let section = format!("[booters.{kind}]\nendpoint = \"{endpoint}\"\naccess_token = \"{key}\"\n");
    let mut world = World::with(remote, section, "skills = []");
    let task = world.run(&hello());
    let (why, boot) = (no_computer(&task), world.boot_fails());
    let endpoint = format!("booters.{kind}.endpoint");
    for word in says.iter().chain([&endpoint.as_str()]) {
        assert!(why.contains(word) && boot.contains(word), "{word}: {why} / {boot}");
    }
    assert!(!why.contains(&key) && why.len() < 600, "{why}");
    assert_eq!(world.remote.sandboxes(), Vec::<String>::new());
}

#[test]
fn an_old_shipyard_behind_neos_endpoint() {
    let ships = Ships::start();
    check(Remote::Neo(Bay::start()), &ships.url(), &["use the booter shipyard,"]);
    assert_eq!(ships.ships(), Vec::<String>::new());
}

#[test]
fn a_neo_behind_the_old_shipyards_endpoint() {
    let bay = Bay::start();
    check(Remote::Ship(Ships::start()), &bay.url(), &["use the booter shipyard_neo"]);
    assert_eq!(bay.sandboxes(), Vec::<String>::new());
}

#[test]
fn a_model_server_behind_either_endpoint() {
    for remote in both() {
        let model = ModelServer::answering(|_, _| Some(Turn { status: Some(404), ..Turn::default() }));
        // Its end would fail the test: what it was asked is nothing that a model is asked.
        let model = Box::leak(Box::new(model));
        let endpoint = model.url().replace("/v1", "");
        check(remote, &endpoint, &[]);
    }
}

#[test]
fn nobody_behind_either_endpoint() {
    for remote in both() {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
        let endpoint = format!("http://{}", free.local_addr().expect("its address"));
        drop(free);
        check(remote, &endpoint, &[]);
    }
}

#[test]
fn a_wrong_key_is_told_by_the_name_of_its_place() {
    for remote in both() {
        let (kind, url) = (remote.kind(), remote.url());
        let wrong = "sk-bay-wrong-key-of-a-test";
        let section = format!("[booters.{kind}]\nendpoint = \"{url}\"\naccess_token = \"{wrong}\"\n");
        let mut world = World::with(remote, section, "skills = []");
        let why = no_computer(&world.run(&hello()));
        assert!(why.contains(&format!("booters.{kind}.access_token")) && !why.contains(wrong), "{why}");
        assert!(!world.boot_fails().contains(wrong));
    }
}
