//! Random calls on several endpoints at a time: whatever happens, each endpoint stays within the table.

use inhost_base::{Duration, Random};
use inhost_socket::Host;
use inhost_xti::{
    Error, Event, OptionRequest, Position, Provider, SendFlags, Sequence, State, TransportEndpoint,
    TransportOption,
};

use crate::common::{here, host, run};

/// An endpoint beside a position that follows the table by itself.
struct Walker {
    endpoint: TransportEndpoint,
    at: Position,
    calls: Vec<Sequence>,
}

impl Walker {
    fn new(host: &Host, provider: Provider) -> Walker {
        let at = Position::default().after(Event::Opened).unwrap();
        Walker { endpoint: TransportEndpoint::open(host, provider), at, calls: Vec::new() }
    }
    /// The result of a call: a success must be an entry of the table, and out of turn must be none.
    fn took<T>(&mut self, event: Event, done: &Result<T, Error>) {
        let next = self.at.after(event);
        match done {
            Ok(_) => self.at = next.unwrap_or_else(|| panic!("{event:?} succeeded in {:?}", self.at)),
            Err(Error::OutState) => assert_eq!(next, None, "{event:?} was out of turn in {:?}", self.at),
            Err(Error::BadEndpoint) => assert_eq!(self.at.state, State::Uninit),
            // These two lead to a state though they are errors.
            Err(Error::NoData) if event == Event::Connect1 => {
                self.at = self.at.after(Event::Connect2).unwrap();
            }
            Err(_) => {}
        }
    }
}

const PORTS: u32 = 4;

fn step(host: &Host, random: &mut Random, walkers: &mut [Walker]) {
    let index = random.public_below(walkers.len() as u32) as usize;
    let other = random.public_below(walkers.len() as u32) as usize;
    let to = here(700 + random.public_below(PORTS) as u16);
    let queue_length = random.public_below(3) as usize;
    let bytes = vec![7; random.public_below(40_000) as usize];
    let walker = &mut walkers[index];
    let sequence = match walker.calls.len() as u32 {
        0 => Sequence(random.public_below(9)),
        count => walker.calls[random.public_below(count) as usize],
    };
    match random.public_below(19) {
        0 => {
            if walker.at.state == State::Uninit {
                *walker = Walker::new(host, walker.endpoint.provider());
            }
        }
        1 | 2 => {
            let done = walker.endpoint.bind(Some(to), queue_length);
            walker.took(Event::Bind, &done);
        }
        3 => {
            let done = walker.endpoint.unbind();
            walker.took(Event::Unbind, &done);
        }
        4 if random.public_below(4) == 0 => {
            let done = walker.endpoint.close();
            walker.took(Event::Closed, &done);
        }
        4 => {
            let option = TransportOption::NoDelay(queue_length == 0);
            let done = walker.endpoint.optmgmt(OptionRequest::Negotiate, &[option]);
            walker.took(Event::Optmgmt, &done);
        }
        5 | 6 => {
            let done = walker.endpoint.try_connect(to);
            walker.took(Event::Connect1, &done);
        }
        7 => {
            let done = walker.endpoint.try_rcvconnect();
            walker.took(Event::Rcvconnect, &done);
        }
        8 | 9 => {
            let done = walker.endpoint.try_listen();
            walker.took(Event::Listen, &done);
            walker.calls.extend(done.map(|call| call.sequence));
        }
        10 | 11 => {
            let [from, onto] = [&walkers[index].endpoint, &walkers[other].endpoint];
            let done = from.accept(onto, sequence);
            let event = Event::accept(walkers[index].at.outstanding, index == other);
            if done.is_ok() {
                walkers[index].took(event, &done);
                if index != other {
                    walkers[other].took(Event::PassConn, &done);
                }
            }
        }
        12 => {
            let done = walker
                .endpoint
                .try_snd(&bytes, SendFlags { expedited: queue_length == 2, ..SendFlags::default() });
            walker.took(Event::Snd, &done);
        }
        13 => {
            let done = walker.endpoint.try_rcv(&mut [0; 10_000]);
            walker.took(Event::Rcv, &done);
        }
        14 => {
            let done = walker.endpoint.sndrel();
            walker.took(Event::Sndrel, &done);
        }
        15 => {
            let done = walker.endpoint.rcvrel();
            walker.took(Event::Rcvrel, &done);
        }
        16 => {
            let event = Event::snddis(walker.at.outstanding);
            let done = walker.endpoint.snddis(Some(sequence));
            walker.took(event, &done);
        }
        17 => {
            let event = Event::rcvdis(walker.at.outstanding);
            let done = walker.endpoint.rcvdis();
            walker.took(event, &done);
        }
        _ => {
            let event = [Event::Sndudata, Event::Rcvudata, Event::Rcvuderr][queue_length];
            let done = match event {
                Event::Sndudata => walker.endpoint.try_sndudata(&bytes, to),
                Event::Rcvudata => walker.endpoint.try_rcvudata(&mut [0; 500]).map(drop),
                _ => walker.endpoint.rcvuderr().map(drop),
            };
            walker.took(event, &done);
        }
    }
}

#[test]
fn random_calls_never_leave_the_table() {
    let mut reached = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let host = host();
        let mut random = Random::from_number(seed);
        let providers =
            [Provider::Tcp, Provider::Tcp, Provider::Tcp, Provider::Tcp, Provider::Tcp, Provider::Udp];
        let mut walkers: Vec<Walker> =
            providers.into_iter().map(|provider| Walker::new(&host, provider)).collect();
        run(&host, async {
            for _ in 0..2_000 {
                step(&host, &mut random, &mut walkers);
                for walker in &walkers {
                    let expected = match walker.at.state {
                        State::Uninit => Err(Error::BadEndpoint),
                        state => Ok(state),
                    };
                    assert_eq!(walker.endpoint.state(), expected, "seed {seed}");
                    reached.insert(walker.at.state);
                }
                if random.public_below(3) == 0 {
                    host.sleep(Duration::from_millis(u64::from(random.public_below(20)))).await;
                }
            }
        });
        drop(walkers);
        host.stop();
    }
    assert_eq!(reached.into_iter().collect::<Vec<_>>(), State::ALL);
}
