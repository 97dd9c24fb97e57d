//! What a failed command is told where the sandbox may be why: otherwise its author repairs the wrong thing.

use nano_protocol::session::Level;

use super::Ending;
use super::reach::Reach;

/// What programs print when the sandbox refuses something.
const TEXTS: [&str; 10] = [
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "permissionerror",
    "eacces",
    "eperm",
    "erofs",
    "invalid cross-device link",
    "resource busy",
    "ebusy",
];
/// What they print without a network.
const NETWORK: [&str; 6] = [
    "network is unreachable",
    "could not resolve",
    "temporary failure in name resolution",
    "name or service not known",
    "failed to lookup address",
    "couldn't connect to server",
];

/// Returns the output with a line behind it that names the sandbox, where it may have refused something.
pub fn noted(output: String, ending: &Ending, reach: Option<&Reach>) -> String {
    let Some(reach) = reach.filter(|reach| reach.level != Level::Host) else { return output };
    let lower = output.to_lowercase();
    let says = |texts: &[&str]| texts.iter().any(|text| lower.contains(text));
    let may_be = says(&TEXTS) || (!reach.has_network() && says(&NETWORK));
    if matches!(ending, Ending::Exited(0) | Ending::Running) || !may_be {
        return output;
    }
    let gap = if output.ends_with('\n') { "" } else { "\n" };
    format!("{output}{gap}[the sandbox (level {}) may have refused this: {}]\n", reach.level, reach.told())
}

#[cfg(test)]
mod tests {
    use nano_protocol::session::Level;

    use super::super::Ending;
    use super::super::reach::Reach;
    use super::noted;

    #[test]
    fn a_refusal_is_told_apart_from_a_failure() {
        use Level::{Host, ReadOnly, WorkspaceWrite};
        let failed = Ending::Exited(1);
        for (level, ending, output, expected) in [
            (WorkspaceWrite, &failed, "sh: /x: Permission denied\n", true),
            (WorkspaceWrite, &failed, "touch: cannot touch '/x': Read-only file system", true),
            (WorkspaceWrite, &failed, "mv: cannot move 'a' to 'b': Device or resource busy\n", true),
            (WorkspaceWrite, &failed, "mount: Operation not permitted\n", true),
            (WorkspaceWrite, &failed, "PermissionError: [Errno 13] Permission denied: '/x'\n", true),
            (WorkspaceWrite, &failed, "Error: EACCES: /x\n", true),
            (WorkspaceWrite, &Ending::Signalled("SIGABRT".into()), "EPERM\n", true),
            (WorkspaceWrite, &failed, "test failed: 1 != 2\n", false),
            (WorkspaceWrite, &failed, "curl: (7) Network is unreachable\n", false),
            (ReadOnly, &failed, "curl: (6) Could not resolve host: example.org\n", true),
            (WorkspaceWrite, &Ending::Exited(0), "find: /root: Permission denied\n", false),
            (WorkspaceWrite, &Ending::Running, "Permission denied\n", false),
            (Host, &failed, "Permission denied\n", false),
        ] {
            let reach = Reach { level, ..Reach::of("/w".into(), "/t".into()) };
            let noted = noted(output.into(), ending, Some(&reach));
            let end = format!("\n[the sandbox (level {level}) may have refused this: {}]\n", reach.told());
            assert!(noted.starts_with(output), "{noted}");
            assert_eq!(noted.ends_with(&end), expected, "{level} {ending:?}: {noted}");
            assert!(expected || noted == output, "{noted}");
        }
    }
}
