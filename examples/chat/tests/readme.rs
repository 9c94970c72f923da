//! The commands of the README, as they stand there; those of its last block are the tests of the package themselves.

use inhost_interop::left_out;
use inhost_interop::readme::{self, Step};
use std::net::TcpListener;

/// The steps of one server and its callers.
fn steps(from_kernel: bool) -> Vec<Step> {
    let mut kernel = readme::steps(include_str!("../README.md"));
    let inhost = kernel.iter().position(|step| step.command.starts_with("sudo ")).unwrap();
    let tests = kernel.iter().position(|step| step.command.starts_with("cargo test ")).unwrap();
    kernel.truncate(tests);
    let inhost = kernel.split_off(inhost);
    if from_kernel { kernel } else { inhost }
}

/// Runs the server of the first step and the others in one shell, where `ready` waits until the server answers.
fn hold_a_conversation(program: &[&str], server: &str, steps: &[Step], edit: impl Fn(&str) -> String) {
    let callers: Vec<String> = steps[1..].iter().map(|step| edit(&step.command)).collect();
    let opens = callers[0].split_once("; ").unwrap().0;
    // The server says where it is before anybody calls; `timeout` ends a conversation that hangs.
    let script = format!(
        "{} & server=$!; trap 'kill $server' EXIT\n\
         for try in $(seq 100); do ({}) 2>/dev/null && break; kill -0 $server; sleep 0.1; done\n{}",
        edit(server),
        opens,
        callers.join("\n")
    );
    let program: Vec<&str> = program.iter().copied().chain(["timeout", "60"]).collect();
    let ran = readme::shell(&program, &script);
    let expected: String = steps.iter().map(|step| edit(&step.output)).collect();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn callers_talk_on_the_kernel() {
    // A port that is free here.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let steps = steps(true);
    assert_eq!(steps.len(), 6);
    let server = readme::as_built(steps[0].command.trim_end_matches(" &"));
    hold_a_conversation(&["env"], &server, &steps, |text| text.replace("6142", &port));
}

#[test]
fn callers_talk_over_tun() {
    let private_network = ["unshare", "--net"];
    if !readme::shell(&private_network, "test -c /dev/net/tun").status.success() {
        return left_out("no network namespace of its own or no /dev/net/tun; run as root");
    }
    let steps = steps(false);
    assert_eq!(steps.len(), 2);
    let binary = env!("CARGO_BIN_EXE_chat-inhost");
    let server = steps[0].command.trim_end_matches(" &").replace("sudo target/debug/chat-inhost", binary);
    hold_a_conversation(&private_network, &server, &steps, str::to_owned);
}
