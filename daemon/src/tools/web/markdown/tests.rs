#![expect(clippy::unwrap_used, reason = "tests")]

use super::markdown;

#[test]
fn pages() {
    let base = "https://example.com/a/b".parse().unwrap();
    for (html, expected) in [
        ("", ""),
        ("plain", "plain"),
        ("<p>a  b\n c</p><p>d", "a b c\n\nd"),
        ("<h1>T</h1><h3>U <em>v</em></h3>x", "# T\n\n### U *v*\n\nx"),
        ("a<br>b<hr>c", "a\nb\n\n---\n\nc"),
        ("<b>a</b> <i> b </i><b></b><code>x &lt; y</code>", "**a** *b* `x < y`"),
        ("see <a href='c?x=1'>the <b>page</b></a>.", "see [the **page**](https://example.com/a/c?x=1)."),
        ("<a href='javascript:alert(1)'>j</a><a href='#x'>k</a><a href=/y></a>", "jk"),
        ("<img src=/i.png alt='a  b'><img src=x>", "![a b](https://example.com/i.png)"),
        ("<ul><li>a<li>b<ol><li>c</li><li>d</ol><li>e</ul>f", "- a\n- b\n  1. c\n  2. d\n- e\n\nf"),
        ("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc"),
        ("<pre>a\n  <b>b</b> &amp;</pre>c", "```\na\n  b &\n```\n\nc"),
        ("<table><tr><th>a<th>b<tr><td>1<td><p>2</p></table>x", "| a | b |\n| --- | --- |\n| 1 | 2 |\n\nx"),
        ("a<script>if (a < b) { '</p>' }</script><style>x{}</style><!-- c -->b", "ab"),
        ("<svg>a<svg>b</svg>c</svg>d<noscript>e</noscript>f", "df"),
        ("<div>a</div><div>b</div>", "a\nb"),
        ("a</b></a></ul></table></blockquote></pre>b", "a**\n\nb"),
    ] {
        assert_eq!(markdown(html, Some(&base)).text, expected, "{html}");
    }
    let page = markdown("<html><head><title> A\n b </title></head><body>c", None);
    assert_eq!((page.title.as_str(), page.text.as_str()), ("A b", "c"));
}

#[test]
fn a_page_that_grows_is_cut() {
    let text = markdown(&("<blockquote>".repeat(12) + &"<p>x".repeat(300_000)), None).text;
    assert!(text.len() < super::MOST + 1000 && text.ends_with("[the page goes on]"), "{}", text.len());
}

#[test]
fn hostile_pages_end_in_time_and_stay_small() {
    for piece in ["<div>", "<b>", "<ul><li>", "<blockquote>", "<table><tr><td>", "<a href=x>", "<p><b a=1>", "<svg>"] {
        let html = piece.repeat(20_000) + "x";
        let text = markdown(&html, None).text;
        assert!(text.len() < 4 * html.len() && (piece == "<svg>" || text.contains('x')), "{piece}: {}", text.len());
    }
    let many = (0..10_000).map(|n| format!("<b a={n}>")).collect::<Vec<_>>().concat() + &"<p>x".repeat(10_000);
    assert!(markdown(&many, None).text.len() < 2 * many.len());
}
