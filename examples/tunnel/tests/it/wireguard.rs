//! The WireGuard client: beside another one of its kind without root, and beside wireguard-go on a TUN device.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use boringtun::x25519::{PublicKey, StaticSecret};
use inhost_example_tunnel::wireguard::{Config, get, serve_http, start};
use inhost_interop::{Running, own_network, readme, run, until};
use std::io::{Read, Write};
use std::net::{IpAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use crate::in_time;

/// A private key, and its public key.
fn keys(seed: u8) -> ([u8; 32], [u8; 32]) {
    let secret = StaticSecret::from([seed; 32]);
    (secret.to_bytes(), PublicKey::from(&secret).to_bytes())
}

/// A file as wg-quick has it, of number `own`; its peer is number `peer`.
fn file(own: u8, peer: u8, more: &str) -> String {
    let text = |key: [u8; 32]| BASE64_STANDARD.encode(key);
    format!(
        "[Interface]\nPrivateKey = {}\nAddress = 10.77.0.{own}/32, fd77::{own}/128 # both families\n\n\
         [Peer]\nPublicKey = {}\nPresharedKey = {}\nAllowedIPs = 10.77.0.{peer}, fd77::{peer}/128\n{more}",
        text(keys(own).0),
        text(keys(peer).1),
        text([77; 32]),
    )
}

#[tokio::test]
async fn two_hosts_without_root_speak_http_through_the_tunnel() {
    in_time(async {
        let (server, port) = start(Config::parse(&file(1, 2, "")).unwrap()).await.unwrap();
        let client = file(2, 1, &format!("Endpoint = 127.0.0.1:{port}\nPersistentKeepalive = 25\n"));
        let (client, _) = start(Config::parse(&client).unwrap()).await.unwrap();
        tokio::spawn(async move { serve_http(&server).await });
        for (own, other) in [("10.77.0.2", "10.77.0.1"), ("fd77::2", "fd77::1")] {
            let other: IpAddr = other.parse().unwrap();
            // The server listens once it is polled first.
            let page = loop {
                if let Ok(page) = get(&client, other).await {
                    break page;
                }
            };
            assert_eq!(page, format!("hello, {own}\n"));
        }
    })
    .await;
}

#[tokio::test]
async fn who_has_another_key_gets_no_answer() {
    in_time(async {
        let (server, port) = start(Config::parse(&file(1, 2, "")).unwrap()).await.unwrap();
        let stranger = file(3, 1, &format!("Endpoint = 127.0.0.1:{port}\n"));
        let (stranger, _) = start(Config::parse(&stranger).unwrap()).await.unwrap();
        let serve = async move { serve_http(&server).await };
        tokio::spawn(serve);
        let limit = std::time::Duration::from_millis(300);
        let call = tokio::time::timeout(limit, stranger.connect("10.77.0.1:80")).await;
        assert!(call.is_err(), "the stranger waits");
    })
    .await;
}

/// A folder of a test's own.
fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("inhost-wireguard-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn two_programs_without_root_speak_http_as_the_readme_says() {
    let section = include_str!("../../README.md").split("\n## ").nth(2).unwrap();
    let [serve, ask] = &readme::steps(section)[..] else { panic!("commands are missing") };
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let folder = folder("programs");
    std::fs::write(folder.join("wg0.conf"), file(1, 2, &format!("ListenPort = {port}\n"))).unwrap();
    std::fs::write(folder.join("wg1.conf"), file(2, 1, &format!("Endpoint = 127.0.0.1:{port}\n"))).unwrap();
    let command = |text: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("exec {}", readme::as_built(text))]).current_dir(&folder);
        command
    };
    let mut server = Running::start(&mut command(serve.command.trim_end_matches(" &")));
    assert_eq!(server.wait_for("inside the tunnel"), serve.output.replace("51820", &port));
    assert_eq!(run(&mut command(&ask.command)), ask.output);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn curl_is_answered_by_the_host_behind_wireguard_go() {
    if !own_network() {
        return;
    }
    let hex = |key: [u8; 32]| key.map(|byte| format!("{byte:02x}")).concat();
    let folder = folder("go");
    let config = folder.join("wg0.conf");
    std::fs::write(&config, file(1, 2, "Endpoint = 127.0.0.1:51820\nPersistentKeepalive = 1\n")).unwrap();
    let mut host = Running::start(Command::new(env!("CARGO_BIN_EXE_wireguard")).arg(&config));
    host.wait_for("http://10.77.0.1 and fd77::1 inside the tunnel");
    std::fs::remove_dir_all(&folder).unwrap();

    // The name of the device is also that of its socket, which all namespaces share.
    let device = format!("wg{}", std::process::id());
    let _peer = Running::start(Command::new("wireguard-go").args(["--foreground", &device]));
    let socket = format!("/var/run/wireguard/{device}.sock");
    let mut socket = until("wireguard-go's socket", || UnixStream::connect(&socket).ok());
    let (own, peer) = (hex(keys(2).0), hex(keys(1).1));
    let asked = format!(
        "set=1\nprivate_key={own}\nlisten_port=51820\npublic_key={peer}\npreshared_key={}\n\
         allowed_ip=10.77.0.1/32\nallowed_ip=fd77::1/128\n\n",
        hex([77; 32])
    );
    socket.write_all(asked.as_bytes()).unwrap();
    let mut answer = [0; 9];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"errno=0\n\n");
    for command in [
        format!("address add 10.77.0.2/24 dev {device}"),
        format!("address add fd77::2/64 dev {device} nodad"),
        format!("link set {device} up"),
    ] {
        run(Command::new("ip").args(command.split(' ')));
    }
    // The host alone knows where its peer is; its keepalive begins.
    for (url, caller) in [("http://10.77.0.1/", "10.77.0.2"), ("http://[fd77::1]/", "fd77::2")] {
        let page = run(Command::new("curl").args(["--silent", "--show-error", "--max-time", "20", url]));
        assert_eq!(page, format!("hello, {caller}\n"));
    }
}
