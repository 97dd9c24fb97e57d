//! `[web]`, `[web_search]` and `[http_request]`: how far the daemon's own web tools reach.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::{Host, Url};

use super::Secret;
use super::around::{Around, secret};
use super::reader::Section;
use super::sections::words;

/// What Brave's own server is asked at.
const BRAVE: &str = "https://api.search.brave.com/res/v1/web/search";
/// What a request may be, where it is allowed.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// How far the web tools reach.
#[derive(Debug, Clone, Default)]
pub struct WebConfig {
    /// `web.allow`: what may be reached although it is not public.
    pub allow: Vec<Allowed>,
    /// `[web_search]`.
    pub search: Option<SearchConfig>,
    /// `[http_request]`.
    pub request: Option<RequestConfig>,
}

/// `[web_search]`.
#[derive(Debug, Clone)]
pub struct SearchConfig {
    /// How the server is spoken to.
    pub provider: Provider,
    /// The address that is asked.
    pub url: String,
    /// The key.
    pub api_key: Option<Secret>,
}

/// `[http_request]`.
#[derive(Debug, Clone)]
pub struct RequestConfig {
    /// Where requests may go.
    pub hosts: Vec<Allowed>,
    /// What they may be, in capitals.
    pub methods: Vec<String>,
}

/// How a search server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// The JSON of a `SearXNG` instance.
    Searxng,
    /// The API of Brave Search.
    Brave,
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "searxng" => Ok(Self::Searxng),
            "brave" => Ok(Self::Brave),
            _ => Err(format!("\"{}\" is none of searxng, brave", text.escape_debug())),
        }
    }
}

/// Hosts that a person named: one by its name, or addresses; at one port, or at every one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    Name(String),
    /// Those that begin with so many bits of this one.
    Addresses(IpAddr, u8),
}

impl Allowed {
    fn address(address: IpAddr, port: Option<u16>) -> Self {
        Self { hosts: Hosts::Addresses(address, if address.is_ipv4() { 32 } else { 128 }), port }
    }

