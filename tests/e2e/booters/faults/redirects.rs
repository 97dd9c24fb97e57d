//! A server that sends nanod elsewhere: nobody there hears of it, with or without a key.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nano_tests::sandboxes::Fault;

use super::*;

/// A listener that counts who connects.
struct Trap {
    url: String,
    came: Arc<AtomicUsize>,
}

impl Trap {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
        let url = format!("http://{}/", listener.local_addr().expect("its address"));
        let came = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&came);
        std::thread::spawn(move || listener.incoming().fold(0, |_, _| count.fetch_add(1, Ordering::SeqCst)));
        Self { url, came }
    }

    /// Connects itself: who came before has been counted when this one has.
    fn check(&self) {
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        drop(TcpStream::connect(address).expect("a living trap"));
        wait::until("the trap", || (self.came.load(Ordering::SeqCst) > 0).then_some(()));
        assert_eq!(self.came.load(Ordering::SeqCst), 1, "somebody followed a redirect");
    }
}

#[test]
fn a_redirect_at_boot_is_not_followed() {
    for status in [301, 302, 307, 308] {
        for remote in both() {
            let trap = Trap::start();
            remote.fault(Fault::redirect("POST", remote.create(), status, &trap.url).once());
            remote.fault(Fault::redirect("GET", remote.one(), status, &trap.url).once());
            let mut world = World::new(remote);
            for _ in ["create", "get"] {
                let why = no_computer(&world.run(&hello()));
                let key = format!("booters.{}.endpoint", world.remote.kind());
                assert!(why.contains("redirects") && why.contains(&key), "{why}");
            }
            assert_eq!(world.exec("echo hello"), ("hello".into(), true));
            trap.check();
        }
    }
}

#[test]
fn a_redirect_of_a_call_is_not_followed() {
    for status in [302, 307, 308] {
        for remote in both() {
            let trap = Trap::start();
            let mut world = World::new(remote);
            world.exec("echo text > note");
            for (method, path) in [
                ("POST", world.remote.exec()),
                ("POST", world.remote.python()),
                ("POST", world.remote.upload()),
                ("GET", world.remote.download()),
                ("DELETE", world.remote.one()),
            ] {
                world.remote.fault(Fault::redirect(method, path, status, &trap.url));
            }
            std::fs::write(world.daemon.workspace().join("mine"), "text").expect("a file");
            for (name, arguments) in [
                ("exec", json!({"command": "true"})),
                ("python", json!({"code": "1"})),
                ("upload_file", json!({"local_path": "mine"})),
                ("download_file", json!({"remote_path": "note"})),
            ] {
                let (text, ok) = world.call(name, arguments);
                assert!(!ok && text.contains("redirects"), "{name}: {text}");
            }
            world.close();
            trap.check();
        }
    }
}
