//! How a test says that it cannot run here. `make test` lists each such case at its end, and fails on one in CI.

use std::io::Write;

/// Says that the test of this thread is left out, and why. Without `make test` to list it, that is a failure.
pub fn left_out(why: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    let list = std::env::var_os("INHOST_LEFT_OUT")
        .unwrap_or_else(|| panic!("{name} cannot run: {why}; `make test` lists what it leaves out"));
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&list).unwrap();
    file.write_all(format!("{name}: {why}\n").as_bytes()).unwrap();
}
