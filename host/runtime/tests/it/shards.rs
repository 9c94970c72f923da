//! One host in two shards on a TUN device with two queues, the kernel at the other end. Needs root.
#![allow(clippy::disallowed_methods)] // The kernel lives in real time.

use inhost_base::{Cidr, Endpoint};
use inhost_interop::{DEADLINE, join, own_network, receive, until};
use inhost_link::{Tunnel, TunnelConfig};
use inhost_runtime::{Shard, Shards, interface};
use inhost_stack::{DuplicateDetection, ListenOptions, StackConfig};
use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Calls in each direction.
const CALLS: usize = 40;
const OURS: &str = "10.11.0.2";
const THEIRS: &str = "10.11.0.1";

/// Gives a shard its queue of the device.
fn attach(shard: &mut Shard) -> io::Result<()> {
    let kernels: Cidr = format!("{THEIRS}/24").parse().map_err(io::Error::other)?;
    let config = TunnelConfig {
        multi_queue: true,
        host_addresses: vec![kernels],
        ..TunnelConfig::new("inshard0", false)
    };
    let driver = Box::new(Tunnel::open(config).map_err(io::Error::other)?);
    let ours: Cidr = format!("{OURS}/24").parse().map_err(io::Error::other)?;
    let mut link = interface("inshard0", &*driver).with_address(ours);
    link.duplicate_detection = DuplicateDetection::Off;
    shard.add_link(link, driver).map_err(io::Error::other)?;
    Ok(())
}

/// Answers each call with the number of the shard that took it, and then with what it hears; for the whole time.
async fn serve(shard: u8, host: inhost_socket::Host, listener: inhost_socket::Listener) {
    while let Ok(mut caller) = listener.accept().await {
        host.spawn(async move {
            let mut place = [0; 64];
            caller.write_all(&[shard]).await.unwrap();
            while let Ok(count @ 1..) = caller.read(&mut place).await {
                caller.write_all(&place[..count]).await.unwrap();
            }
        })
        .detach();
    }
}

/// Calls the kernel again and again; each call says who calls.
async fn call(shard: u8, host: &inhost_socket::Host) {
    let there = Endpoint::new(THEIRS.parse::<Ipv4Addr>().unwrap(), 9);
    for _ in 0..CALLS {
        let mut stream = host.connect(there).await.unwrap();
        stream.write_all(&[shard]).await.unwrap();
        let mut echo = [0];
        stream.read_exact(&mut echo).await.unwrap();
        assert_eq!(echo[0], shard);
    }
}

/// Waits for as many calls as two shards make, and echoes a byte of each.
fn answer_calls(listener: &TcpListener) -> HashSet<u8> {
    (0..2 * CALLS)
        .map(|_| {
            let (mut caller, _) = until("a call of ours", || listener.accept().ok());
            caller.set_read_timeout(Some(DEADLINE)).unwrap();
            let mut byte = [0];
            caller.read_exact(&mut byte).unwrap();
            caller.write_all(&byte).unwrap();
            byte[0]
        })
        .collect()
}

#[test]
fn two_shards_are_one_host_that_calls_and_is_called() {
    if !own_network() {
        return;
    }
    let (attached, ready) = mpsc::channel();
    let (end, ended) = async_channel::bounded::<()>(2);
    let shards = Shards::start(2, &StackConfig::default(), move |mut shard| {
        attach(&mut shard)?;
        let (number, host) = (shard.index() as u8, shard.runtime().host().clone());
        let here = Endpoint::new(Ipv4Addr::UNSPECIFIED, 7);
        // Before anybody is told: a call that came earlier would be refused.
        let listener = host.listen(here, ListenOptions::default()).map_err(io::Error::other)?;
        host.spawn(serve(number, host.clone(), listener)).detach();
        attached.send(()).map_err(io::Error::other)?;
        let ended = ended.clone();
        let life = async {
            // The kernel's listener is up when this word comes.
            let _ = ended.recv().await;
            call(number, &host).await;
            let _ = ended.recv().await;
        };
        let done = host.clone();
        shard
            .runtime()
            .run(async move { done.timeout(DEADLINE.into(), life).await.map_err(io::Error::other) })?
    })
    .unwrap();
    receive(&ready);
    receive(&ready);

    // Called: which shard answers does not change, and the same address and port is open in both.
    let mut answered = HashSet::new();
    for call in 0..CALLS {
        let mut stream = TcpStream::connect_timeout(&format!("{OURS}:7").parse().unwrap(), DEADLINE).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut shard = [9];
        stream.read_exact(&mut shard).unwrap();
        answered.insert(shard[0]);
        for turn in 0..3 {
            let word = [call as u8, turn];
            stream.write_all(&word).unwrap();
            let mut echo = [0; 2];
            stream.read_exact(&mut echo).unwrap();
            assert_eq!(echo, word);
        }
    }
    assert_eq!(answered, HashSet::from([0, 1]));

    // Calling: what comes back finds the caller, whatever queue the kernel takes.
    let listener = TcpListener::bind((THEIRS, 9)).unwrap();
    listener.set_nonblocking(true).unwrap();
    end.try_send(()).unwrap();
    end.try_send(()).unwrap();
    assert_eq!(answer_calls(&listener), HashSet::from([0, 1]));
    let (_, lost) = shards.handed_over();
    assert_eq!(lost, 0);
    drop(end);
    join(std::thread::spawn(|| shards.join())).unwrap();
}
