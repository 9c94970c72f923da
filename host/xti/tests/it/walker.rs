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
    /// One of the indications that it received, or a number that is none.
    fn sequence(&self, random: &mut Random) -> Sequence {
        match self.calls.len() as u32 {
            0 => Sequence(random.public_below(9)),
            count => self.calls[random.public_below(count) as usize],
        }
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
    let walker = &mut walkers[index];
    match random.public_below(19) {
        0 if walker.at.state == State::Uninit => *walker = Walker::new(host, walker.endpoint.provider()),
        draw @ 0..5 => manage(walker, draw, random, own),
        draw @ 5..10 => open(walker, draw, to),
        10 | 11 => accept(walkers, [index, other], random),
        draw @ 12..18 => carry(walker, draw, random),
        _ => datagrams(walker, random, to),
    }
}

fn manage(walker: &mut Walker, draw: u32, random: &mut Random, own: Endpoint) {
    match draw {
        0 => {}
        1 | 2 => {
            let done = walker.endpoint.bind(Some(own), random.public_below(3) as usize);
            walker.took(Event::Bind, &done);
        }
        3 => {
            let done = walker.endpoint.unbind();
            walker.took(Event::Unbind, &done);
        }
        _ if random.public_below(4) == 0 => {
            let done = walker.endpoint.close();
            walker.took(Event::Closed, &done);
        }
        _ => {
            let option = TransportOption::NoDelay(random.public_below(2) == 0);
            let done = walker.endpoint.optmgmt(OptionRequest::Negotiate, &[option]);
            walker.took(Event::Optmgmt, &done);
        }
    }
}

fn open(walker: &mut Walker, draw: u32, to: Endpoint) {
    match draw {
        5 | 6 => {
            let done = walker.endpoint.try_connect(to);
            walker.took(Event::Connect1, &done);
        }
        7 => {
            let done = walker.endpoint.try_rcvconnect();
            walker.took(Event::Rcvconnect, &done);
        }
        _ => {
            let done = walker.endpoint.try_listen();
            walker.took(Event::Listen, &done);
            walker.calls.extend(done.map(|call| call.sequence));
        }
    }
}

fn accept(walkers: &mut [Walker], [index, other]: [usize; 2], random: &mut Random) {
    let sequence = walkers[index].sequence(random);
    let done = walkers[index].endpoint.accept(&walkers[other].endpoint, sequence);
    let event = Event::accept(walkers[index].at.outstanding, index == other);
    if done.is_ok() {
        walkers[index].took(event, &done);
        if index != other {
            walkers[other].took(Event::PassConn, &done);
        }
    }
}

fn carry(walker: &mut Walker, draw: u32, random: &mut Random) {
    match draw {
        12 => {
            let bytes = vec![7; random.public_below(40_000) as usize];
            let flags = if random.public_below(3) == 0 { SendFlags::EXPEDITED } else { SendFlags::default() };
            let done = walker.endpoint.try_snd(&bytes, flags);
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
            let (event, sequence) = (Event::snddis(walker.at.outstanding), walker.sequence(random));
            let done = walker.endpoint.snddis(Some(sequence));
            walker.took(event, &done);
        }
        _ => {
            let event = Event::rcvdis(walker.at.outstanding);
            let done = walker.endpoint.rcvdis();
            walker.took(event, &done);
        }
    }
}

fn datagrams(walker: &mut Walker, random: &mut Random, to: Endpoint) {
    let (event, done) = match random.public_below(3) {
        0 => (Event::Sndudata, walker.endpoint.try_sndudata(&[7; 700], to)),
        1 => (Event::Rcvudata, walker.endpoint.try_rcvudata(&mut [0; 500]).map(drop)),
        _ => (Event::Rcvuderr, walker.endpoint.rcvuderr().map(drop)),
    };
    walker.took(event, &done);
}
