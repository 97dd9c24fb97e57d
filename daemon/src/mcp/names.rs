//! Names of servers' tools: as a model may call them, whatever the server calls them.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// The longest name that models' servers take.
const LONGEST: usize = 64;
/// How much of a hash tells two names apart.
const HASH: usize = 7;

/// Returns what begins the names of a server's tools.
pub fn prefix(server: &str) -> String {
    format!("mcp__{server}__")
}

/// Returns the names for a server's tools, in the order of `raw`. Two that would have one name get a hash each, so that
/// a name depends on what there is and not on its order.
pub fn model_names(server: &str, raw: &[&str]) -> Vec<String> {
    let plain: Vec<String> = raw.iter().map(|raw| plain(server, raw)).collect();
    let twice = |at: usize| {
        plain
            .iter()
            .zip(raw)
            .enumerate()
            .any(|(other, (name, one))| other != at && Some(name) == plain.get(at) && Some(one) != raw.get(at))
    };
    let named = plain.iter().zip(raw).enumerate();
    named.map(|(at, (name, raw))| if twice(at) { hashed(server, raw, name) } else { name.clone() }).collect()
}

fn plain(server: &str, raw: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let tool: String = raw.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    let mut name = prefix(server) + &tool;
    name.truncate(LONGEST);
    name
}

fn hashed(server: &str, raw: &str, name: &str) -> String {
    let hash = HEXLOWER.encode(&Sha256::digest(format!("{server}\n{raw}")));
    let kept = name.get(..name.len().min(LONGEST - HASH - 1)).unwrap_or(name);
    format!("{kept}_{}", hash.get(..HASH).unwrap_or(&hash))
}

#[cfg(test)]
mod tests {
    use super::model_names;

    #[test]
    fn names() {
        let long = "x".repeat(80);
        for (raw, expected) in [
            ("echo", "mcp__s__echo"),
            ("a.b/c:d e", "mcp__s__a_b_c_d_e"),
            ("é🦀", "mcp__s____"),
            ("A-b_9", "mcp__s__A-b_9"),
            (&long, &format!("mcp__s__{}", "x".repeat(56))),
        ] {
            assert_eq!(model_names("s", &[raw]), [expected]);
        }
    }

    #[test]
    fn names_that_would_be_one_differ_in_any_order() {
        let (one, two) = (format!("{}a", "x".repeat(60)), format!("{}b", "x".repeat(60)));
        let raw = ["a.b", "a_b", "c", one.as_str(), two.as_str()];
        let names = model_names("s", &raw);
        let mut turned = raw;
        turned.reverse();
        let mut back = model_names("s", &turned);
        back.reverse();
        assert_eq!(names, back);
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), raw.len(), "{names:?}");
        assert_eq!(names.get(2).map(String::as_str), Some("mcp__s__c"));
        assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
        assert_ne!(
            model_names("t", &["a.b", "a_b"]).first().map(|name| name.replace("__t__", "__s__")),
            names.first().cloned()
        );
    }
}
