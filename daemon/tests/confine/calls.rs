//! System calls by which one would get out.

use nano_protocol::session::Level;

use super::{at, both, run};

/// Makes a call by its number and prints what came of it.
const CALL: &str = "import ctypes, os, sys; libc = ctypes.CDLL(None, use_errno=True); \
                    result = libc.syscall(*[int(one, 0) for one in sys.argv[1:]]); \
                    print('done' if result >= 0 else os.strerror(ctypes.get_errno()))";

#[tokio::test]
async fn programs_that_would_leave() {
    for (booter, _) in both() {
        let w = at(booter, Level::WorkspaceWrite).await;
        for command in [
            "mount -t tmpfs x /mnt",
            "umount /proc",
            "unshare -Ur true",
            "unshare -m true",
            "unshare -n true",
            "chroot / true",
            "nsenter -t 1 -m true",
            "mknod disk b 8 0",
            "hostname other",
            "swapoff -a && echo 1 > /proc/sys/vm/swappiness",
        ] {
            let (ok, text) = run(&w, command).await;
            assert!(!ok, "{command}: {text}");
        }
        let (ok, text) = run(&w, "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp:' /proc/self/status").await;
        let values: Vec<&str> = text.lines().filter_map(|line| line.split('\t').nth(1)).collect();
        assert!(ok && values.len() == 7, "{text}");
        // As nobody in particular, the bounding set cannot be given up; nothing can be gained from it either.
        let held = values[..3].iter().chain([&values[4]]).any(|value| !value.trim_start_matches('0').is_empty());
        assert!(!held && values[5] == "1" && values[6] == "2", "{text}");
    }
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn calls_by_number() {
    const REFUSED: &str = "Operation not permitted";
    const UNKNOWN: &str = "Function not implemented";
    for (booter, _) in both() {
        let w = at(booter, Level::WorkspaceWrite).await;
        w.write("call.py", CALL);
        for (name, call, expected) in [
            ("getpid", "39", "done"),
            ("mount", "165 0 0 0 0 0", REFUSED),
            ("unshare, of files", "272 0x400", "done"),
            ("unshare, of users", "272 0x10000000", REFUSED),
            ("unshare, of time", "272 0x80", REFUSED),
            ("clone, of users", "56 0x10000011 0 0 0 0", REFUSED),
            ("clone, of mounts, with bits above", "56 0x100020011 0 0 0 0", REFUSED),
            ("clone3", "435 0 0", UNKNOWN),
            ("setns", "308 0 0", REFUSED),
            ("bpf", "321 0 0 0", REFUSED),
            ("keyctl", "250 0 0 0 0 0", REFUSED),
            ("add_key", "248 0 0 0 0 0", REFUSED),
            ("io_uring_setup", "425 8 0", UNKNOWN),
            ("io_uring_enter", "426 0 0 0 0 0 0", UNKNOWN),
            ("userfaultfd", "323 0", UNKNOWN),
            ("perf_event_open", "298 0 0 0 0 0", REFUSED),
            ("open_by_handle_at", "304 0 0 0", REFUSED),
            ("fsopen", "430 0 0", REFUSED),
            ("open_tree", "428 -100 0 1", REFUSED),
            ("move_mount", "429 0 0 0 0 0", REFUSED),
            ("mount_setattr", "442 0 0 0 0 0", REFUSED),
            ("pivot_root", "155 0 0", REFUSED),
            ("kexec_load", "246 0 0 0 0", REFUSED),
            ("init_module", "175 0 0 0", REFUSED),
            ("process_vm_readv", "310 1 0 0 0 0 0", REFUSED),
            ("reboot", "169 0 0 0 0", REFUSED),
            ("mount of the second table", "0x400000a5 0 0 0 0 0", UNKNOWN),
            ("getpid of the second table", "0x40000027", UNKNOWN),
        ] {
            let (_, text) = run(&w, &format!("python3 call.py {call}")).await;
            assert!(text.starts_with(expected), "{name}: {text}");
        }
        // The calls of 32 bits have numbers of their own, and no filter: who makes one is ended.
        let machine_code = "import ctypes, mmap; page = mmap.mmap(-1, 4096, prot=7); \
                            page.write(b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3'); \
                            ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()";
        w.write("old.py", machine_code);
        let (ok, text) = run(&w, "python3 old.py").await;
        assert!(!ok && text.contains("SIGSYS") || text.contains("159"), "{text}");
    }
}
