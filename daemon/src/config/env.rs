//! The environment, read once. No other module asks the operating system for a variable.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What child processes of tools may see of the environment, besides `LC_*`.
const FOR_TOOLS: [&str; 9] = ["PATH", "HOME", "LANG", "TERM", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR"];

/// The variables and the user that the daemon was started with.
#[derive(Clone)]
pub struct Env {
    vars: BTreeMap<String, String>,
    /// The effective user id.
    pub uid: u32,
}

impl Env {
    /// Reads the process's environment; a variable that is not UTF-8 counts as absent.
    #[expect(clippy::disallowed_methods, reason = "its home")]
    pub fn capture() -> Self {
        let vars = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { vars, uid: rustix::process::geteuid().as_raw() }
    }

    /// Makes an environment of exactly `vars`.
    pub fn of(uid: u32, vars: &[(&str, &str)]) -> Self {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { vars, uid }
    }

    /// Returns a variable's value; an empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns a variable that names an absolute path; the base directory rules ignore any other.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Returns what a tool's process may see: an allow-list, so that no key and no service variable leaks.
    pub fn for_tools(&self) -> Vec<(String, String)> {
        let passes = |name: &str| FOR_TOOLS.contains(&name) || name.starts_with("LC_");
        self.vars.iter().filter(|(name, _)| passes(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
    }
}

impl std::fmt::Debug for Env {
    /// Prints names alone: values may be keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Env").field("uid", &self.uid).field("vars", &self.vars.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Env;

    #[test]
    fn tools_see_the_allow_list_alone() {
        let env = Env::of(
            1000,
            &[
                ("PATH", "/bin"),
                ("LC_ALL", "C"),
                ("LANG", ""),
                ("OPENAI_API_KEY", "sk"),
                ("NOTIFY_SOCKET", "/x"),
                ("LC", "no"),
                ("PATHS", "no"),
            ],
        );
        let seen = env.for_tools();
        let names: Vec<_> = seen.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["LANG", "LC_ALL", "PATH"]);
        assert!(!format!("{env:?}").contains("sk"), "{env:?}");
        assert_eq!(env.get("LANG"), None);
    }
}
