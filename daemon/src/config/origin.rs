//! Which server an address means: a key for one must not go to another.

use url::Url;

/// Tells whether two addresses have the same scheme, host and port, so that a key for one may go to the other.
pub fn is_same_origin(one: &str, other: &str) -> bool {
    let origin = |url: &str| Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    origin(one).is_some_and(|one| origin(other).is_some_and(|other| one.origin() == other.origin()))
}

#[cfg(test)]
mod tests {
    use super::is_same_origin;

    #[test]
    fn origins() {
        for (one, other, expected) in [
            ("http://127.0.0.1:8114", "http://127.0.0.1:8114/", true),
            ("http://Bay.Example:80/v1", "HTTP://bay.example", true),
            ("https://bay.example:443", "https://bay.example", true),
            ("http://[::1]:8114", "http://[0:0:0:0:0:0:0:1]:8114", true),
            ("http://localhost:8114", "http://127.0.0.1:8114", false),
            ("http://127.0.0.1:8114", "http://127.0.0.1:8115", false),
            ("http://bay.example", "https://bay.example", false),
            ("http://bay.example", "http://bay.example.org", false),
            ("http://bay.example@evil.example", "http://bay.example", false),
            ("", "", false),
            ("file:///x", "file:///x", false),
        ] {
            assert_eq!(is_same_origin(one, other), expected, "{one} {other}");
        }
    }
}
