//! X/Open's transport interface between two hosts, over a network that loses and reorders.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::walker::{Walker, step};
use inhost_base::{Duration, Endpoint, Ipv4Addr, Random};
use inhost_sim::{LinkConfig, Loss, Node, ProgramResult, Simulation};
use inhost_socket::ConnectionError;
use inhost_xti::{
    Error, Indication, Look, OptionRequest, Provider, SendFlags, State, TransportEndpoint, TransportOption,
};

const PORT: u16 = 700;

fn lossy(simulation: &mut Simulation, loss_per_mille: u32) {
    simulation.set_link(LinkConfig {
        delay: Duration::from_millis(5),
        loss: Loss::per_mille(loss_per_mille),
        ..LinkConfig::default()
    });
}

fn open(node: &Node, port: u16, queue_length: usize) -> Result<TransportEndpoint, Error> {
    let endpoint = TransportEndpoint::open(node.host(), Provider::Tcp);
    endpoint.bind(Some(Endpoint::new(Ipv4Addr::UNSPECIFIED, port)), queue_length)?;
    Ok(endpoint)
}

fn server_at(node: &Node) -> Endpoint {
    Endpoint::new(node.lookup("server").unwrap(), PORT)
}

/// Receives until the other end releases, and receives that.
async fn receive_all(endpoint: &TransportEndpoint) -> Result<Vec<u8>, Error> {
    let (mut place, mut all) = ([0; 3000], Vec::new());
    loop {
        match endpoint.rcv(&mut place).await {
            Ok(received) => all.extend_from_slice(&place[..received.length_bytes]),
            Err(Error::Look(Look::OrderlyRelease)) => break,
            Err(why) => return Err(why),
        }
    }
    endpoint.rcvrel().map(|()| all)
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 3) as u8 ^ (at >> 9) as u8).collect()
}

/// The two programs of a test.
fn between<S, C>(seed: u64, loss_per_mille: u32, server: S, client: C)
where
    S: AsyncFnOnce(Node) -> ProgramResult + 'static,
    C: AsyncFnOnce(Node) -> ProgramResult + 'static,
{
    let mut simulation = Simulation::new(seed);
    lossy(&mut simulation, loss_per_mille);
    let is_done = Rc::new(Cell::new(false));
    let done = is_done.clone();
    simulation.client("server", async move |node| {
        server(node).await?;
        done.set(true);
        Ok(())
    });
    simulation.client("client", client);
    simulation.run().unwrap();
    assert!(is_done.get());
}

#[test]
fn data_goes_both_ways_under_loss_and_both_ends_release_in_order() {
    for seed in 0..4 {
        let server = async |node: Node| -> ProgramResult {
            let endpoint = open(&node, PORT, 1)?;
            let call = endpoint.listen().await?;
            endpoint.accept(&endpoint, call.sequence)?;
            let received = receive_all(&endpoint).await?;
            assert!(received == pattern(300_000));
            endpoint.snd(&received, SendFlags::default()).await?;
            endpoint.sndrel()?;
            assert_eq!(endpoint.state(), Ok(State::Idle));
            Ok(())
        };
        between(seed, 50, server, async |node: Node| {
            let endpoint = open(&node, 0, 0)?;
            endpoint.connect(server_at(&node)).await?;
            endpoint.snd(&pattern(300_000), SendFlags::default()).await?;
            endpoint.sndrel()?;
            assert!(receive_all(&endpoint).await? == pattern(300_000));
            assert_eq!(endpoint.state(), Ok(State::Idle));
            Ok(())
        });
    }
}

#[test]
fn an_abort_in_the_middle_reaches_the_other_end() {
    let server = async |node: Node| -> ProgramResult {
        let endpoint = open(&node, PORT, 1)?;
        let call = endpoint.listen().await?;
        endpoint.accept(&endpoint, call.sequence)?;
        let why = receive_all(&endpoint).await.unwrap_err();
        assert_eq!(why, Error::Look(Look::Disconnect));
        let gone = endpoint.rcvdis()?;
        assert_eq!((gone.why, endpoint.state()), (ConnectionError::Reset, Ok(State::Idle)));
        Ok(())
    };
    between(1, 0, server, async |node: Node| {
        let endpoint = open(&node, 0, 0)?;
        endpoint.connect(server_at(&node)).await?;
        endpoint.snd(&pattern(100_000), SendFlags::default()).await?;
        endpoint.snddis(None)?;
        // The reset has to leave before the program, and with it the simulation, ends.
        node.sleep(Duration::from_secs(1)).await;
        Ok(())
    });
}

