//! The commands of the README, against Debian's redis-server.

use std::net::TcpListener;
use std::process::Command;

use inhost_interop::{Running, peer, readme};

#[test]
fn the_crate_talks_to_a_server_on_the_kernel() {
    let steps = readme::steps(include_str!("../README.md"));
    let [server, example, asked, end] = &steps[..] else { panic!("other commands than were known") };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let words = |line: &str| line.replace("7379", &port);

    // In the foreground, so that it ends with the test.
    let arguments = words(&server.command);
    let arguments = arguments.strip_prefix("redis-server ").unwrap().split(" --daemonize").next().unwrap();
    let Some(program) = peer("redis-server", "usr/bin/redis-server") else { return };
    let arguments: Vec<&str> = arguments.split(' ').map(|word| word.trim_matches('\'')).collect();
    let mut running = Running::start(Command::new(&program).args(arguments));
    running.wait_for("Ready to accept connections");

    readme::prints_what_it_says(&readme::Step {
        command: words(&example.command),
        output: example.output.clone(),
    });
    let client = program.with_file_name("redis-cli");
    let by_client = |line: &str| {
        let arguments: Vec<String> = words(line).split(' ').skip(1).map(str::to_owned).collect();
        inhost_interop::output(Command::new(&client).args(arguments))
    };
    // Without a terminal it leaves out the quotes.
    let printed = String::from_utf8(by_client(&asked.command).stdout).unwrap();
    assert_eq!(printed.trim(), asked.output.trim().trim_matches('"'));
    assert!(by_client(&end.command).status.success());
    assert!(running.wait().success());
}
