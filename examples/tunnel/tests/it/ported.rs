//! The program that was written for netstack-smoltcp, on inhost.

use crate::{LOCALHOST, guest_and_packets, in_time, letters, over_tcp, shouting};
use inhost_example_tunnel::ported;
use std::net::SocketAddr;
use std::process::Command;

#[tokio::test]
async fn every_connection_and_datagram_reaches_the_one_server() {
    in_time(async {
        let server = shouting(LOCALHOST, 0).await.unwrap();
        let (guest, packets) = guest_and_packets().unwrap();
        tokio::spawn(ported::serve(packets, server));
        let letters = letters();
        let capitals = letters.to_ascii_uppercase();
        for to in ["203.0.113.7:80", "[2001:db8::7]:443"] {
            let to: SocketAddr = to.parse().unwrap();
            assert!(over_tcp(&guest, to, &letters).await.unwrap() == capitals, "{to}");
            let ours = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = guest.udp(ours).await.unwrap();
            socket.send_to(b"hello", to).await.unwrap();
            let mut place = [0; 64];
            let (count, from) = socket.recv_from(&mut place).await.unwrap();
            assert_eq!((&place[..count], from), (&b"HELLO"[..], to));
        }
    })
    .await;
}

#[test]
fn the_readme_shows_the_difference_of_both_programs() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let files = ["lab/bench/peers/tunnel/src/before.rs", "examples/tunnel/src/ported.rs"];
    let difference = Command::new("diff")
        .args(["--unified=1", "--label", "before.rs", "--label", "ported.rs"])
        .args(files)
        .current_dir(root)
        .output()
        .unwrap();
    let difference = String::from_utf8(difference.stdout).unwrap();
    let shown = include_str!("../../README.md").split("```diff\n").nth(1).unwrap();
    assert_eq!(shown.split("```").next().unwrap(), difference);
}
