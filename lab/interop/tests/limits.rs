//! Tests that misbehave, each in another way. `make limits` runs them, and checks that each is ended and named and that
//! nothing of it is left.

use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
#[ignore = "long run: make limits"]
fn sleeps_for_ever() {
    inhost_interop::pause(Duration::MAX);
}

#[test]
#[ignore = "long run: make limits"]
#[allow(clippy::zombie_processes)]
fn leaves_a_child_that_holds_its_output() {
    Command::new("sleep").arg("1000000").stdin(Stdio::null()).spawn().unwrap();
}

#[test]
#[ignore = "long run: make limits"]
#[allow(clippy::zombie_processes)]
fn leaves_a_child_with_a_session_of_its_own() {
    let quiet = Stdio::null;
    let mut command = Command::new("setsid");
    command.args(["sleep", "1000000"]).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().unwrap();
}

#[test]
#[ignore = "long run: make limits"]
fn waits_for_a_child_with_a_session_of_its_own() {
    let _ = Command::new("setsid").args(["--wait", "sleep", "1000000"]).status();
}

#[test]
#[ignore = "long run: make limits"]
fn fills_ten_gigabytes() {
    let mut filled = Vec::new();
    for _ in 0..10 << 10 {
        filled.push(vec![1_u8; 1 << 20]);
    }
    std::hint::black_box(filled);
}
