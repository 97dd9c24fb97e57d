//! What rules on commands cover.

use super::*;

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
        "git push origin $X",
        "git push origin \"$(git branch --show-current)\"",
        "git push origin \"$X\" main $Y",
        "git push -- *.txt ~",
        "env git push origin $X",
        "linux64 git push",
        "setarch x86_64 git push",
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
fn no_command_is_swallowed() {
    let lines = [
        "echo $((true); touch p)",
        "echo $((x + $(touch p)))",
        "((true); touch p)",
        "((x<<2))\ntouch p\n2",
        "echo $[1<<2]\ntouch p\n2]",
        "ls | xargs touch",
        "env touch a $x",
        "touch a $x",
        "touch a *.o ~/x",
        "echo $(touch p)",
    ];
    all(&["exec touch *: deny"], Level::Deny, &lines);
    all(&["exec: allow", "exec touch *: ask"], Level::Ask, &lines);
    // What shells read in several ways, or nobody can read here, is asked about at least.
    let unsure = [
        "echo ${x:-'}'}; touch p # '",
        "echo ${x:-'\"'}; touch p # \"}",
        "echo \"${x:-'}\"'}\"; touch p # '",
        "ls | xargs -I{} sh -c {}",
        "ls | xargs -I % %",
    ];
    all(&["exec touch *: deny"], Level::Ask, &unsure);
    all(&["exec: allow", "exec touch *: ask"], Level::Ask, &unsure);
    all(&["exec touch: deny"], Level::Ask, &["$x", "touch $x", "touch $(x) $y"]);
    all(&["exec touch: deny"], Level::Deny, &["touch"]);
    all(&["exec touch: deny"], Level::Allow, &["touch a", "touch a $x", "echo touch"]);
    let others = ["echo $((1 + (2))) touch", "x=$((1)); echo ${x%.*} ${x:-a}", "touchy a $x"];
    all(&["exec touch *: deny"], Level::Allow, &others);
}
