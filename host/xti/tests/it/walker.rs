//! Random calls on endpoints beside positions that follow the table by themselves. The simulator's tests walk, too.

use inhost_base::{Endpoint, Random};
use inhost_socket::Host;
use inhost_xti::{
    Error, Event, OptionRequest, Position, Provider, SendFlags, Sequence, State, TransportEndpoint,
    TransportOption,
};

/// An endpoint beside a position that follows the table by itself.
pub struct Walker {
    endpoint: TransportEndpoint,
    at: Position,
    calls: Vec<Sequence>,
}

impl Walker {
    pub fn new(host: &Host, provider: Provider) -> Walker {
        let at = Position::default().after(Event::Opened).unwrap();
        Walker { endpoint: TransportEndpoint::open(host, provider), at, calls: Vec::new() }
    }
    /// The state of the endpoint, which must be that of the position.
    pub fn state(&self) -> State {
        let expected = match self.at.state {
            State::Uninit => Err(Error::BadEndpoint),
            state => Ok(state),
        };
        assert_eq!(self.endpoint.state(), expected);
        self.at.state
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

/// One call of one of the walkers; addresses are of `own` to bind and `to` to call.
pub fn step(host: &Host, random: &mut Random, walkers: &mut [Walker], [own, to]: [Endpoint; 2]) {
    let index = random.public_below(walkers.len() as u32) as usize;
    let other = random.public_below(walkers.len() as u32) as usize;
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
            let done = walker.endpoint.bind(Some(own), queue_length);
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