#[test]
fn a_call_to_nobody_is_refused_and_a_call_into_silence_times_out() {
    let server = async |node: Node| -> ProgramResult {
        node.sleep(Duration::from_secs(1)).await;
        Ok(())
    };
    between(1, 0, server, async |node: Node| {
        let endpoint = open(&node, 0, 0)?;
        assert_eq!(endpoint.connect(server_at(&node)).await, Err(Error::Look(Look::Disconnect)));
        assert_eq!(endpoint.rcvdis()?.why, ConnectionError::Refused);
        let nobody = Endpoint::new([10, 0, 0, 200], PORT);
        assert_eq!(endpoint.connect(nobody).await, Err(Error::Look(Look::Disconnect)));
        let why = endpoint.rcvdis()?.why;
        assert!(matches!(why, ConnectionError::Unreachable | ConnectionError::TimedOut), "{why:?}");
        assert_eq!(endpoint.state(), Ok(State::Idle));
        Ok(())
    });
}

#[test]
fn a_queue_is_answered_in_another_order_under_loss() {
    let server = async |node: Node| -> ProgramResult {
        let listening = open(&node, PORT, 6)?;
        let mut calls: Vec<Indication> = Vec::new();
        for _ in 0..6 {
            calls.push(listening.listen().await?);
        }
        calls.sort_by_key(|call| call.from.port);
        for (index, call) in calls.iter().enumerate().rev() {
            if index % 2 == 1 {
                listening.snddis(Some(call.sequence))?;
                continue;
            }
            let onto = TransportEndpoint::open(node.host(), Provider::Tcp);
            listening.accept(&onto, call.sequence)?;
            let word = receive_all(&onto).await?;
            assert_eq!(word, call.from.port.to_be_bytes());
            onto.sndrel()?;
        }
        assert_eq!(listening.state(), Ok(State::Idle));
        node.sleep(Duration::from_secs(60)).await;
        Ok(())
    };
    between(3, 30, server, async |node: Node| {
        let mut callers = Vec::new();
        for port in 4000..4006 {
            let endpoint = open(&node, port, 0)?;
            endpoint.connect(server_at(&node)).await?;
            endpoint.snd(&port.to_be_bytes(), SendFlags::default()).await?;
            callers.push(endpoint);
        }
        let mut found = Vec::new();
        for endpoint in &callers {
            if endpoint.look()? != Some(Look::Disconnect) {
                // It may be rejected at any moment.
                let _ = endpoint.sndrel();
            }
        }
        for endpoint in callers {
            match endpoint.event().await? {
                Look::OrderlyRelease => found.push(endpoint.rcvrel().map(|()| 'o')?),
                Look::Disconnect => found.push(endpoint.rcvdis().map(|_| 'x')?),
                other => panic!("{other}"),
            }
        }
        assert_eq!(found.into_iter().collect::<String>(), "oxoxox");
        Ok(())
    });
}

