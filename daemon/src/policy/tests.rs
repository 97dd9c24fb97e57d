#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::{prop_assert, proptest};

use super::{Call, Level, Policy, Subject, judge};

/// The workspace is the folder itself, without links.
fn inside(path: &str) -> bool {
    let mut depth = 0;
    if path.starts_with('/') {
        return path.starts_with("/w/");
    }
    path.split('/').all(|part| {
        depth += match part {
            ".." => -1,
            "" | "." => 0,
            _ => 1,
        };
        depth >= 0
    })
}

fn policy(rules: &[&str]) -> Policy {
    Policy::parse(&rules.iter().map(|&rule| rule.to_owned()).collect::<Vec<_>>()).unwrap()
}

fn exec(rules: &[&str], line: &str) -> Level {
    let call = Call { tool: "exec", subject: Subject::Command(line), text: line, arguments: "", inside: &inside };
    policy(rules).judge(&call).level
}

#[track_caller]
fn all(rules: &[&str], level: Level, lines: &[&str]) {
    for line in lines {
        assert_eq!(exec(rules, line), level, "{rules:?}: {line}");
    }
}

#[test]
fn harmless_commands_run_unasked() {
    all(
        &[],
        Level::Allow,
        &[
            "echo \"format \"",
            "git log --pretty=format \"%h\"",
            "git log --pretty=format:'%h %s'",
            "man mkfs",
            "grep -rn mkfs docs/",
            "git commit -m \"do not run rm -rf / here\"",
            "git commit -m 'explain rm -rf ~'",
            "date --help | grep \"format \"",
            "rm -rf target/",
            "rm -rf ./build dist/*.o node_modules",
            "rm -rf /w/target",
            "cd sub && rm -rf ../target",
            "(cd /tmp && ls); rm -rf target",
            "echo \"dd if=/dev/zero of=/dev/sda\"",
            "dd if=/dev/zero of=disk.img bs=1M count=1",
            "dd if=/dev/urandom of=/dev/null count=1",
            "ls -l > /dev/null 2>&1",
            "echo x >&2; echo y &>/dev/null",
            "printf '%s\\n' 'mkfs.ext4 /dev/sda1'",
            "mkfs.ext4 --help",
            "cat > notes.txt <<EOF\nrm -rf /\nmkfs /dev/sda\nEOF\nls",
            "cat <<-'E'\n\t$(rm -rf /)\n\tE\n",
            "# rm -rf /\nls",
            "ls # rm -rf /",
            "clang-format -i x.c",
            "echo shutdown -h now",
            "systemctl status reboot.target",
            "find . -name '*.o' -delete",
            "find target -exec rm {} +",
            "sudo -u postgres psql -c 'select 1'",
            "echo $HOME \"$(date)\" `id`",
            "for f in *; do echo \"$f\"; done",
            "case $x in a) echo b;; esac",
            "python3 -c \"import shutil; print('rm -rf /')\"",
            "tee /tmp/x < a | sort",
            "chmod -R u+w target",
            "init-project 0",
            "echo 'a\nrm -rf /'",
            "rm /etc/x",
            "./format src",
            "bin/format",
            "format src",
            "npx format c.js",
            "time cargo build",
            "sudo A=1 ls",
            "su -c 'ls'",
            "flock l rm -rf target",
            "bash -euo pipefail -c 'rm -rf target'",
            "dd if=/dev/zero of=//dev/null",
            "find -name x -delete",
            "find target -exec rm -rf {} +",
            "trap 'rm -rf target' EXIT",
            "",
        ],
    );
}

