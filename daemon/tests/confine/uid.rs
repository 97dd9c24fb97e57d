//! The last step as a user without any rights.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use nanod::sandbox::confine::Plan;
use nanod::sandbox::confine::force::Force;
use nanod::sandbox::reach::Reach;

const NOBODY: u32 = 65534;

#[test]
fn a_user_without_rights_confines_as_well() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIPPED: only root can become somebody else; the other tests run as such a user anyway");
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_nanod"), root.join("nanod")).unwrap();
    for path in ["w", "w/.git", "w/.git/hooks", "tmp", "state"] {
        fs::create_dir(root.join(path)).unwrap();
        chown(root.join(path), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    fs::write(root.join("state/db"), "s3cret").unwrap();
    fs::set_permissions(root.join("state/db"), fs::Permissions::from_mode(0o644)).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(root.join("nanod")).args(arguments);
        let out = command.current_dir(root.join("w")).output().unwrap();
        String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
    };
    let force: Force = serde_json::from_str(run(&["__probe-confined"]).trim()).unwrap();
    for mounts in [true, false].into_iter().filter(|mounts| force.mounts || !mounts) {
        let reach = Reach {
            hidden: vec![root.join("state")],
            protected: vec![root.join("w/.git/hooks")],
            ..Reach::of(root.join("w"), root.join("tmp"))
        };
        let plan = Plan { reach: Some(reach), mounts, ..Plan::default() };
        let script = "id -u; echo x > a && echo inside; echo x > ../b || echo outside; cat ../state/db || echo hidden; \
                      echo x > .git/hooks/h || echo protected; kill -9 $PPID || echo alive; unshare -Ur true || echo kept";
        let file = root.join("plan");
        fs::write(&file, serde_json::to_vec(&plan).unwrap()).unwrap();
        let told = run(&["__exec-confined", file.to_str().unwrap(), "/bin/sh", "-c", script]);
        for word in ["65534", "inside", "outside", "hidden", "alive", "kept"] {
            assert!(told.contains(word), "{word}, with mounts {mounts}: {told}");
        }
        assert_eq!(told.contains("protected"), mounts, "{told}");
        assert!(!told.contains("s3cret"), "{told}");
        fs::remove_file(root.join("w/.git/hooks/h")).ok();
    }
}
