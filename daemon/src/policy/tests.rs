#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::{prop_assert, proptest};

use super::{Call, Level, Policy, Subject, judge};

mod advice;
mod rules;

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
    // What looks like a computation within another one, and is none.
    for depth in [8, 9, 23, 24, 2000] {
        let line = ["$((a;".repeat(depth), ") )".repeat(depth)].concat();
        assert_eq!(exec(&["exec git push *: deny"], &line), Level::Ask, "{depth}");
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
