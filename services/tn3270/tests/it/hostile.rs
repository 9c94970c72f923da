//! Peers that negotiate without end, send what nobody asked for, never read, or never speak.

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Instant, IpAddr, Ipv4Addr, Random};
use inhost_common::{Admission, AdmissionLimits};
use inhost_stack::ListenOptions;
use inhost_telnet::codec::{DO, IAC, SB, SE, WILL};
use inhost_tn3270::driver::{Ended, Server, serve};
use inhost_tn3270::machine::{OUTPUT_BYTES, Violation};
use inhost_tn3270::server::{Action, Closing, Devices, JOBS, Next, Origin, Panel, Session, SessionConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::network::Network;
use crate::place::Place;

/// The client's address.
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2));
/// Octets that the host takes of a client that never reads: what both ends buffer.
const NEVER_READ_BYTES: usize = 1 << 20;

/// What becomes of a session whose client is `client`, in virtual time, and how long it took.
fn session<F: Future<Output = ()> + 'static>(
    client: impl FnOnce(inhost_socket::Host, inhost_socket::Stream) -> F + 'static,
) -> (Ended, Duration) {
    session_of(Devices::new(4), client)
}

/// The same with these devices.
fn session_of<F: Future<Output = ()> + 'static>(
    devices: Devices,
    client: impl FnOnce(inhost_socket::Host, inhost_socket::Stream) -> F + 'static,
) -> (Ended, Duration) {
    let mut network = Network::new();
    let (near, far) = (network.ends[0].host.clone(), network.ends[1].host.clone());
    let at = inhost_base::Endpoint::new([10, 9, 0, 1], 3270);
    let listener = near.listen(at, ListenOptions::default()).unwrap();
    let connecting = far.clone();
    far.spawn(async move {
        let stream = connecting.connect(at).await.unwrap();
        client(connecting.clone(), stream).await;
    })
    .detach();
    network.run(async move {
        let stream = listener.accept().await.unwrap();
        let (begin, peer) = (near.now(), PEER);
        let admission = Admission::new(AdmissionLimits::default());
        let permit = admission.admit(peer, begin).unwrap();
        let (place, log) = (Place::new(None), |_: inhost_tn3270::driver::DeviceEvent<'_>| {});
        let config = SessionConfig::default();
        let server = Server { config, devices, panels: &place, clock: &near, log: &log };
        let ended = serve(stream, Origin::clear(peer), &server, &permit).await;
        (ended, near.now().since(begin))
    })
}

#[test]
fn a_client_that_says_nothing_is_closed() {
    let (ended, time) = session(|host, stream| async move {
        host.sleep(Duration::from_secs(3600)).await;
        drop(stream);
    });
    assert_eq!(ended, Ended::Closed(Closing::TooSlow));
    assert!((30..60).contains(&time.as_secs()), "{time:?}");
}

#[test]
fn a_client_that_is_gone_ends_the_session() {
    let (ended, _) = session(|_, stream| async move { drop(stream) });
    assert_eq!(ended, Ended::Disconnected);
}

#[test]
fn a_client_that_negotiates_without_end_is_closed() {
    let (ended, time) = session(|_, mut stream| async move {
        let noise = [IAC, DO, 99, IAC, WILL, 98, IAC, 246].repeat(100);
        while stream.write_all(&noise).await.is_ok() {}
    });
    assert_eq!(ended, Ended::Closed(Closing::Violation(Violation::Negotiation)));
    assert!(time.as_secs() < 30, "{time:?}");
}

/// Says what a terminal says until it has a panel, and then does as `then` says.
async fn negotiate(stream: &mut inhost_socket::Stream) {
    let mut say = async |octets: &[u8]| stream.write_all(octets).await.unwrap();
    say(&[IAC, WILL, 40]).await;
    let request = [&[IAC, SB, 40, 2, 7], &b"IBM-3278-2"[..], &[IAC, SE]].concat();
    say(&request).await;
    // Functions: none.
    say(&[IAC, SB, 40, 3, 7, IAC, SE]).await;
}

/// A record of TN3270E: Clear.
const CLEAR: [u8; 8] = [0, 0, 0, 0, 0, 0x6d, IAC, END_OF_RECORD];
/// The command that ends a record.
const END_OF_RECORD: u8 = 239;

/// Reads until so many records have come; how many came before the time was over.
async fn read_records(
    host: &inhost_socket::Host,
    stream: &mut inhost_socket::Stream,
    wanted: usize,
) -> usize {
    let (mut records, mut before) = (0, 0);
    let mut buffer = [0; 4096];
    while records < wanted {
        let late = host.sleep(Duration::from_secs(60));
        let read = async { stream.read(&mut buffer).await.unwrap_or(0) };
        let count = futures_lite::future::or(read, async {
            late.await;
            0
        });
        let count = count.await;
        if count == 0 {
            break;
        }
        for &octet in &buffer[..count] {
            records += usize::from(before == IAC && octet == END_OF_RECORD);
            before = octet;
        }
    }
    records
}

/// Output is full long before the last of them; what was read already is answered as soon as there is room.
#[test]
fn keys_that_come_in_one_piece_are_all_answered() {
    let answers = Rc::new(Cell::new(0));
    let told = answers.clone();
    let (ended, _) = session(|host, mut stream| async move {
        negotiate(&mut stream).await;
        assert_eq!(read_records(&host, &mut stream, 1).await, 1);
        stream.write_all(&CLEAR.repeat(600)).await.unwrap();
        told.set(read_records(&host, &mut stream, 600).await);
    });
    assert_eq!((ended, answers.get()), (Ended::Disconnected, 600));
}

/// Writes for as long as the host takes something within a second; gives the octets that it took.
async fn write_until_stuck(
    host: &inhost_socket::Host,
    stream: &mut inhost_socket::Stream,
    octets: &[u8],
) -> usize {
    let mut taken = 0;
    for _ in 0..100_000 {
        let late = host.sleep(Duration::from_secs(1));
        let write = async { stream.write(octets).await.unwrap_or(0) };
        let count = futures_lite::future::or(write, async {
            late.await;
            0
        });
        match count.await {
            0 => break,
            count => taken += count,
        }
    }
    taken
}

#[test]
fn a_client_that_never_reads_costs_bounded_memory() {
    let taken_bytes = Rc::new(Cell::new(0));
    let told = taken_bytes.clone();
    let (ended, _) = session(|host, mut stream| async move {
        negotiate(&mut stream).await;
        // Clear, again and again: each is answered by a panel, which is some forty times as long.
        told.set(write_until_stuck(&host, &mut stream, &CLEAR.repeat(1000)).await);
        // It never reads, and the session ends when its user is taken to be gone.
        host.sleep(Duration::from_secs(7200)).await;
    });
    assert_eq!(ended, Ended::Closed(Closing::Idle));
    // The windows of TCP fill up; nothing else holds what the client says.
    assert!(taken_bytes.get() < NEVER_READ_BYTES, "{}", taken_bytes.get());
}

/// A printer that agrees to no responses says nothing about its prints: they wait in its queue while it does not read.
#[test]
fn a_printer_that_never_reads_costs_bounded_memory() {
    let devices = Devices::new(4);
    let terminal = devices.request("IBM-3278-2", None, Origin::clear(PEER)).unwrap();
    let taken = Rc::new(Cell::new(0));
    let (told, own) = (taken.clone(), devices.clone());
    let (ended, time) = session_of(devices, |host, mut stream| async move {
        let request = [&[IAC, WILL, 40, IAC, SB, 40, 2, 7], &b"IBM-3287-1"[..], &[0], b"LU001", &[IAC, SE]];
        stream.write_all(&request.concat()).await.unwrap();
        stream.write_all(&[IAC, SB, 40, 3, 7, IAC, SE]).await.unwrap();
        for _ in 0..1000 {
            host.sleep(Duration::from_millis(100)).await;
            let print = vec!["x".repeat(100); 1000];
            told.set(told.get() + usize::from(own.print(terminal.name(), print).is_ok()));
        }
        host.sleep(Duration::from_secs(3600)).await;
    });
    assert_eq!(ended, Ended::Closed(Closing::TooSlow));
    assert!(time.as_secs() < 1000, "{time:?}");
    // Its queue, one that is being sent, and those that are in the windows of TCP.
    assert!((JOBS..JOBS + 32).contains(&taken.get()), "{}", taken.get());
}

#[test]
fn records_that_are_too_long_end_the_session() {
    let (ended, _) = session(|_, mut stream| async move {
        negotiate(&mut stream).await;
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer).await;
        while stream.write_all(&[0x40; 4096]).await.is_ok() {}
    });
    assert_eq!(ended, Ended::Closed(Closing::Violation(Violation::Record)));
}

