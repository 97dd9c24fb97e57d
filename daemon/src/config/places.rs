//! Where the socket, the state and the config file are: the system's places for root, a person's own otherwise.

use std::fs::DirBuilder;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::ConfigError;
use super::env::Env;

/// The longest path that a socket address holds, its closing NUL not counted.
const MAX_SOCKET_PATH: usize = 107;
const ROOT: u32 = 0;
const SYSTEM_CONFIG: &str = "/etc/nanod/nanod.toml";

/// Places that were named on the command line.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--socket`.
    pub socket: Option<PathBuf>,
    /// `--state-dir`.
    pub state_dir: Option<PathBuf>,
    /// `--config`.
    pub config: Option<PathBuf>,
}

/// Where things are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The socket; its folder is the runtime folder.
    pub socket: PathBuf,
    /// The store, workspaces and spilled output.
    pub state_dir: PathBuf,
    /// The config file.
    pub config: PathBuf,
    /// Whether somebody named a config file other than the system's: then it must exist.
    pub config_named: bool,
}

impl Places {
    /// Finds the places: a flag wins over its variable, that over the usual place.
    pub fn find(env: &Env, flags: &Flags) -> Result<Self, ConfigError> {
        let named = |flag: &Option<PathBuf>, variable| flag.clone().or_else(|| env.get(variable).map(PathBuf::from));
        let config = named(&flags.config, "NANO_CONFIG");
        // The service unit names the usual place, and a machine without a config file is a good one.
        let config_named = config.as_deref().is_some_and(|path| path != Path::new(SYSTEM_CONFIG));
        Ok(Self {
            socket: check_socket(named(&flags.socket, "NANO_SOCKET").map_or_else(|| usual_socket(env), Ok)?)?,
            state_dir: named(&flags.state_dir, "NANO_STATE_DIR").map_or_else(|| usual_state(env), Ok)?,
            config: config.map_or_else(|| usual_config(env), Ok)?,
            config_named,
        })
    }
}

/// Returns the folders of skills that need no config: the user's own, and the machine's.
pub fn skills(env: &Env) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let system = vec![PathBuf::from("/etc/nanod/skills")];
    if env.uid == ROOT {
        return (Vec::new(), system);
    }
    let config = env.folder("XDG_CONFIG_HOME").or_else(|| env.folder("HOME").map(|home| home.join(".config")));
    let agents = env.folder("HOME").map(|home| home.join(".agents/skills"));
    (config.map(|config| config.join("nanod/skills")).into_iter().chain(agents).collect(), system)
}

/// Makes the user's own folders that the daemon acts on, the config's and that of skills, where they are missing: only what
/// is there can be kept from commands. One that cannot be made cannot be made by a command either.
pub fn make_own(config: &Path, env: &Env) {
    let Some(home) = env.folder("HOME").filter(|home| env.uid != ROOT && home.is_dir()) else { return };
    let of_config = config.parent().filter(|folder| folder.ends_with("nanod"));
    for folder in of_config.into_iter().map(Path::to_owned).chain([home.join(".agents/skills")]) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).ok();
    }
}

fn usual_socket(env: &Env) -> Result<PathBuf, ConfigError> {
    let runtime = if env.uid == ROOT { Some(PathBuf::from("/run")) } else { own_runtime(env) };
    runtime.map(|folder| folder.join("nanod/nanod.sock")).ok_or_else(|| {
        ConfigError::new(format!(
            "there is no place for the socket: XDG_RUNTIME_DIR is not set and /run/user/{} is not ours; \
             give --socket or set NANO_SOCKET",
            env.uid
        ))
    })
}

fn own_runtime(env: &Env) -> Option<PathBuf> {
    let login = || Some(PathBuf::from(format!("/run/user/{}", env.uid))).filter(|path| is_own_folder(path, env.uid));
    env.folder("XDG_RUNTIME_DIR").or_else(login)
}

fn is_own_folder(path: &Path, uid: u32) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == uid)
}