    /// Tells whether an address of the web has such a host. A name stands for itself, never for where it leads.
    pub fn fits(&self, url: &Url) -> bool {
        let host = match (url.host(), &self.hosts) {
            (Some(Host::Domain(name)), Hosts::Name(known)) => name.trim_end_matches('.') == known,
            (Some(Host::Ipv4(one)), Hosts::Addresses(range, bits)) => is_within(one.into(), *range, *bits),
            (Some(Host::Ipv6(one)), Hosts::Addresses(range, bits)) => is_within(one.into(), *range, *bits),
            _ => false,
        };
        host && self.port.is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

fn is_within(one: IpAddr, range: IpAddr, bits: u8) -> bool {
    let (one, range, width) = match (one, range) {
        (IpAddr::V4(one), IpAddr::V4(range)) => (u128::from(one.to_bits()), u128::from(range.to_bits()), 32),
        (IpAddr::V6(one), IpAddr::V6(range)) => (one.to_bits(), range.to_bits(), 128),
        _ => return false,
    };
    let rest = width - u32::from(bits);
    one.checked_shr(rest) == range.checked_shr(rest)
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "is no host such as wiki.intern, 10.1.2.3:8080 or 10.1.0.0/16".to_owned();
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.trim_matches(['[', ']']).parse().map_err(|_| wrong())?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?;
            return Ok(Self { hosts: Hosts::Addresses(address, bits), port: None });
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::address(address, None));
        }
        let plain = |one: char| !one.is_control() && !one.is_whitespace() && !"@/?#\\*".contains(one);
        let url = Url::parse(&format!("http://{text}")).ok().filter(|_| text.chars().all(plain)).ok_or_else(wrong)?;
        let port = match text.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((_, port)) => Some(port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?),
            None => None,
        };
        match url.host().ok_or_else(wrong)? {
            Host::Domain(name) => Ok(Self { hosts: Hosts::Name(name.trim_end_matches('.').to_owned()), port }),
            Host::Ipv4(address) => Ok(Self::address(address.into(), port)),
            Host::Ipv6(address) => Ok(Self::address(address.into(), port)),
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Name(name) => f.write_str(name)?,
            Hosts::Addresses(one @ IpAddr::V4(_), 32) => write!(f, "{one}")?,
            Hosts::Addresses(one @ IpAddr::V6(_), 128) => write!(f, "[{one}]")?,
            Hosts::Addresses(range, bits) => write!(f, "{range}/{bits}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Reads the three tables.
pub fn read(root: &Section<'_>, around: &Around<'_>) -> WebConfig {
    let allow = root.table("web", &["allow"]).and_then(|section| hosts(&section, "allow"));
    let request = root.table("http_request", &["hosts", "methods"]);
    let search = root.table("web_search", &words("provider base_url api_key api_key_env api_key_file"));
    WebConfig {
        allow: allow.unwrap_or_default(),
        request: request.and_then(|section| self::request(&section)),
        search: search.and_then(|section| self::search(&section, around)),
    }
}

fn hosts(section: &Section<'_>, key: &str) -> Option<Vec<Allowed>> {
    let read = |text: &String| {
        let wrong = |why| section.wrong_key(key, &format!("holds \"{}\", which {why}", text.escape_debug()));
        text.parse().map_err(wrong).ok()
    };
    Some(section.list(key)?.iter().filter_map(read).collect())
}

fn request(section: &Section<'_>) -> Option<RequestConfig> {
    if !section.has("hosts") {
        section.wrong("needs hosts");
    }
    let methods = section.list("methods").unwrap_or_else(|| vec!["GET".into()]);
    for method in methods.iter().filter(|one| !METHODS.contains(&one.as_str())) {
        let all = METHODS.join(", ");
        section.wrong_key("methods", &format!("holds \"{}\"; there are {all}", method.escape_debug()));
    }
    Some(RequestConfig { hosts: hosts(section, "hosts")?, methods })
}

fn search(section: &Section<'_>, around: &Around<'_>) -> Option<SearchConfig> {
    let (given, api_key) = (section.filled("base_url"), secret(section, "api_key", around));
    if given.is_some() && !section.has("provider") {
        section.wrong("needs provider: searxng or brave");
    }
    let provider = section.word("provider")?;
    if provider == Provider::Searxng && !section.has("base_url") {
        section.wrong("needs base_url, the address of the SearXNG instance");
    }
    if provider == Provider::Brave && !["api_key", "api_key_env", "api_key_file"].iter().any(|key| section.has(key)) {
        section.wrong("needs api_key, api_key_env or api_key_file");
    }
    let url = given.map_or_else(|| Some(BRAVE.to_owned()), |base| endpoint(section, provider, &base))?;
    Some(SearchConfig { provider, url, api_key })
}

/// Returns what is asked at a server: what the address says, and the usual path where it says none.
fn endpoint(section: &Section<'_>, provider: Provider, base: &str) -> Option<String> {
    let url = Url::parse(base).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    let Some(mut url) = url.filter(|url| url.username().is_empty() && url.password().is_none()) else {
        section.wrong_key("base_url", "must be an address such as \"https://search.example.com\", without a user");
        return None;
    };
    let path = url.path().trim_end_matches('/').to_owned();
    let path = match provider {
        Provider::Searxng if path.ends_with("/search") => path,
        Provider::Searxng => format!("{path}/search"),
        Provider::Brave if path.is_empty() => "/res/v1/web/search".into(),
        Provider::Brave if path.ends_with("/web/search") => path,
        Provider::Brave => format!("{path}/web/search"),
    };
    url.set_path(&path);
    Some(url.into())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use url::Url;

    use super::Allowed;

    #[test]
    fn hosts() {
        let fits = |list: &str, url: &str| {
            let host: Allowed = list.parse().unwrap();
            host.fits(&Url::parse(url).unwrap())
        };
        for (list, url, expected) in [
            ("wiki.intern", "http://wiki.intern/", true),
            ("Wiki.Intern.", "https://WIKI.intern.:8443/x", true),
            ("wiki.intern", "http://a.wiki.intern/", false),
            ("wiki.intern:8080", "http://wiki.intern:8080/", true),
            ("wiki.intern:80", "http://wiki.intern/", true),
            ("wiki.intern:443", "https://wiki.intern/", true),
            ("wiki.intern:80", "https://wiki.intern/", false),
            ("10.1.0.0/16", "http://10.1.255.1/", true),
            ("10.1.0.0/16", "http://10.2.0.1/", false),
            ("10.1.2.3", "http://10.1.2.3:99/", true),
            ("10.1.2.3", "http://10.1.2.4/", false),
            ("0.0.0.0/0", "http://255.1.1.1/", true),
            ("fd00::/8", "http://[fd12::1]/", true),
            ("fd00::/8", "http://[fe12::1]/", false),
            ("::/0", "http://[fe12::1]/", true),
            ("::1", "http://[::1]:99/", true),
            ("[::1]:99", "http://[::1]:99/", true),
            ("[::1]:98", "http://[::1]:99/", false),
            ("[::1]", "http://[::1]/", true),
            ("::/0", "http://1.2.3.4/", false),
        ] {
            assert_eq!(fits(list, url), expected, "{list} {url}");
        }
        for bad in [
            "",
            " ",
            "a b",
            "http://a",
            "a/b",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/x",
            "a:0",
            "a:65536",
            "a:x",
            "u@a",
            "*.a",
            "a?b",
            "a#b",
            "1.2.3.4.5",
            "[::1",
            "::1:",
        ] {
            assert!(bad.parse::<Allowed>().is_err(), "{bad}");
        }
    }
}
