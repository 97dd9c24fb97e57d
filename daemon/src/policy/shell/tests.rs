use super::{Item, read};

/// Shows what was read: words between `[]`, `?` for what is not certain, shells of their own in parentheses.
fn shown(line: &str) -> String {
    let script = read(line);
    let mut text = String::new();
    for item in &script.items {
        match item {
            Item::Enter => text.push('('),
            Item::Leave => text.push(')'),
            Item::Run(simple) => {
                let words: Vec<_> = simple.words.iter().map(|word| word.text.replace('\0', "?")).collect();
                text.extend(["[", &words.join("|"), "]", if simple.alters { "!" } else { "" }]);
            }
        }
    }
    text
}

#[test]
fn lines_come_apart_as_a_shell_takes_them() {
    for (line, expected) in [
        ("a b  c", "[a|b|c]"),
        ("a 'b c' \"d e\"f\\ g", "[a|b c|d ef g]"),
        ("a '' \"\"", "[a||]"),
        ("a;b&c&&d||e|f|&g\nh", "[a][b][c][d][e][f][g][h]"),
        ("a \\\nb", "[a|b]"),
        ("a\\\nb", "[ab]"),
        ("a \"\\$x \\a\"", "[a|$x \\a]"),
        ("a $x ${y:-z} $1 $", "[a|?|?|?|?]"),
        ("a $(b c) d", "([b|c])[a|?|d]"),
        ("a \"$(b \"c d\")\"", "([b|c d])[a|?]"),
        ("a `b \\`c\\``", "(([c])[b|?])[a|?]"),
        ("(a; b) | c", "([a][b])[c]"),
        ("{ a; }; b", "[a][b]"),
        ("! a", "[a]"),
        ("a >f 2>&1 <g b", "[a|b]!"),
        ("a 2 >f", "[a|2]!"),
        ("X=1 Y=$(b) a c=d", "([b])[a|c=d]!"),
        ("X=1", "[]!"),
        ("a <<E b\nrm $(x)\nE\nc", "[a|b]!([x])()".replace("([x])()", "(([x]))[c]").as_str()),
        ("a <<'E'\n$(x)\nE\nc", "[a]![c]"),
        ("a <<A <<B\n1\nA\n2\nB\nc", "[a]!()()[c]"),
        ("a <<< \"b $(c)\"", "([c])[a]!"),
        ("a <(b) >(c)", "([b])([c])[a|?|?]"),
        ("a # b\nc#d", "[a][c#d]"),
        ("if a; then b; else c; fi", "[a][b][c]"),
        ("$((1 + $(a)))", "([a])[?]"),
        ("a{b,c} {} {", "[a{b,c}|{}|{]"),
        ("  \n\n;", ""),
    ] {
        assert_eq!(shown(line), expected, "{line}");
    }
}

#[test]
fn what_is_not_certain_is_said() {
    for line in [
        "'a",
        "\"a",
        "`a",
        "$(a",
        "(a",
        "a)",
        "a <<E\nb",
        "${a",
        "f() { a; }",
        "case a in b) c;; esac",
        "a\u{1}b",
        "a\rb",
        "for a in b; do c; done",
        "[[ a ]]",
        "((a))",
        "$'a'",
        "if a; then b; fi",
    ] {
        assert!(read(line).obscure.is_some(), "{line}");
    }
    for line in ["a", "a | b && (c; d)", "a \"$(b)\" > c", "X=1 a", "a <<E\nb\nE", "{ a; }"] {
        assert_eq!(read(line).obscure, None, "{line}");
    }
}
