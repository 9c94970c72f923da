//! Sockets of simulated hosts when frames are lost, late or cut off, and what shows in the hosts' tables.
#![cfg(feature = "sim")]

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::time::Duration;

use inhost::local::Host as Local;
use inhost::sim::net::{TcpListener, TcpStream, UdpSocket, lookup_host};
use inhost::sim::{LinkConfig, Loss, ProgramResult, Simulation, task, time};
use inhost::stack::{SocketKind, TcpState};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Packets of at most this many bytes pass a link that drops whatever carries data: SYNs, acknowledgments, and ARP.
const WITHOUT_DATA_BYTES: u32 = 60;
/// Packets of at most this many bytes pass a link that drops every segment. ARP still passes.
const ARP_ONLY_BYTES: u32 = 30;

fn milliseconds(count: u64) -> inhost::stack::Duration {
    inhost::stack::Duration::from_millis(count)
}

/// Echoes what each caller sends.
async fn echo<N>(_: N) -> ProgramResult {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        task::spawn(async move {
            let (mut receive, mut send) = stream.into_split();
            tokio::io::copy(&mut receive, &mut send).await?;
            send.shutdown().await
        });
    }
}

/// Has `bytes` echoed, and gives them back.
async fn ask(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let stream = TcpStream::connect("server:7").await?;
    let (mut receive, mut send) = stream.into_split();
    let mut received = Vec::new();
    let write = async {
        send.write_all(bytes).await?;
        send.shutdown().await
    };
    tokio::try_join!(write, receive.read_to_end(&mut received))?;
    Ok(received)
}

fn numbered(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8).collect()
}

/// The connections and listeners of the host whose task runs.
fn sockets() -> Vec<(SocketKind, Option<TcpState>, u16)> {
    let host = Local::current().unwrap();
    host.with_stack(|stack, now| {
        stack
            .instruments()
            .sockets(now)
            .map(|socket| (socket.kind, socket.state, socket.local.port))
            .collect()
    })
}

#[test]
fn a_delay_is_kept_each_way() {
    let mut simulation = Simulation::new(1);
    simulation.set_link(LinkConfig { delay: milliseconds(25), ..LinkConfig::default() });
    simulation.host("server", async |_| {
        let socket = UdpSocket::bind("0.0.0.0:7").await?;
        let mut place = [0; 16];
        loop {
            let (length, caller) = socket.recv_from(&mut place).await?;
            socket.send_to(&place[..length], caller).await?;
        }
    });
    simulation.client("client", async |_| {
        let socket = UdpSocket::bind("0.0.0.0:0").await?;
        for exchange in 0..2 {
            let start = time::Instant::now();
            socket.send_to(b"hi", "server:7").await?;
            assert_eq!(socket.recv_from(&mut [0; 16]).await?.0, 2);
            // Two links each way; the first time the addresses are asked for, too.
            let took = start.elapsed();
            match exchange {
                0 => assert!(took >= Duration::from_millis(100), "{took:?}"),
                _ => assert_eq!(took, Duration::from_millis(100)),
            }
        }
        Ok(())
    });
    simulation.run().unwrap();
}

#[test]
fn lost_data_is_sent_again_and_the_handshake_is_not_disturbed() {
    let mut simulation = Simulation::new(1);
    simulation.host("server", echo);
    let client = simulation.client("client", async |_| {
        let start = time::Instant::now();
        assert_eq!(ask(&numbered(1000)).await?, numbered(1000));
        assert!(start.elapsed() > Duration::from_millis(100), "{:?}", start.elapsed());
        Ok(())
    });
    simulation.network().set_black_hole(client, 0, Some(WITHOUT_DATA_BYTES));
    simulation.network().after(milliseconds(100), move |network| network.set_black_hole(client, 0, None));
    simulation.run().unwrap();
    let statistics = simulation.network().statistics(client, 0);
    assert!(statistics.too_long > 0, "{statistics:?}");
}