/// A session takes no more input than it can answer, whatever comes, and says so.
#[test]
fn a_session_holds_back() {
    let mut random = Random::from_number(47);
    let (mut most, mut asked) = (0, 0);
    for round in 0..200 {
        let (mut session, mut now) = (Session::new(SessionConfig::default()), Instant::ZERO);
        session.start(now);
        let opening = [
            &[IAC, WILL, 40, IAC, SB, 40, 2, 7][..],
            b"IBM-3278-2-E",
            &[IAC, SE, IAC, SB, 40, 3, 7, 2, IAC, SE],
        ];
        let opening = opening.concat();
        let mut rest = &opening[..];
        session.receive(&mut rest, now);
        session.action();
        session.device(Ok("LU001"));
        session.receive(&mut rest, now);
        assert!(rest.is_empty());
        for _ in 0..300 {
            while let Some(action) = session.action() {
                if matches!(action, Action::Ask(_)) {
                    asked += 1;
                    let panel = Panel::lines("TEXT", "Text", &"x\n".repeat(50));
                    session.next(Next::Show(Box::new(panel)), now);
                }
            }
            let keys = [0x7d, 0x6d, 0xf7, 0xf8, 0x88, 0x6c, 0x4c, 0x11];
            let mut octets = vec![0, 0, 0, 0, 1, keys[random.public_below(8) as usize]];
            octets.extend((0..random.public_below(20)).map(|_| random.public_below(250) as u8));
            octets.extend([IAC, 239]);
            now += Duration::from_millis(1);
            session.receive(&mut &octets[..], now);
            if round % 2 == 0 {
                session.sent(1 << 20);
            }
            most = most.max(session.pending().len());
        }
        assert!(round % 2 == 1 || session.takes_input() || session.action().is_some(), "{round}");
    }
    assert!(asked > 200, "{asked}");
    // One panel more than what may wait.
    assert!((OUTPUT_BYTES..OUTPUT_BYTES + 8192).contains(&most), "{most}");
}
