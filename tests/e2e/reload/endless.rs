//! A config that is a pipe, or does not end.

use super::*;

/// Makes a pipe that nobody writes into.
fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
}

/// A config with a cassette that nobody can read to its end, in a pipe.
pub(super) fn with_endless(bench: &Bench) {
    pipe(&bench.daemon.root().join("cassette"));
    bench.write("drain = \"1h\"", "", "[models.m]\napi = \"replay\"\ncassette = \"cassette\"");
}

#[test]
fn a_pipe_is_no_config() {
    let mut bench = idle();
    let file = bench.daemon.root().join("nanod.toml");
    for (secret, says) in [(false, "pipe"), (true, "key")] {
        fs::remove_file(&file).expect("the config");
        if secret {
            pipe(&bench.daemon.root().join("key"));
            bench.write("", "", "[models.m]\nbase_url = \"http://127.0.0.1:1\"\nmodel = \"m\"\napi_key_file = \"key\"");
        } else {
            pipe(&file);
        }
        let error = bench.client.call("daemon.reload", &json!({})).expect_err("a pipe");
        assert!(error.message.contains(says), "{error:?}");
        bench.write("", "max_turns = 9", "");
        bench.reload();
        assert_eq!(bench.agent()["max_turns"], 9);
    }
}

#[test]
fn one_that_does_not_end_does_not_keep_the_daemon() {
    let mut bench = idle();
    bench.daemon.kill9();
    let path = bench.daemon.root().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(wait::DEADLINE)).expect("a socket");
    bench.daemon.set_env(vec![("NOTIFY_SOCKET", path.display().to_string())]);
    bench.write("drain = \"1h\"", "", "");
    bench.daemon.restart();
    with_endless(&bench);
    bench.hang_up();
    let mut buffer = [0; 4096];
    let mut told = || {
        let length = socket.recv(&mut buffer).expect("a word of the daemon");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert_eq!(told().trim_end(), "READY=1");
    assert!(told().starts_with("RELOADING=1"));
    assert_eq!(bench.daemon.terminate().code(), Some(0), "{}", bench.daemon.log());
    assert_eq!(told().trim_end(), "STOPPING=1");
    socket.set_nonblocking(true).expect("a socket");
    assert!(socket.recv(&mut [0; 64]).is_err(), "it is not ready while it stops");
}
