//! Peers that negotiate without end, send what nobody asked for, never read, or never speak.

use inhost_base::{Duration, Instant, IpAddr, Random};
use inhost_common::{Admission, AdmissionLimits};
use inhost_stack::ListenOptions;
use inhost_telnet::codec::{DO, IAC, SB, SE, WILL};
use inhost_tn3270::driver::{Ended, Server, serve};
use inhost_tn3270::machine::{OUTPUT_BYTES, Violation};
use inhost_tn3270::server::{Action, Closing, Devices, Next, Panel, Session, SessionConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::network::Network;
use crate::place::Place;

/// What becomes of a session whose client is `client`, in virtual time, and how long it took.
fn session<F: Future<Output = ()> + 'static>(
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
        let (begin, peer) = (near.now(), IpAddr::from([10, 9, 0, 2]));
        let admission = Admission::new(AdmissionLimits::default());
        let permit = admission.admit(peer, begin).unwrap();
        let (place, log) = (Place::new(None), |_: inhost_tn3270::driver::SessionEvent<'_>| {});
        let (config, devices) = (SessionConfig::default(), Devices::new(4));
        let server = Server { config, devices, panels: &place, clock: &near, log: &log };
        let ended = serve(stream, peer, &server, &permit).await;
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

#[test]
fn a_client_that_never_reads_costs_bounded_memory() {
    let (ended, _) = session(|host, mut stream| async move {
        negotiate(&mut stream).await;
        // Clear, again and again: each is answered by a panel.
        let clears = [0, 0, 0, 0, 0, 0x6d, IAC, 239].repeat(1000);
        for _ in 0..1000 {
            let late = host.sleep(Duration::from_secs(1));
            let sent = futures_lite::future::or(async { stream.write_all(&clears).await.is_ok() }, async {
                late.await;
                false
            });
            if !sent.await {
                break;
            }
        }
        // It never reads, and the session ends when its user is taken to be gone.
        host.sleep(Duration::from_secs(7200)).await;
    });
    assert_eq!(ended, Ended::Closed(Closing::Idle));
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
