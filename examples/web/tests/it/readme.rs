//! The commands of the README, as they stand there.

use inhost_interop::{left_out, readme};
#[test]
fn each_program_prints_what_the_readme_says() {
    let steps = readme::steps(include_str!("../../README.md"));
    assert_eq!(steps.len(), 6);
    steps[..4].iter().for_each(readme::prints_what_it_says);
}

#[test]
fn curl_is_answered_over_tun() {
    let private_network = ["unshare", "--net"];
    if !readme::shell(&private_network, "test -c /dev/net/tun").status.success() {
        return left_out("no network namespace of its own or no /dev/net/tun; run as root");
    }
    let steps = readme::steps(include_str!("../../README.md"));
    let [.., server, curl] = &steps[..] else { panic!("commands are missing") };
    let binary = env!("CARGO_BIN_EXE_axum");
    let command = server.command.trim_end_matches(" &").replace("sudo target/debug/axum", binary);
    // The address is tested for duplicates before it is used.
    let script = format!(
        "said=$(mktemp); trap 'kill $server; rm $said' EXIT\n{command} > $said & server=$!\n\
         for try in $(seq 100); do {} && break; kill -0 $server; sleep 0.1; done\ncat $said",
        curl.command
    );
    let ran = readme::shell(&private_network, &script);
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(
        printed,
        format!("{}{}", curl.output, server.output),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
