//! Whether this machine can run guests: found by looking, never by starting one.

use std::fs::{self, File};
use std::path::Path;

/// Returns, in one clause, why a guest cannot boot on the machine whose files lie below `root`.
pub fn obstacle(root: &Path) -> Option<String> {
    let found: Vec<String> = [device(root), processor(root), pvm(root)].into_iter().flatten().collect();
    (!found.is_empty()).then(|| format!("a guest cannot boot here: {}", found.join(", and ")))
}

fn device(root: &Path) -> Option<String> {
    let why = File::options().read(true).write(true).open(root.join("dev/kvm")).err()?;
    Some(format!("/dev/kvm cannot be opened ({why})"))
}

fn processor(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let able = text.split_ascii_whitespace().any(|word| matches!(word, "vmx" | "svm"));
    (!able).then(|| "/proc/cpuinfo has neither vmx nor svm".into())
}

fn pvm(root: &Path) -> Option<String> {
    let there = root.join("sys/module/kvm_pvm").exists();
    there.then(|| "the kernel's KVM is PVM (/sys/module/kvm_pvm), which BoxLite's guests do not start on".into())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::fs;
    use std::path::Path;

    use super::obstacle;

    fn machine(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn each_obstacle_is_named() {
        const KVM: (&str, &str) = ("dev/kvm", "");
        const INTEL: (&str, &str) = ("proc/cpuinfo", "processor : 0\nflags\t\t: fpu vmx ssse3\n");
        const AMD: (&str, &str) = ("proc/cpuinfo", "flags\t\t: fpu svm\n");
        const NEITHER: (&str, &str) = ("proc/cpuinfo", "flags\t\t: fpu vmxx svm_lock\n");
        const PVM: (&str, &str) = ("sys/module/kvm_pvm/parameters/x", "");
        for (files, words) in [
            (&[KVM, INTEL][..], &[][..]),
            (&[KVM, AMD], &[]),
            (&[INTEL], &["/dev/kvm"]),
            (&[KVM, NEITHER], &["neither vmx nor svm"]),
            (&[KVM], &["neither vmx nor svm"]),
            (&[KVM, AMD, PVM], &["kvm_pvm"]),
            (&[PVM], &["/dev/kvm", "neither vmx nor svm", "kvm_pvm"]),
        ] {
            let root = tempfile::tempdir().unwrap();
            machine(root.path(), files);
            let found = obstacle(root.path());
            assert_eq!(found.is_some(), !words.is_empty(), "{files:?}: {found:?}");
            for word in ["/dev/kvm", "neither vmx nor svm", "kvm_pvm"] {
                let named = found.as_ref().is_some_and(|found| found.contains(word));
                assert_eq!(named, words.contains(&word), "{files:?}: {found:?}");
            }
        }
    }
}
