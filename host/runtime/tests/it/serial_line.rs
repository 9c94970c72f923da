//! Two hosts joined by a serial line over a pty, under the real clock.

use crate::in_time;
use inhost_base::{Duration, Endpoint, IpAddr, LinkId};
use inhost_link::{Driver, Spec, open};
use inhost_runtime::{Runtime, interface};
use inhost_socket::{Host, both};
use inhost_stack::{ListenOptions, StackConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A runtime with two hosts, `near` on the pty that is made and `far` on its other end; each with `keys` besides
/// its own.
fn line(near: &str, far: &str, keys: &str) -> (Runtime, Host, Host) {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let near_host = runtime.host().clone();
    let far_host = runtime.add_host(StackConfig::default()).unwrap();
    let driver = add(&mut runtime, &near_host, &format!("serial:/dev/ptmx,{keys}{near}"));
    let name = driver.split("other end ").nth(1).unwrap().split(',').next().unwrap();
    add(&mut runtime, &far_host, &format!("serial:{name},{keys}{far}"));
    (runtime, near_host, far_host)
}

fn add(runtime: &mut Runtime, host: &Host, text: &str) -> String {
    let spec: Spec = text.parse().unwrap();
    let driver: Box<dyn Driver> = open(&spec).unwrap();
    let what = driver.describe();
    let mut config = interface("serial", &*driver);
    config.addresses.clone_from(&spec.addresses);
    runtime.add_link(host, config, driver).unwrap();
    what
}

/// Sends `length` bytes to `at` and takes them back; whether they came as they went.
async fn echoed(host: &Host, server: &Host, at: Endpoint, length: u32) -> bool {
    let listener = server.listen(at, ListenOptions::default()).unwrap();
    let serve = async {
        let stream = listener.accept().await.unwrap();
        let (mut from, mut to) = tokio::io::split(stream);
        tokio::io::copy(&mut from, &mut to).await.unwrap();
        to.shutdown().await.unwrap();
    };
    let sent: Vec<u8> = (0..length).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let call = async {
        let (mut from, mut to) = tokio::io::split(host.connect(at).await.unwrap());
        let write = async {
            to.write_all(&sent).await.unwrap();
            to.shutdown().await.unwrap();
        };
        let mut got = Vec::new();
        both(write, from.read_to_end(&mut got)).await.1.unwrap();
        got == sent
    };
    both(serve, call).await.1
}

#[test]
fn a_host_is_told_its_address_by_the_concentrator_and_talks_with_it() {
    let near = ",address=10.5.0.1/24,offer=10.5.0.2";
    let (mut runtime, near, far) = line(near, "", "baud=115200,framing=llp");
    let given: IpAddr = "10.5.0.2".parse().unwrap();
    let ok = in_time(&mut runtime, async {
        let has_address = || {
            far.with_stack(|stack, _| {
                let addresses = stack.ip().interface(LinkId(1)).unwrap().addresses();
                addresses.iter().any(|own| own.cidr().address() == given)
            })
        };
        while !has_address() {
            far.sleep(Duration::from_millis(5)).await;
        }
        echoed(&far, &near, Endpoint::new([10, 5, 0, 1], 7), 4000).await
    });
    assert!(ok);
}

#[test]
fn what_noise_spoils_never_reaches_the_application() {
    for framing in ["slip", "llp"] {
        // A two-thousandth of the octets each way; every few packets one is lost.
        let keys = format!("baud=1000000,mtu=576,framing={framing},noise=0.05%,seed=5");
        let (mut runtime, near, far) = line(",address=10.5.0.1/24", ",address=10.5.0.2/24", &keys);
        let at = Endpoint::new([10, 5, 0, 1], 7);
        let ok = in_time(&mut runtime, echoed(&far, &near, at, 5000));
        assert!(ok, "{framing}");
    }
}

#[test]
fn an_echo_at_9600_baud_takes_the_time_of_the_line() {
    for (framing, octets_each_way) in [("slip", 55), ("llp", 60)] {
        let keys = format!("baud=9600,framing={framing}");
        let (mut runtime, near, far) = line(",address=10.5.0.1/24", ",address=10.5.0.2/24", &keys);
        let took = in_time(&mut runtime, async {
            let listener = near.listen(Endpoint::new([10, 5, 0, 1], 7), ListenOptions::default()).unwrap();
            let call = far.connect(Endpoint::new([10, 5, 0, 1], 7));
            let (mut server, mut client) = both(async { listener.accept().await.unwrap() }, call).await;
            let mut best = Duration::MAX;
            for _ in 0..5 {
                let client = client.as_mut().unwrap();
                // Late acknowledgments have passed before the next turn.
                far.sleep(Duration::from_millis(400)).await;
                let began = far.now();
                client.write_all(b"x").await.unwrap();
                let mut octet = [0];
                server.read_exact(&mut octet).await.unwrap();
                server.write_all(&octet).await.unwrap();
                client.read_exact(&mut octet).await.unwrap();
                best = best.min(far.now().since(began));
            }
            best
        });
        let took_ms = took.as_nanos() as f64 / 1e6;
        // 52 octets of headers, the one that is echoed, and the framing.
        let line_ms = 2.0 * f64::from(octets_each_way) * 10.0 / 9.6;
        println!("{framing}: echo {took_ms:.1} ms, of which the line {line_ms:.1} ms");
        assert!(took_ms > 0.99 * line_ms && took_ms < line_ms + 100.0, "{took_ms} ms, line {line_ms} ms");
    }
}