#[test]
fn dangerous_commands_are_asked_about() {
    let lines = [
        "rm -rf /",
        "rm -r -f /v",
        "rm -fr /v",
        "rm  -rf\t/v",
        "rm -Rf ../v",
        "rm --recursive --force /v",
        "rm --recur /v",
        "rm -rf${IFS}/v",
        "r\\m -r\\f /v",
        "'rm' -r -f /v",
        "r'm' \"-rf\" /v",
        "/bin/rm -rfv /v",
        "command rm -fr /v",
        "rm -r{f,v} /v",
        "cd /v && rm -r ./*",
        "cd /v; rm -r x",
        "cd && rm -r x",
        "cd \"$d\" && rm -r x",
        "find /v -delete",
        "find /v -exec rm {} +",
        "find ~ -execdir /bin/rm -r {} \\;",
        "eval \"rm -r\"\"f /v\"",
        "xargs rm -fr <<< /v",
        "ls | xargs -n 1 rm -r",
        "env -S 'rm -rf /v'",
        "env -i A=b rm -rf /v",
        "sh -c 'rm -rf /v'",
        "bash -lc \"rm -rf /v\"",
        "sudo rm -rf /v",
        "timeout -s KILL 5 rm -rf /v",
        "nice -n 5 rm -rf /v",
        "nohup rm -rf /v &",
        "busybox rm -rf /v",
        "true && false || rm -rf /v",
        "echo a\nrm -rf /v",
        "echo a \\\n; rm -rf /v",
        "(rm -rf /v)",
        "{ rm -rf /v; }",
        "if true; then rm -rf /v; fi",
        "while :; do rm -rf /v; done",
        "! rm -rf /v",
        "echo $(rm -rf /v)",
        "echo \"`rm -rf /v`\"",
        "echo \"${x:-$(rm -rf /v)}\"",
        "cat <(rm -rf /v)",
        "cat <<E\n$(rm -rf /v)\nE\n",
        "X=1 rm -rf /v",
        ">log rm -rf /v",
        "rm -rf ~",
        "rm -rf ~/x",
        "rm -rf $HOME",
        "rm -rf \"$d\"",
        "rm -rf -- /v",
        "rm -rf target /v",
        "rm -rf ../",
        "mkfs /dev/sda",
        "mkf''s.ext4 /dev/sda1",
        "m\\kfs.ext4 x",
        "mke2fs /dev/sda",
        "/sbin/wipefs -a /dev/sda",
        "blkdiscard /dev/sda",
        "format c:",
        "dd if=/dev/zero of=/dev/sda",
        "dd of=/dev/sda if=x",
        "dd of=/dev/sda </dev/null",
        "cp x /dev/sda",
        "echo x | tee -a /dev/nvme0n1",
        "shred -u /dev/sda",
        "cat x > /dev/sda",
        "cat x >>/dev/sda",
        ": >|/dev/sda",
        "shutdown -h now",
        "sudo reboot",
        "systemctl --force poweroff",
        "init 0",
        "chmod -R 777 /",
        "chown -R me /etc",
        "dd of=//dev/sda",
        "dd of=/dev/../dev/./sda",
        "cd /dev && dd of=sda",
        "dd of=\"$D\"",
        "dd of=$D",
        "format /dev/sda",
        "flock l rm -rf ~/x",
        "flock -n l -c 'rm -rf ~/x'",
        "su -c 'rm -rf ~/x'",
        "su - me -c 'rm -rf ~/x'",
        "su me --command='rm -rf ~/x'",
        "runuser -u me -- rm -rf ~/x",
        "script -qc 'rm -rf ~/x' /dev/null",
        "sudo A=1 rm -rf ~/x",
        "sudo -nu me rm -rf ~/x",
        "sudo --user me rm -rf ~/x",
        "env -C / rm -rf x",
        "env -iS 'rm -rf ~/x'",
        "env --split-string='rm -rf ~/x'",
        "timeout 5 rm -rf ~/x",
        "nohup rm -rf ~/x",
        "nice rm -rf ~/x",
        "ionice -c2 -n 7 rm -rf ~/x",
        "stdbuf -oL rm -rf ~/x",
        "setsid -w rm -rf ~/x",
        "doas -u me rm -rf ~/x",
        "systemd-run --user rm -rf ~/x",
        "xargs rm -rf",
        "watch 'rm -rf ~/x'",
        "parallel 'rm -rf {}' ::: a",
        "time -p { rm -rf ~/x; }",
        "time ! rm -rf ~/x",
        "time -f %e rm -rf ~/x",
        "coproc X { rm -rf ~/x; }",
        "coproc rm -rf ~/x",
        "function f { rm -rf ~/x; }; f",
        "for x do rm -rf ~/x; done",
        "bash -euo pipefail -c 'rm -rf ~/x'",
        "bash -c -e 'rm -rf ~/x'",
        "bash -c \"rm -rf '$D'\"",
        "trap 'rm -rf ~/x' EXIT",
        "command cd / && rm -rf x",
        "find -L / -delete",
        "cd / && find -delete",
        "find . -exec true \\; -exec rm -rf ~/x \\;",
    ];
    all(&[], Level::Ask, &lines);
    all(&["exec: allow"], Level::Ask, &lines);
    all(&["dangerous: allow"], Level::Allow, &lines);
    all(&["dangerous: deny"], Level::Deny, &lines);
    all(&["exec: deny", "dangerous: allow"], Level::Deny, &lines);
}