fn usual_state(env: &Env) -> Result<PathBuf, ConfigError> {
    if env.uid != ROOT {
        let own = own_base(env, "XDG_STATE_HOME", ".local/state", "--state-dir or set NANO_STATE_DIR")?;
        return Ok(own.join("nanod"));
    }
    // systemd lists several folders with colons; the first is the service's own.
    let given = env.get("STATE_DIRECTORY").and_then(|list| list.split(':').find(|one| one.starts_with('/')));
    Ok(PathBuf::from(given.unwrap_or("/var/lib/nanod")))
}

fn usual_config(env: &Env) -> Result<PathBuf, ConfigError> {
    if env.uid == ROOT {
        return Ok(PathBuf::from(SYSTEM_CONFIG));
    }
    Ok(own_base(env, "XDG_CONFIG_HOME", ".config", "--config or set NANO_CONFIG")?.join("nanod/nanod.toml"))
}

fn own_base(env: &Env, variable: &str, below_home: &str, instead: &str) -> Result<PathBuf, ConfigError> {
    let home = || env.folder("HOME").map(|home| home.join(below_home));
    env.folder(variable)
        .or_else(home)
        .ok_or_else(|| ConfigError::new(format!("neither {variable} nor HOME is an absolute path; give {instead}")))
}

fn check_socket(path: PathBuf) -> Result<PathBuf, ConfigError> {
    let bytes = path.as_os_str().as_bytes();
    let wrong =
        |why: String| Err(ConfigError::new(format!("socket {}: {why}", path.display().to_string().escape_debug())));
    if bytes.starts_with(b"@") || bytes.contains(&0) {
        return wrong("abstract names are not supported: anyone could take them; give a path".into());
    }
    if bytes.is_empty() || bytes.ends_with(b"/") {
        return wrong("this is not a file's path".into());
    }
    if bytes.len() > MAX_SOCKET_PATH {
        return wrong(format!("{} bytes are too long, {MAX_SOCKET_PATH} fit; give a shorter --socket", bytes.len()));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn flags(socket: Option<&str>, state: Option<&str>, config: Option<&str>) -> Flags {
        let path = |text: Option<&str>| text.map(PathBuf::from);
        Flags { socket: path(socket), state_dir: path(state), config: path(config) }
    }

    fn found(env: &Env, flags: &Flags) -> (String, String, String, bool) {
        let places = Places::find(env, flags).unwrap();
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        (text(places.socket), text(places.state_dir), text(places.config), places.config_named)
    }

    /// Uid, variables, flags, and what is found.
    type Row<'a> = (u32, &'a [(&'a str, &'a str)], Flags, (&'a str, &'a str, &'a str, bool));

    #[test]
    fn the_table_of_places() {
        // A uid nobody has: /run/user/UID is not there.
        let person = [("HOME", "/home/p"), ("XDG_RUNTIME_DIR", "/rt")];
        let rows: &[Row<'_>] = &[
            (0, &[], Flags::default(), ("/run/nanod/nanod.sock", "/var/lib/nanod", "/etc/nanod/nanod.toml", false)),
            (
                0,
                &[("STATE_DIRECTORY", "/var/lib/a:/var/lib/b"), ("XDG_RUNTIME_DIR", "/rt"), ("XDG_STATE_HOME", "/s")],
                Flags::default(),
                ("/run/nanod/nanod.sock", "/var/lib/a", "/etc/nanod/nanod.toml", false),
            ),
            (
                4_000_000_000,
                &person,
                Flags::default(),
                ("/rt/nanod/nanod.sock", "/home/p/.local/state/nanod", "/home/p/.config/nanod/nanod.toml", false),
            ),
            (
                4_000_000_000,
                &[
                    ("XDG_RUNTIME_DIR", "/rt"),
                    ("XDG_STATE_HOME", "/s"),
                    ("XDG_CONFIG_HOME", "/c"),
                    ("STATE_DIRECTORY", "/no"),
                ],
                Flags::default(),
                ("/rt/nanod/nanod.sock", "/s/nanod", "/c/nanod/nanod.toml", false),
            ),
            (
                4_000_000_000,
                &[("NANO_SOCKET", "/e/s"), ("NANO_STATE_DIR", "/e/d"), ("NANO_CONFIG", "/e/c")],
                Flags::default(),
                ("/e/s", "/e/d", "/e/c", true),
            ),
            (
                0,
                &[("NANO_SOCKET", "/e/s"), ("NANO_STATE_DIR", "/e/d"), ("NANO_CONFIG", "")],
                flags(Some("/f/s"), None, None),
                ("/f/s", "/e/d", "/etc/nanod/nanod.toml", false),
            ),
            (
                4_000_000_000,
                &[
                    ("NANO_SOCKET", "/run/nanod/nanod.sock"),
                    ("NANO_STATE_DIR", "/var/lib/nanod"),
                    ("NANO_CONFIG", "/etc/nanod/nanod.toml"),
                ],
                Flags::default(),
                ("/run/nanod/nanod.sock", "/var/lib/nanod", "/etc/nanod/nanod.toml", false),
            ),
            (0, &[], flags(None, Some("/f/d"), Some("/f/c")), ("/run/nanod/nanod.sock", "/f/d", "/f/c", true)),
            (
                4_000_000_000,
                &[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/rt"), ("XDG_STATE_HOME", "relative"), ("XDG_CONFIG_HOME", "")],
                Flags::default(),
                ("/rt/nanod/nanod.sock", "/h/.local/state/nanod", "/h/.config/nanod/nanod.toml", false),
            ),
        ];
        for (uid, vars, flags, (socket, state, config, named)) in rows {
            let expected = ((*socket).to_owned(), (*state).to_owned(), (*config).to_owned(), *named);
            assert_eq!(found(&Env::of(*uid, vars), flags), expected, "{vars:?}");
        }
    }

    #[test]
    fn no_place_is_an_error_that_says_what_to_set() {
        for (vars, word) in [
            (&[("HOME", "/h")][..], "NANO_SOCKET"),
            (&[("XDG_RUNTIME_DIR", "/rt")], "NANO_STATE_DIR"),
            (&[("XDG_RUNTIME_DIR", "/rt"), ("XDG_STATE_HOME", "/s")], "NANO_CONFIG"),
        ] {
            let error = Places::find(&Env::of(4_000_000_000, vars), &Flags::default()).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn socket_paths() {
        let long = |n: usize| format!("/{}", "s".repeat(n - 1));
        for (path, word) in [
            (long(107).as_str(), ""),
            (&long(108), "108 bytes"),
            ("@nanod", "abstract"),
            ("\0nanod", "abstract"),
            ("/run/\0", "abstract"),
            ("/run/", "not a file"),
            ("./s", ""),
        ] {
            let outcome = Places::find(&Env::of(0, &[]), &flags(Some(path), None, None));
            match outcome {
                Ok(_) => assert_eq!(word, "", "{path}"),
                Err(error) => assert!(!word.is_empty() && error.to_string().contains(word), "{path}: {error}"),
            }
        }
    }

    #[test]
    fn what_the_daemon_acts_on_is_there_before_a_command_is() {
        let ground = tempfile::tempdir().unwrap();
        let home = ground.path().join("home");
        let made = |uid: u32, home: &Path, config: &Path| {
            make_own(config, &Env::of(uid, &[("HOME", home.to_str().unwrap())]));
            [home.join(".config/nanod"), home.join(".agents/skills")].map(|folder| folder.is_dir())
        };
        let config = home.join(".config/nanod/nanod.toml");
        assert_eq!(made(1000, &home, &config), [false; 2], "a home that is not there is nobody's");
        std::fs::create_dir(&home).unwrap();
        assert_eq!(made(ROOT, &home, Path::new(SYSTEM_CONFIG)), [false; 2], "root's lie in /etc");
        assert_eq!(made(1000, &home, &home.join("else/x.toml")), [false, true], "a folder of its own alone");
        assert!(!home.join("else").exists());
        assert_eq!(made(1000, &home, &config), [true; 2]);
        let mode = home.join(".config/nanod").metadata().unwrap().mode();
        assert_eq!((mode & 0o777, config.exists()), (0o700, false));
        assert_eq!(made(1000, &home, &config), [true; 2], "again");
    }
}
