//! The command of the README: it moves, and nothing is lost.

use inhost_interop::{left_out, readme};

#[test]
fn a_program_moves_in_the_middle_of_a_hundred_transfers_and_loses_none() {
    let private_network = ["unshare", "--net"];
    if !readme::shell(&private_network, "test -c /dev/net/tun").status.success() {
        return left_out("no network namespace of its own or no /dev/net/tun; run as root");
    }
    let steps = readme::steps(include_str!("../README.md"));
    let command = steps[0].command.replace("sudo cargo run -q --release", "cargo run -q");
    let ran = readme::shell(&private_network, &format!("ip link set lo up; {}", readme::as_built(&command)));
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{printed}{}", String::from_utf8_lossy(&ran.stderr));
    // Figures are those of the day.
    let without_numbers = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
    assert_eq!(without_numbers(&printed), without_numbers(&steps[0].output));
    assert!(printed.ends_with("100 transfers intact, 0 lost\n"), "{printed}");
}
