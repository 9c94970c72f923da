//! The command of the README, as it stands there.

use inhost_interop::readme;
#[test]
fn fifty_megabytes_go_over_quic_and_no_socket_drops_a_datagram() {
    let steps = readme::steps(include_str!("../README.md"));
    let command = &steps[0].command;
    assert!(command.ends_with(" 50"), "{command}");
    let ran = readme::shell(&["env"], &readme::as_built(command));
    let output = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{output}{}", String::from_utf8_lossy(&ran.stderr));
    let lines: Vec<&str> = output.lines().collect();
    // Without drops QUIC may still think that a packet was lost, on a machine that pauses for long.
    let [first, client, server, _, dropped] = lines[..] else { panic!("{output}") };
    assert!(first.starts_with("50 MB over QUIC in "), "{output}");
    assert_eq!(dropped, "dropped by our sockets: 0", "{output}");

    let (client_sent, client_received) = counts(client);
    let (server_sent, server_received) = counts(server);
    for counts in [client_sent, client_received, server_sent, server_received] {
        let [datagrams, calls, marked] = counts;
        assert!(calls <= datagrams && marked <= datagrams, "{output}");
        // quinn ends the marks when the peer's counts of them show that the path clears them.
        assert!(marked * 100 >= datagrams * 99, "{output}");
    }
    let [sent, calls, _] = client_sent;
    assert!(sent > 50_000_000 / 1452, "{output}");
    assert!(calls * 3 < sent, "several datagrams go by one call: {output}");
    assert!(server_received[0] <= sent && server_received[0] + 10 > sent, "{output}");
}

/// Datagrams, calls and marked datagrams, of what was sent and of what was received.
fn counts(line: &str) -> ([u64; 3], [u64; 3]) {
    let numbers: Vec<u64> = line.split([' ', ',', ';']).filter_map(|word| word.parse().ok()).collect();
    let [a, b, c, d, e, f] = numbers[..] else { panic!("{line}") };
    ([a, b, c], [d, e, f])
}