#[test]
fn of_many_segments_only_the_lost_ones_are_sent_again() {
    const BYTES: usize = 100_000;
    let run = |loss| {
        let mut simulation = Simulation::new(1);
        simulation.host("server", echo);
        let client = simulation.client("client", async |_| {
            assert!(ask(&numbered(BYTES)).await? == numbered(BYTES));
            Ok(())
        });
        let config = LinkConfig { loss, ..LinkConfig::default() };
        simulation.network().set_link(client, 0, config);
        let report = simulation.run().unwrap();
        let lost = simulation.network().statistics(client, 0).lost;
        (report.payload_bytes, lost)
    };
    // By the tenth frame data is under way: one question for the address and two of the handshake come before.
    let (whole_bytes, none) = run(Loss::None);
    let (lossy_bytes, one) = run(Loss::Scripted(vec![10]));
    assert_eq!((none, one), (0, 1));
    // SACK: at most the lost segment and a probe for it are repeated, not the window that follows.
    assert!((whole_bytes + 1..=whole_bytes + 2 * 1460).contains(&lossy_bytes), "{whole_bytes} {lossy_bytes}");
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second() {
    let mut simulation = Simulation::new(1);
    simulation.host("server", echo);
    let client = simulation.client("client", async |_| {
        ask(b"where are you?").await?;
        time::sleep(Duration::from_secs(1)).await;
        let start = time::Instant::now();
        TcpStream::connect("server:7").await?;
        let took = start.elapsed();
        assert!((1000..1100).contains(&took.as_millis()), "{took:?}");
        Ok(())
    });
    let network = simulation.network();
    network.after(milliseconds(500), move |network| network.cut(client));
    network.after(milliseconds(1500), move |network| network.heal(client));
    simulation.run().unwrap();
    assert_eq!(simulation.network().statistics(client, 0).cut, 1);
}

#[test]
fn a_connection_whose_data_never_arrives_times_out() {
    let mut simulation = Simulation::new(1);
    simulation.host("server", async |_| {
        let listener = TcpListener::bind("0.0.0.0:7").await?;
        let _held = listener.accept().await?;
        std::future::pending().await
    });
    let client = simulation.client("client", async |_| {
        let mut stream = TcpStream::connect("server:7").await?;
        let start = time::Instant::now();
        stream.write_all(&[7; 2000]).await?;
        let error = stream.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        // RFC 9293 MUST-20 with RFC 1122 §4.2.3.5: at least 100 s of repeats.
        assert!(start.elapsed() >= Duration::from_secs(100), "{:?}", start.elapsed());
        assert_eq!(stream.write(b"x").await.unwrap_err().kind(), ErrorKind::TimedOut);
        Ok(())
    });
    simulation.network().set_black_hole(client, 0, Some(WITHOUT_DATA_BYTES));
    simulation.run().unwrap();
}

#[test]
fn a_call_of_which_no_syn_arrives_times_out_and_the_next_gets_through_when_they_do() {
    let mut simulation = Simulation::new(1);
    simulation.host("server", echo);
    let client = simulation.client("client", async |_| {
        let start = time::Instant::now();
        let error = TcpStream::connect("server:7").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        assert!(start.elapsed() < Duration::from_secs(900), "{:?}", start.elapsed());
        time::sleep(Duration::from_secs(900) - start.elapsed()).await;
        assert_eq!(ask(b"and now?").await?, b"and now?");
        Ok(())
    });
    simulation.network().set_black_hole(client, 0, Some(ARP_ONLY_BYTES));
    simulation.network().after(milliseconds(900_000), move |network| {
        network.set_black_hole(client, 0, None);
    });
    simulation.run().unwrap();
}

#[test]
fn a_host_that_is_cut_off_is_unreachable_as_its_address_is_not_answered() {
    let mut simulation = Simulation::new(1);
    let server = simulation.host("server", echo);
    simulation.client("client", async |_| {
        let error = TcpStream::connect("server:7").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HostUnreachable, "{error}");
        Ok(())
    });
    simulation.network().cut(server);
    simulation.run().unwrap();
}

#[inhost::sim_test(seeds = 20)]
fn a_connection_outlives_a_partition(simulation: &mut Simulation) {
    let config = LinkConfig { rate_bits_per_second: Some(10_000_000), ..LinkConfig::default() };
    simulation.set_link(config);
    let server = simulation.host("server", echo);
    simulation.client("client", async |_| {
        assert!(ask(&numbered(1_000_000)).await? == numbered(1_000_000));
        Ok(())
    });
    let network = simulation.network();
    network.after(milliseconds(300), move |network| network.partition(&[server]));
    network.after(milliseconds(20_300), |network| network.heal_all());
}

#[test]
fn a_call_that_is_given_up_leaves_no_socket() {
    let mut simulation = Simulation::new(1);
    simulation.host("server", echo);
    let client = simulation.client("client", async |_| {
        let mut call = Box::pin(TcpStream::connect("server:7"));
        assert!(time::timeout(Duration::from_millis(10), call.as_mut()).await.is_err());
        assert_eq!(sockets().len(), 1);
        drop(call);
        time::sleep(Duration::from_millis(1)).await;
        assert_eq!(sockets(), []);
        Ok(())
    });
    simulation.network().set_black_hole(client, 0, Some(ARP_ONLY_BYTES));
    simulation.run().unwrap();
}

#[test]
fn tables_show_listeners_connections_and_datagram_sockets() {
    let mut simulation = Simulation::new(1);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let shows = seen.clone();
    simulation.host("server", async move |_| {
        let _datagrams = UdpSocket::bind("0.0.0.0:9").await?;
        let listener = TcpListener::bind("0.0.0.0:7").await?;
        let (mut stream, _) = listener.accept().await?;
        stream.read_exact(&mut [0; 1]).await?;
        *shows.borrow_mut() = sockets();
        stream.write_all(b"y").await?;
        std::future::pending().await
    });
    simulation.client("client", async move |_| {
        let mut stream = TcpStream::connect("server:7").await?;
        stream.write_all(b"x").await?;
        stream.read_exact(&mut [0; 1]).await?;
        let port = stream.local_addr()?.port();
        assert_eq!(sockets(), [(SocketKind::Connection, Some(TcpState::Established), port)]);
        let mut seen = seen.take();
        seen.sort_by_key(|&(kind, _, port)| (port, kind != SocketKind::Listener));
        let expected = [
            (SocketKind::Listener, None, 7),
            (SocketKind::Connection, Some(TcpState::Established), 7),
            (SocketKind::Udp, None, 9),
        ];
        assert_eq!(seen, expected);
        Ok(())
    });
    simulation.run().unwrap();
}

#[test]
fn hosts_are_called_by_name_and_by_address() {
    let mut simulation = Simulation::new(1);
    simulation.host("server", echo);
    simulation.client("client", async |_| {
        let addresses: Vec<_> = lookup_host("server:7").await?.collect();
        for address in addresses {
            TcpStream::connect(address).await?;
        }
        TcpStream::connect(("server", 7)).await?;
        let error = TcpStream::connect("nobody:7").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        Ok(())
    });
    simulation.run().unwrap();
}
