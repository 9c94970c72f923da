//! The commands of the README, as they stand there.

use inhost_interop::left_out;
use inhost_interop::readme::{self, Step};

fn steps() -> Vec<Step> {
    readme::steps(include_str!("../README.md"))
}

#[test]
fn the_programs_without_a_device_print_what_the_readme_says() {
    let steps: Vec<Step> = steps().into_iter().take(3).collect();
    for (step, name) in steps.iter().zip(["ping", "two-stacks", "fixed-window"]) {
        assert!(step.command.contains(name), "{}", step.command);
        readme::prints_what_it_says(step);
    }
}

#[test]
fn the_echo_server_answers_the_kernel_over_tun() {
    let private_network = ["unshare", "--net"];
    if !readme::shell(&private_network, "test -c /dev/net/tun").status.success() {
        return left_out("no network namespace of its own or no /dev/net/tun; run as root");
    }
    let steps = steps();
    let [.., add, address, up, server, echo, ping] = &steps[..] else { panic!("commands are missing") };
    // Root needs no sudo. The server is ready when it says so, and gone when it failed.
    let script = format!(
        "sudo() {{ \"$@\"; }}; said=$(mktemp); trap 'kill $server; rm $said' EXIT\n{}\n{}\n{}\n{} > $said & server=$!\n\
         until grep -q '^echo on' $said; do kill -0 $server; sleep 0.1; done\n{}\n{} > /dev/null\ncat $said",
        add.command,
        address.command,
        up.command,
        readme::as_built(&server.command),
        echo.command,
        ping.command
    );
    let ran = readme::shell(&private_network, &script);
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{printed}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(printed.starts_with(&format!("{}{}", echo.output, server.output)), "{printed}");
    assert!(printed.contains("10.0.7.1:"), "{printed}");
}
