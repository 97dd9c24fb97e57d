//! Ordinary work of a person at a shell, at the level that sessions have by default: it goes as if nothing confined it.

use nano_protocol::message::Role;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{skip, transcript};

/// Who commits.
const WHO: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";

/// What is done, by which programs that are not everywhere, and how: each line of it must succeed.
const WORK: &[(&str, &str, &str)] = &[
    ("git init", "git", "git init -q repo && cd repo && git status --short && test -d .git/refs"),
    (
        "git commit",
        "git",
        r"cd repo
        echo one > a; git add a; git commit -qm one; echo two >> a; git commit -qam two; git commit -q --amend -m 2
        test $(git rev-list --count HEAD) = 2; git fsck; git gc -q",
    ),
    (
        "git branches",
        "git",
        r"cd repo
        git checkout -qb side HEAD~; echo three > b; git add b; git commit -qm three; git checkout -q -
        git merge -q --no-edit side; git branch -d side; git tag v1; git reset -q --hard HEAD~; git checkout -q v1 -- b",
    ),
    (
        "git stash",
        "git",
        r"cd repo
        echo four >> a; git stash -q; git diff --exit-code -- a; git stash pop -q; ! git diff --quiet -- a
        git checkout -q -- a",
    ),
    (
        "git worktree",
        "git",
        "cd repo; git worktree add -q ../tree -b tree; cd ../tree; git status --short; test -f a
        cd ../repo; git worktree list; git worktree remove ../tree; git worktree prune",
    ),
    ("git clone", "git", "git clone -q repo copy; git clone -q --bare repo copy.git; cd copy; git pull -q; git log -1"),
    (
        "git in the workspace itself",
        "git",
        r"git init -q .
        echo x > own; git add own; git commit -qm own",
    ),
    (
        "and on the next day",
        "git",
        r"echo y >> own; git add own; git commit -qm more; git checkout -qb other; git stash list
        echo z >> own; git stash -q; git stash pop -q; git commit -qam z; git worktree add -q tree2; git rebase -q HEAD~
        git worktree remove tree2; git clone -q . again; git gc -q; git branch next; git branch -qD next",
    ),
    ("a virtual environment", "venv", "python3 -m venv env; env/bin/python -c 'import sys; assert sys.prefix.endswith(\"env\")'"),
    (
        "processes of Python",
        "python3",
        r#"cat > pool.py <<'END'
import multiprocessing as m
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.shared_memory import SharedMemory
def twice(n): return 2 * n
def put(queue): queue.put("put")
if __name__ == "__main__":
    for way in m.get_all_start_methods():
        context = m.get_context(way)
        with context.Pool(2) as pool: assert pool.map(twice, range(5)) == [0, 2, 4, 6, 8]
    queue, lock = m.Queue(), m.Semaphore(1)
    child = m.Process(target=put, args=(queue,)); child.start(); assert queue.get() == "put"; child.join()
    with lock, m.Manager() as manager: assert manager.dict(a=1)["a"] == 1
    with ProcessPoolExecutor(2) as pool: assert list(pool.map(twice, [1])) == [2]
    memory = SharedMemory(create=True, size=1 << 20); memory.buf[0] = 1; memory.close(); memory.unlink()
END
        python3 pool.py"#,
    ),
    (
        "a database",
        "python3",
        r#"cat > base.py <<'END'
import sqlite3
base = sqlite3.connect("base.db"); base.execute("pragma journal_mode = wal")
with base: base.execute("create table t (a)"); base.executemany("insert into t values (?)", [(n,) for n in range(999)])
assert base.execute("select count(*) from t").fetchone() == (999,); base.execute("vacuum")
END
        python3 base.py; python3 -c 'import tempfile as t; t.NamedTemporaryFile().write(b"x"); t.mkdtemp()'"#,
    ),
    ("make", "make", r"printf 'all: one two\none two:\n\tdate > $@\n' > Makefile; make -sj2; test -s two; make -q"),
    ("a compiler", "cc", r"echo 'int main(void){return 0;}' > m.c; cc -pipe m.c -o m; ./m; cc m.c -o m; ./m"),
    (
        "sorting with temporary files",
        "",
        "seq 200000 | sort -R > long; sort -S 64K -n long -o sorted; test $(tail -n1 sorted) = 200000; sort -c -n sorted",
    ),
    ("temporary files", "", "f=$(mktemp); d=$(mktemp -d); echo x > $f; mv $f $d/f; cp $d/f here; rm -r $d here; echo x > $TMPDIR/y"),
    ("archives", "", "mkdir -p p/q; echo x > p/q/r; tar czf p.tgz p; rm -r p; tar xzpf p.tgz; test -f p/q/r"),
    ("find", "", "touch 'a b.x' c.x; find . -name '*.x' -print0 | xargs -0 -P2 -n1 rm; find . -newer p.tgz -exec true {} +"),
    ("sed", "", "echo old > s; sed -i s/old/new/ s; sed -i.bak s/new/newer/ s; test $(cat s) = newer -a -f s.bak; perl -pi -e 1 s"),
    (
        "cargo",
        "cargo",
        "HOME=THE_HOME; cargo --offline new -q --vcs none made; cd made; cargo --offline build -q; ./target/debug/made
        cargo --offline test -q",
    ),
    ("process substitution", "", "diff <(seq 3) <(seq 3); seq 3 > >(cat > seen); tee >(wc -l > n) < long > /dev/null; exec 3<> s; cat <&3"),
    ("here documents", "", "cat <<END > h\n$((6 * 7))\nEND\ntest $(cat h) = 42; cat <<< string; cat <<-END\n\tx\n\tEND"),
    (
        "jobs",
        "",
        "set -m; sleep 1000 & sleep 1000 & test $(jobs | wc -l) = 2; kill %1; kill -STOP %2; kill -CONT %2; kill %2
        wait %1 || true; wait; set +m; (exit 3) & wait $! || test $? = 3; timeout 5 true; nohup true; setsid true; nice true",
    ),
    (
        "its own children",
        "",
        "sleep 1000 & pid=$!; kill -0 $pid; renice -n 10 $pid; ps -p $pid; cat /proc/$pid/comm; kill -9 $pid
        ! wait $pid; trap 'echo trapped' USR1; kill -USR1 $$; sh -c 'kill -TERM $$' || true; pgrep -f no-such || true",
    ),
    (
        "sockets on this machine",
        "python3",
        r#"cat > net.py <<'END'
import socket, threading
for family, place in [(socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, "own.sock"), (socket.AF_UNIX, "")]:
    server = socket.socket(family); server.bind(place); server.listen()
    one = socket.socket(family); one.connect(server.getsockname()); other, _ = server.accept()
    one.sendall(b"x"); assert other.recv(1) == b"x"
one = socket.socketpair(); one[0].send(b"x"); assert one[1].recv(1) == b"x"
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("127.0.0.1", 0)); socket.if_nameindex()
END
        python3 net.py; test -S own.sock"#,
    ),
    (
        "a server and its client",
        "curl",
        "python3 -um http.server -b 127.0.0.1 0 > port 2>&1 & pid=$!; until grep -q 'port [0-9]' port; do sleep 0.05; done
        curl -s --noproxy '*' http://127.0.0.1:$(sed -n 's/.*port \\([0-9]*\\).*/\\1/p' port)/s | grep newer; kill $pid; wait || true",
    ),
    ("a terminal", "script", "script -qec 'tty; stty -a; echo seen' out.txt < /dev/null; grep seen out.txt"),
    (
        "a terminal of Python",
        "python3",
        "python3 -c 'import pty, os; assert os.waitstatus_to_exitcode(pty.spawn([\"tty\"])) == 0' < /dev/null",
    ),
    ("pipes with a name", "", "mkfifo f; (echo x > f) & test $(cat f) = x; wait; rm f"),
    (
        "modes, times and links",
        "",
        "touch t; chmod 600 t; chmod u+x,g-w t; touch -d '2020-01-01' t; ln -s t l; ln t hard; cp -a t kept; readlink -f l
        install -m 755 t inst; chown $(id -u) t; test $(stat -c %a t) = 700; umask 077; mkdir -m 700 own-folder; truncate -s 1M big
        rm l hard; mv t u; rmdir own-folder; flock u true; test $(stat -c %Y kept) -lt 1600000000; df . > /dev/null; du -s .",
    ),
    ("what a machine tells", "", "id; uname -a; nproc; free > /dev/null; ps aux > /dev/null; date; cat /proc/meminfo > /dev/null; ls / /dev /etc > /dev/null"),
];