#[test]
fn a_rule_that_allows_covers_what_stands_there() {
    let rules = [
        "exec: ask",
        "exec git status *: allow",
        "exec echo *: allow",
        "exec env *: allow",
        "exec sh *: allow",
        "exec find *: allow",
        "exec cargo test: allow",
        "exec ls *.rs: allow",
    ];
    all(
        &rules,
        Level::Allow,
        &[
            "git status",
            "git status -s",
            "git   status\t-s",
            "git st\"at\"us",
            "echo a | echo b && echo c; echo d",
            "echo a\necho b",
            "echo \\\n a",
            "(echo a); { echo b; }",
            "echo a & echo b",
            "echo '$x' '`y`' \\$z",
            "echo *.rs ~",
            "cargo test",
            "find . -name x",
            "ls a.rs",
            "echo a # echo $b",
        ],
    );
    all(
        &rules,
        Level::Ask,
        &[
            "echo x | sh",
            "echo a\nrm f",
            "env sh -c 'echo a'",
            "env echo a",
            "env -S 'echo a'",
            "sh -c 'echo a'",
            "sh echo",
            "echo \"$(touch f)\"",
            "echo \"`touch f`\"",
            "echo $x",
            "echo \"$x\"",
            "echo a > f",
            "echo a 2>&1",
            "echo <(date)",
            "cat <<E\nE\n",
            "X=1 echo a",
            "PATH=. git status",
            "X=1",
            "find . -exec echo {} +",
            "find . -delete",
            "xargs echo",
            "sudo echo a",
            "$X status",
            "g* status",
            "/tmp/git status",
            "./echo a",
            "git push",
            "git",
            "cargo test --all",
            "cargo t*",
            "ls *.rs",
            "if echo a; then echo b; fi",
            "echo() { rm f; }; echo a",
            "echo a\r",
            "echo 'a",
            "echo $'a'",
            "echo a; case x in x) echo b;; esac",
            "alias echo=rm; echo f",
            ". ./f; echo a",
            "echo a |& sh",
            "echo a && rm f",
            "echo a || rm f",
            "echo a & rm f",
            "echo a \\\n&& rm f",
        ],
    );
}

#[test]
fn a_rule_that_asks_or_denies_looks_deeper() {
    let lines = [
        "git push",
        "git push origin main",
        "/usr/bin/git push",
        "echo a; git push",
        "echo a\ngit push",
        "cd x && git  'push'",
        "sh -c 'git push'",
        "env A=b git push",
        "sudo git push",
        "echo \"$(git push)\"",
        "ls | xargs git push",
        "find . -exec git push \\;",
        "git push $X > log",
        "X=1 git push",
        "if true; then git push; fi",
        "time git push",
        "time -p git push",
        "time { git push; }",
        "time (git push)",
        "time ! git push",
        "! time ! git push",
        "time A=1 git push",
        "time -f %e git push",
        "coproc git push",
        "coproc X { git push; }",
        "function f { git push; }; f",
        "find . -exec true \\; -exec git push \\;",
        "bash -eo pipefail -c 'git push'",
        "bash -c \"cd $X && git push\"",
    ];
    all(&["exec git push *: ask"], Level::Ask, &lines);
    all(&["exec git push *: ask", "exec ls: allow", "exec: allow"], Level::Ask, &lines);
    let unsure = [
        "$X push",
        "git $X",
        "g?t push",
        "git p*",
        "echo git push | sh",
        "eval $X",
        "bash x.sh",
        "eval \"$(cat x)\"",
        ". ./x",
        "git() { :; }; x",
        "timeout 5 $X",
        "xargs git",
        "find . {-exec,git,push,\\;}",
        "find . -ex{ec,} git push \\;",
        "find . -* git push \\;",
        "find . $X",
        "find push -exec git {} \\;",
        "xargs {-n,1} git push",
        "echo git | xargs -I% % push",
        "time $X push",
    ];
    all(&["exec git push *: ask"], Level::Ask, &unsure);
    all(&["exec git push *: deny"], Level::Ask, &unsure);
    all(&["exec git push *: deny", "exec git *: allow"], Level::Deny, &lines[..3]);
    all(
        &["exec git push *: ask"],
        Level::Allow,
        &[
            "time ls",
            "find . -name *.rs",
            "find src ~ -type f",
            "git status",
            "echo git push",
            "ls *",
            "echo $X",
            "git commit -m 'git push'",
        ],
    );
    all(&["exec git * push *: ask"], Level::Ask, &["git -C d push", "git push", "git -c a=b push x"]);
}

