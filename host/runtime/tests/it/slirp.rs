//! A host against Debian's `slirp`, a SLIP peer that others wrote, and through it against the kernel's TCP.
#![allow(clippy::disallowed_methods)] // The kernel's own sockets are the other end.

use crate::in_time;
use inhost_base::{Duration, Endpoint};
use inhost_interop::{Running, join};
use inhost_link::{Driver, Spec, open};
use inhost_runtime::{Runtime, interface};
use inhost_socket::both;
use inhost_stack::StackConfig;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// slirp on the tty at `path`: the variant of Debian's package that leaves the pace to the line.
fn slirp(path: &str) -> Running {
    let tty = || File::options().read(true).write(true).open(path).unwrap();
    let mut slirp = Command::new("slirp-fullbolt");
    Running::spawn(slirp.args(["-b", "115200"]).stdin(tty()).stdout(tty()).stderr(Stdio::null()))
}

#[test]
fn slirp_carries_a_connection_to_the_kernel() {
    let spec: Spec =
        "serial:/dev/ptmx,baud=115200,mtu=1500,address=10.0.2.15/24,gateway=10.0.2.2".parse().unwrap();
    let driver: Box<dyn Driver> = open(&spec).unwrap();
    let what = driver.describe();
    let name = what.split("other end ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    let mut config = interface("sl0", &*driver);
    config.addresses.clone_from(&spec.addresses);
    config.gateways.clone_from(&spec.gateways);
    runtime.add_link(&host, config, driver).unwrap();
    let _slirp = slirp(&name);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let kernel = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        stream.write_all(&got).unwrap();
    });
    let sent: Vec<u8> = (0..20_000u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let got = in_time(&mut runtime, async {
        // slirp prints its greeting, and then waits for the first frame.
        host.sleep(Duration::from_millis(500)).await;
        // The kernel's loopback is slirp's 10.0.2.2.
        let stream = host.connect(Endpoint::new([10, 0, 2, 2], port)).await.unwrap();
        let (mut from, mut to) = tokio::io::split(stream);
        let write = async {
            to.write_all(&sent).await.unwrap();
            to.shutdown().await.unwrap();
        };
        let mut got = Vec::new();
        both(write, from.read_to_end(&mut got)).await.1.unwrap();
        got
    });
    assert_eq!(got, sent);
    join(kernel);
}
