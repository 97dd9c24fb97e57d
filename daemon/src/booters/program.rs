//! Programs of this machine.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Where programs are sought if nothing says so.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Tells whether a file can be run.
pub fn runs(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

/// Returns where the program of this name is, which is sought in the folders of `path`.
pub fn on_path(name: &str, path: &str) -> Option<PathBuf> {
    // A relative folder would be another one for each that seeks.
    path.split(':').map(|folder| Path::new(folder).join(name)).find(|file| file.is_absolute() && runs(file))
}

/// Returns the name of a signal.
pub fn signal_name(number: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(number - 1).ok().and_then(|at| NAMES.get(at));
    name.map_or_else(|| format!("signal {number}"), |name| format!("SIG{name}"))
}

#[cfg(test)]
mod tests {
    use super::on_path;

    #[test]
    fn programs_are_found_in_absolute_folders() {
        for (name, path, found) in [
            ("sh", "/nowhere:/bin", true),
            ("sh", "", false),
            ("sh", "bin:.", false),
            ("no-such-program", "/bin", false),
            ("passwd", "/etc", false),
        ] {
            assert_eq!(on_path(name, path).is_some(), found, "{name} {path}");
        }
    }
}