#[test]
fn a_star_that_allows_stays_where_it_is() {
    let rules = [
        "exec ./scripts/*.sh: allow",
        "exec cat docs/*: allow",
        "exec ls --dir=*: allow",
        "exec curl https://*.example.org/*: allow",
        "exec find *: allow",
        "exec git status: allow",
    ];
    let covered = ["./scripts/x.sh", "cat docs/a", "ls --dir=a/b", "curl https://a.example.org/x", "find . -name *.rs"];
    all(&rules, Level::Allow, &covered);
    all(
        &rules,
        Level::Ask,
        &[
            "./scripts/../x.sh",
            "./scripts/a/b.sh",
            "./scripts/a/../../x.sh",
            "cat docs/../secret",
            "cat docs/..",
            "ls --dir=..",
            "ls --dir=a/../..",
            "curl https://evil.com/a.example.org/",
            "curl https://evil.com#.example.org/",
            "find . {-exec,rm,f,\\;}",
            "find . $X",
            "time git status",
        ],
    );
    for line in ["./scripts/../x.sh", "./scripts/a/b.sh"] {
        all(&["exec ./scripts/*.sh: deny"], Level::Deny, &[line]);
    }
}

#[test]
fn addresses_are_what_is_asked_for() {
    let fetch = |rule: &str, address: &str| {
        let subject = Subject::Address(address);
        let call = Call { tool: "web_fetch", subject, text: address, arguments: "", inside: &inside };
        policy(&[rule]).judge(&call).level
    };
    for (rule, address, level) in [
        ("https://evil.com/*: deny", "https://evil.com/", Level::Deny),
        ("https://evil.com/*: deny", "https://evil.com", Level::Deny),
        ("https://evil.com/*: deny", "https://evil.com:443/", Level::Deny),
        ("https://evil.com/*: deny", "https://evil.com:8443/", Level::Deny),
        ("https://evil.com/*: deny", "https:evil.com/", Level::Deny),
        ("https://evil.com/*: deny", "https:\\\\evil.com\\x", Level::Deny),
        ("https://evil.com/*: deny", "HTTPS://EVIL.com", Level::Deny),
        ("https://evil.com/*: deny", "https://evil.com?x", Level::Deny),
        ("https://evil.com/*: deny", " https://evil.com./x", Level::Deny),
        ("https://evil.com/*: deny", "https://a@evil.com/x", Level::Deny),
        ("https://evil.com/*: deny", "https://%65vil.com/x", Level::Deny),
        ("https://evil.com: deny", "https://evil.com/x", Level::Deny),
        ("https://evil.com/*: deny", "https://good.com/evil.com/", Level::Allow),
        ("https://x.com/admin/*: deny", "https://x.com/%61dmin/y", Level::Deny),
        ("https://x.com/admin/*: deny", "https://x.com/a/../admin/y", Level::Deny),
        ("https://x.com/admin/*: deny", "https://x.com/ADMIN/y", Level::Ask),
        ("http://127.0.0.1/*: deny", "http://2130706433/", Level::Deny),
        ("https://evil.com/*: deny", "no address", Level::Ask),
        ("*: deny", "https://x.com/", Level::Deny),
        ("https://*.example.org/*: allow", "https://a.example.org/x?y", Level::Allow),
        ("https://*.example.org/*: allow", "https://evil.com/a.example.org/", Level::Ask),
        ("https://*.example.org/*: allow", "https://evil.com?a.example.org/", Level::Ask),
        ("https://*.example.org/*: allow", "https://evil.com#a.example.org/", Level::Ask),
        ("https://*.example.org/*: allow", "https://evil.com\\a.example.org/", Level::Ask),
        ("https://*.example.org/*: allow", "https://evil.com:1@b.example.org/", Level::Ask),
        ("https://*.example.org/*: allow", "https://a.example.org:8443/", Level::Ask),
        ("https://x.org:8443/*: allow", "https://x.org:8443/y", Level::Allow),
        ("https://x.org/public/*: allow", "https://x.org/public/..%2fprivate", Level::Ask),
        ("https://x.org/public/*: allow", "https://x.org/public/%2e%2e/private", Level::Ask),
        ("https://x.org: allow", "https://x.org/y", Level::Ask),
        ("https://x.org/*: allow", "no address", Level::Ask),
    ] {
        assert_eq!(fetch(&format!("web_fetch {rule}"), address), level, "{rule} {address}");
    }
}

