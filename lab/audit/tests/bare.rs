//! The core builds, links and runs without `std`: `lab/bare`.

use inhost_interop::{output, output_within};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Longest build. There are two of them in the time of the test.
const BUILD_LIMIT: Duration = Duration::from_secs(140);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare")
}

fn build(arguments: &[&str]) -> Output {
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--quiet", "--target-dir"])
        .arg(folder())
        .args(arguments)
        .current_dir(root().join("lab/bare"))
        // The feature below must be the only way by which `std` could come in.
        .env_remove("RUSTFLAGS");
    output_within(BUILD_LIMIT, &mut build)
}

#[test]
fn two_hosts_exchange_a_line_in_a_program_without_std() {
    let built = build(&[]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = output(&mut Command::new(folder().join("debug/inhost-bare")));
    assert!(ran.status.success(), "{ran:?}");
    // What shows it: with `std` there is a second panic handler, and the compiler refuses the program.
    let with_std = build(&["--features", "std"]);
    let said = String::from_utf8_lossy(&with_std.stderr);
    assert!(
        !with_std.status.success() && said.contains("duplicate lang item") && said.contains("panic_impl"),
        "{said}"
    );
}
