//! Addresses of the web in rules: matched piece by piece, as they are asked for and not as they are spelled.

use url::{Host, Url};

use super::rules::{Means, fits};

/// A pattern of addresses.
#[derive(Debug, Clone)]
pub(super) struct Address {
    scheme: String,
    host: String,
    port: Option<String>,
    /// What follows the host, if the pattern says that.
    rest: Option<String>,
}

impl Address {
    /// Reads a pattern; `*` stands for any text within the scheme, the host, or what follows.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (scheme, text) = text.split_once("://").unwrap_or(("*", text));
        let (host, rest) = text.split_at(text.find(['/', '?', '#']).unwrap_or(text.len()));
        if host.is_empty() || host.contains(['@', '\\', ' ']) {
            return Err("must hold an address: SCHEME://HOST/PATH, with * for any text".into());
        }
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port.to_owned())),
            _ => (host, None),
        };
        let rest = if rest.is_empty() || rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
        let rest = (!rest.is_empty()).then_some(rest);
        Ok(Self { scheme: scheme.to_lowercase(), host: name(host), port, rest })
    }

    /// Tells how surely it means an address; `allows`: it says what is allowed, and so means what stands there only.
    pub(super) fn means(&self, address: &str, allows: bool) -> Means {
        let unknown = if allows { Means::No } else { Means::Perhaps };
        let Ok(url) = Url::parse(address) else { return unknown };
        let Some(host) = url.host_str() else { return unknown };
        let port = url.port_or_known_default().map(|port| port.to_string()).unwrap_or_default();
        let is_port = match &self.port {
            Some(pattern) => fits(pattern, &port),
            None => !allows || url.port().is_none(),
        };
        if !is_port || !fits(&self.scheme, url.scheme()) || !fits(&self.host, host.trim_end_matches('.')) {
            return Means::No;
        }
        let rest = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let pattern = self.rest.as_deref().unwrap_or(if allows && !self.host.ends_with('*') { "/" } else { "*" });
        match () {
            () if allows && is_odd(&url) => Means::No,
            () if fits(pattern, &rest) => Means::Surely,
            () if allows => Means::No,
            () if fits(&decoded(pattern), &decoded(&rest)) => Means::Surely,
            () if fits(&decoded(pattern).to_lowercase(), &decoded(&rest).to_lowercase()) => Means::Perhaps,
            () => Means::No,
        }
    }
}

/// Returns a host as addresses that were read have it.
fn name(host: &str) -> String {
    let host = host.trim_end_matches('.').to_lowercase();
    if host.contains('*') { host } else { Host::parse(&host).map_or(host, |host| host.to_string()) }
}

/// Tells whether it names somebody, or a way up that a server may take.
fn is_odd(url: &Url) -> bool {
    let named = !url.username().is_empty() || url.password().is_some();
    named || decoded(url.path()).split(['/', '\\']).any(|part| part == "..")
}

/// Returns a text with what is written as `%41` replaced.
fn decoded(text: &str) -> String {
    let digit = |at: Option<&u8>| at.and_then(|byte| char::from(*byte).to_digit(16));
    let (bytes, mut all, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let code = digit(bytes.get(at + 1)).zip(digit(bytes.get(at + 2))).filter(|_| *byte == b'%');
        let code = code.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        all.push(code.unwrap_or(*byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&all).into_owned()
}