#[test]
fn a_peer_that_never_reads_stops_the_sender_and_loses_nothing_that_was_sent() {
    let received = Rc::new(RefCell::new(Vec::new()));
    let (into, from) = (received.clone(), received);
    let server = async move |node: Node| -> ProgramResult {
        let endpoint = open(&node, PORT, 1)?;
        endpoint.optmgmt(OptionRequest::Negotiate, &[TransportOption::ReceiveBuffer(40_000)])?;
        let call = endpoint.listen().await?;
        endpoint.accept(&endpoint, call.sequence)?;
        node.sleep(Duration::from_secs(200)).await;
        assert_eq!(endpoint.look(), Ok(Some(Look::Data)));
        *into.borrow_mut() = receive_all(&endpoint).await?;
        endpoint.sndrel()?;
        Ok(())
    };
    between(5, 20, server, async move |node: Node| {
        let endpoint = open(&node, 0, 0)?;
        endpoint.optmgmt(OptionRequest::Negotiate, &[TransportOption::SendBuffer(50_000)])?;
        endpoint.connect(server_at(&node)).await?;
        let data = pattern(4 << 20);
        let (mut sent, mut at_half_time) = (0, 0);
        for second in 0..180 {
            // Each second everything that there is room for is sent.
            let why = loop {
                match endpoint.try_snd(&data[sent..], SendFlags::default()) {
                    Ok(count) => sent += count,
                    Err(why) => break why,
                }
            };
            assert_eq!(why, Error::Flow);
            if second == 90 {
                at_half_time = sent;
            }
            node.sleep(Duration::from_secs(1)).await;
        }
        // Both buffers are full. A probe of the closed window may still carry a byte.
        assert!((50_000..200_000).contains(&sent) && sent - at_half_time < 1000, "{at_half_time} {sent}");
        assert_eq!(endpoint.event().await, Ok(Look::GoData));
        endpoint.sndrel()?;
        assert_eq!(endpoint.event().await, Ok(Look::OrderlyRelease));
        endpoint.rcvrel()?;
        assert!(*from.borrow() == data[..sent]);
        Ok(())
    });
}

#[test]
fn datagrams_arrive_or_are_lost_whole() {
    let server = async |node: Node| -> ProgramResult {
        let endpoint = TransportEndpoint::open(node.host(), Provider::Udp);
        endpoint.bind(Some(Endpoint::new(Ipv4Addr::UNSPECIFIED, PORT)), 0)?;
        let (mut place, mut count) = ([0; 2000], 0);
        loop {
            let got = endpoint.rcvudata(&mut place).await?;
            if got.length_bytes == 0 {
                break;
            }
            assert!(place[..got.length_bytes] == pattern(got.length_bytes)[..] && !got.more);
            count += 1;
        }
        assert!((100..195).contains(&count), "{count}");
        Ok(())
    };
    between(2, 100, server, async |node: Node| {
        let endpoint = TransportEndpoint::open(node.host(), Provider::Udp);
        endpoint.bind(None, 0)?;
        for length in 1..=200 {
            endpoint.sndudata(&pattern(length), server_at(&node)).await?;
            node.sleep(Duration::from_millis(1)).await;
        }
        for _ in 0..20 {
            // The last one says that it is over; the server may be gone by then.
            if endpoint.sndudata(b"", server_at(&node)).await.is_err() {
                break;
            }
            node.sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    });
}

/// Random calls on four endpoints for a while, to ports of the other host from `first` on; the states that were reached.
async fn wander(node: Node, (other, first): (&str, u16), seed: u64, reached: Rc<RefCell<BTreeSet<State>>>) {
    let mut random = Random::from_number(seed);
    let providers = [Provider::Tcp, Provider::Tcp, Provider::Tcp, Provider::Udp];
    let mut walkers = providers.map(|provider| Walker::new(node.host(), provider));
    for _ in 0..1_500 {
        let place = random.public_below(3) as u16;
        let own = Endpoint::new(Ipv4Addr::UNSPECIFIED, 700 + place);
        let to = Endpoint::new(node.lookup(other).unwrap(), first + place);
        step(node.host(), &mut random, &mut walkers, [own, to]);
        reached.borrow_mut().extend(walkers.iter().map(Walker::state));
        node.sleep(Duration::from_millis(u64::from(random.public_below(40)))).await;
    }
}

#[test]
fn random_calls_between_two_hosts_under_loss_never_leave_the_table() {
    let reached: Rc<RefCell<BTreeSet<State>>> = Rc::default();
    for seed in 0..30 {
        let (here, there) = (reached.clone(), reached.clone());
        let server = async move |node: Node| -> ProgramResult {
            wander(node, ("client", 900), 2 * seed, there).await;
            Ok(())
        };
        between(seed, 50, server, async move |node: Node| {
            // Calls go one way, and those of the server are refused: two that call each other from ports that both know
            // would open one connection from both sides.
            wander(node, ("server", 700), 2 * seed + 1, here).await;
            Ok(())
        });
    }
    assert_eq!(reached.take().into_iter().collect::<Vec<_>>(), State::ALL);
}
