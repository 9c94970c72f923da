//! The NFS client of the Linux kernel, in a virtual machine, beside `inhost serve`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use inhost_interop::{output_within, own_network};

/// Longer than the limit of the virtual machine in `lab/interop/nfs-kernel`.
const LIMIT: Duration = Duration::from_secs(440);

/// What the kernel does in the virtual machine, in the order of `lab/interop/nfs-kernel-inside`.
const STEPS: [&str; 33] = [
    "mount_tcp",
    "mount_protocol_by_udp",
    "mount_udp",
    "mount_refused",
    "list",
    "read_20_mb",
    "write_20_mb",
    "direct",
    "small_files",
    "rename_over",
    "remove",
    "change_mode",
    "change_times",
    "change_length",
    "append",
    "links",
    "special_files",
    "exclusive",
    "removed_while_open",
    "file_system",
    "synchronize",
    "beyond_4_gb",
    "names",
    "execute",
    "four_at_a_time",
    "small_transfers",
    "random_writes",
    "changed_on_the_server",
    "read_only",
    "owners",
    "server_restarts",
    "server_killed_while_writing",
    "unmount",
];

/// The product, which cargo does not build with this crate's tests.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().and_then(Path::parent).unwrap().join("inhost");
    assert!(path.exists(), "{} is missing: build it with `cargo build -p inhost-cli`", path.display());
    path
}

/// Runs the virtual machine and checks the line of each step.
fn the_kernel_works(options: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/interop/nfs-kernel");
    let mut command = Command::new(script);
    let done = output_within(LIMIT, command.args(options).arg(program()).stdin(Stdio::null()));
    let printed = String::from_utf8_lossy(&done.stdout);
    print!("{printed}");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{errors}");
    let steps: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("ok ")?.split_once(" (").map(|(step, _)| step))
        .collect();
    assert_eq!(steps, STEPS, "{errors}");
    assert!(printed.contains("killed at "), "the server was not killed in the middle of a write");
}

#[test]
#[ignore = "long run: make test-nfs"]
fn the_kernel_works_through_the_user_link() {
    the_kernel_works(&[]);
}

/// The kernel's TCP talks to the host's own, and the ports come from the portmapper.
#[test]
#[ignore = "long run: make test-nfs"]
fn the_kernel_works_on_a_tap_device() {
    if own_network() {
        the_kernel_works(&["--tap"]);
    }
}