#[test]
fn what_is_remembered_is_one_call() {
    for (arguments, level) in [("{\"url\":\"u\"}", Level::Allow), ("{\"method\":\"POST\",\"url\":\"u\"}", Level::Ask)] {
        let call = Call { tool: "http_request", subject: Subject::Address("u"), text: "u", arguments, inside: &inside };
        let rules = ["http_request: ask", "http_request == {\"url\":\"u\"}: allow"];
        assert_eq!(policy(&rules).judge(&call).level, level, "{arguments}");
    }
}

#[test]
fn which_rule_counts() {
    for (rules, line, level) in [
        (&["exec: deny"][..], "ls", Level::Deny),
        (&["exec: deny", "exec: allow"], "ls", Level::Deny),
        (&["exec: deny", "exec ls: allow"], "ls", Level::Allow),
        (&["exec ls: allow", "exec: deny"], "ls", Level::Allow),
        (&["exec: deny", "exec ls: allow"], "ls; pwd", Level::Deny),
        (&["exec: ask", "exec: allow"], "ls", Level::Allow),
        (&["exec: allow", "exec: ask"], "ls", Level::Ask),
        (&["*: ask"], "ls", Level::Ask),
        (&["*: ask", "exec: allow"], "ls", Level::Allow),
        (&["ex*: ask"], "ls", Level::Ask),
        (&["python: deny"], "ls", Level::Allow),
        (&["exec ls *: ask", "exec ls -l: allow"], "ls -l", Level::Allow),
        (&["exec ls -l: allow", "exec ls *: ask"], "ls -l", Level::Ask),
        (&["exec ls *: deny", "exec ls -l: allow"], "ls -l", Level::Deny),
        (&["exec ls: allow"], "pwd", Level::Ask),
        (&["exec = rm -rf /v: allow"], "rm -rf /v", Level::Allow),
        (&["exec: ask", "exec = echo $x: allow"], "echo $x", Level::Allow),
        (&["exec: ask", "exec = echo $x: allow"], "echo $y", Level::Ask),
        (&["exec rm *: deny", "exec = rm -rf /v: allow"], "rm -rf /v", Level::Deny),
        (&["exec = rm -rf /v: allow", "dangerous: deny"], "rm -rf /v", Level::Deny),
        (&["dangerous: deny", "exec = rm -rf /v: allow"], "rm -rf /v", Level::Deny),
        (&["exec: allow", "exec = ls: deny"], "ls", Level::Deny),
        (&["exec = ls: allow"], "pwd", Level::Allow),
    ] {
        assert_eq!(exec(rules, line), level, "{rules:?}: {line}");
    }
}

#[test]
fn paths_and_addresses() {
    let rules = [
        "write_file docs/**: allow",
        "write_file docs/secret*: deny",
        "read_file /etc/**: deny",
        "web_fetch https://docs.rs/*: allow",
        "web_fetch http://*: deny",
        "mcp__g__*: ask",
    ];
    let path = |relative: Option<&'static str>, absolute: &'static str| Subject::Path { relative, absolute };
    for (tool, subject, level) in [
        ("write_file", path(Some("docs/a/b.md"), "/w/docs/a/b.md"), Level::Allow),
        ("write_file", path(Some("docs/secret.md"), "/w/docs/secret.md"), Level::Deny),
        ("write_file", path(Some("src/a.rs"), "/w/src/a.rs"), Level::Ask),
        ("write_file", path(None, "/docs/a"), Level::Ask),
        ("write_file", Subject::Unclear, Level::Ask),
        ("edit_file", path(Some("src/a.rs"), "/w/src/a.rs"), Level::Allow),
        ("read_file", path(None, "/etc/passwd"), Level::Deny),
        ("read_file", path(None, "/etcetera"), Level::Allow),
        ("read_file", path(Some("etc/x"), "/w/etc/x"), Level::Allow),
        ("read_file", Subject::Unclear, Level::Ask),
        ("web_fetch", Subject::Address("https://docs.rs/x"), Level::Allow),
        ("web_fetch", Subject::Address("https://docs.rs.evil.example/x"), Level::Ask),
        ("web_fetch", Subject::Address("https://docs.rs@evil.example/"), Level::Ask),
        ("web_fetch", Subject::Address("http://x/"), Level::Deny),
        ("web_fetch", Subject::Address("HTTP://x/"), Level::Deny),
        ("mcp__g__issue", Subject::Other, Level::Ask),
        ("mcp__h__issue", Subject::Other, Level::Allow),
    ] {
        let call = Call { tool, subject, text: "", arguments: "", inside: &inside };
        assert_eq!(policy(&rules).judge(&call).level, level, "{tool}");
    }
}