#[test]
fn ordinary_work_goes_as_ever() {
    all_of_it_goes(None, &[]);
}

#[test]
fn and_where_commands_have_a_tmp_of_their_own() {
    // What takes long is not done twice.
    all_of_it_goes(Some("/var/tmp"), &["venv", "cargo"]);
}

fn all_of_it_goes(below: Option<&str>, but: &[&str]) {
    let has = |program: &str| match program {
        "" => true,
        "venv" => succeeds("python3", &["-c", "import ensurepip, venv"]),
        // Commands are told nothing else of where its parts are.
        "cargo" => succeeds("sh", &["-c", "env -i PATH=\"$PATH\" HOME=\"$HOME\" cargo --version"]),
        program => succeeds("sh", &["-c", &format!("command -v {program}")]),
    };
    let work = WORK.iter().filter(|(_, program, _)| !but.contains(program));
    let (work, left_out): (Vec<_>, Vec<_>) = work.partition(|(_, program, _)| has(program));
    for (what, program, _) in &left_out {
        skip::say(&format!("{what}: there is no {program} here"));
    }
    // What cargo reads is there, and not in a folder of the test's own.
    let home = std::env::var("HOME").unwrap_or_default();
    let text = |how: &str| format!("set -e\n{WHO}\n{}\necho all of it was done", how.replace("THE_HOME", &home));
    let turns = work.iter().enumerate().map(|(n, (_, _, how))| Turn::exec(format!("c{n}"), text(how)));
    let server = ModelServer::script(turns.flat_map(|turn| [turn, Turn::text("done")]).collect());
    let daemon = Daemon::with(
        &server,
        Setup { agent: "exec_timeout = \"50s\"".into(), below: below.map(Into::into), ..Setup::default() },
    );
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    for (what, _, _) in &work {
        client.run(&session, what);
    }
    let told = transcript::read(&mut client, &session).into_iter().filter(|message| message.role == Role::Tool);
    let told: Vec<_> = told.map(|message| message.content).collect();
    assert_eq!(told.len(), work.len());
    let failed = work.iter().zip(&told).filter(|(_, told)| !told.contains("all of it was done"));
    let failed: Vec<_> = failed.map(|((what, _, _), told)| format!("## {what}\n{told}")).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    std::process::Command::new(program).args(arguments).output().is_ok_and(|out| out.status.success())
}