#[test]
fn a_delegate_is_under_every_policy() {
    let call = Call { tool: "exec", subject: Subject::Command("ls"), text: "ls", arguments: "", inside: &inside };
    for (own, above, level) in [
        ("exec: allow", "exec: ask", Level::Ask),
        ("exec: ask", "exec: allow", Level::Ask),
        ("exec: allow", "exec: deny", Level::Deny),
        ("exec: allow", "exec: allow", Level::Allow),
    ] {
        assert_eq!(judge(&[policy(&[own]), policy(&[above])], &call).level, level, "{own} under {above}");
    }
    assert_eq!(judge(&[], &call).level, Level::Allow);
}

#[test]
fn bad_rules_say_what_is_wrong() {
    for (rule, says) in [
        ("", "must be \"TOOL: LEVEL\""),
        ("exec", "must be \"TOOL: LEVEL\""),
        ("exec: maybe", "has the level \"maybe\"; there is allow, ask, deny"),
        ("exec: Ask", "has the level \"Ask\""),
        (": ask", "must begin with a tool's name"),
        ("ex.ec: ask", "must begin with a tool's name"),
        ("exec $X: ask", "must hold one command"),
        ("exec a; b: ask", "must hold one command"),
        ("exec a > b: ask", "must hold one command"),
        ("exec 'a: ask", "must hold one command"),
        ("exec A=1 b: allow", "must hold one command"),
        ("web_fetch https://a@b/*: allow", "must hold an address"),
        ("write_file [: ask", "has a bad glob"),
        ("python x: ask", "has a pattern; only rules of exec"),
        ("mcp__a__b x: ask", "has a pattern"),
    ] {
        let why = Policy::parse(&[rule.to_owned()]).unwrap_err();
        assert!(why.contains(says) && why.contains(&rule.escape_debug().to_string()), "{rule}: {why}");
    }
}

proptest! {
    #[test]
    fn what_is_quoted_trips_nothing(text in "[ -~]{0,40}", at in 0..3_usize) {
        let dangers = ["rm -rf /", "mkfs /dev/sda", "cat x > /dev/sda; reboot"];
        let text = format!("{text}{}{text}", dangers[at]).replace('\'', "");
        for line in [format!("echo '{text}'"), format!("git commit -m '{text}' -m '{text}'")] {
            prop_assert!(exec(&[], &line) == Level::Allow, "{line}");
        }
    }

    #[test]
    fn any_text_is_read(text in "[a-z'\"$`(){}<>|&;\\\\\n #*~=-]{0,60}") {
        let level = exec(&["exec git push *: deny"], &text);
        // Whatever stands before it, a command behind a new line is seen, unless a quote or a text is still open there.
        let after = format!("{text}\ngit push\n");
        let read = super::commands::read(&after);
        let seen = read.commands.iter().any(|command| command.name() == "git");
        prop_assert!(seen || read.obscure.is_some() || text.contains(['\'', '"', '`', '\\', '<', '#']), "{text:?} {level:?}");
    }
}

#[test]
fn deep_nesting_ends() {
    for piece in ["$(", "`", "(", "${x:-", "\"$(", "$((", "<(", "sh -c \"", "\"${x:-\""] {
        let line = piece.repeat(20_000);
        assert_eq!(exec(&["exec git push *: deny"], &line), Level::Ask, "{piece}");
    }
}

#[test]
fn long_lines_are_read() {
    let words = "a ".repeat(300_000);
    all(&["exec: ask", "exec a *: allow"], Level::Allow, &[&words]);
    all(&["exec: ask", "exec a * b: allow", "exec * c *: deny"], Level::Ask, &[&words]);
    all(&["exec b: ask"], Level::Allow, &["a;".repeat(100_000).as_str()]);
    all(&["exec b: ask"], Level::Ask, &["env ".repeat(100_000).as_str()]);
}
