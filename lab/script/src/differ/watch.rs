//! An exchange played on one side, and everything that the host did in it.

use super::exchange::Exchange;
use super::sent::Sent;
use crate::drive::{Driver, came_text};
use crate::language::Step;
use crate::packet::Ends;
use crate::side::Side;
use inhost_base::{Duration, Instant};

/// Most packets that one step may make a host send; whatever comes after them is not looked at.
const SENT_LIMIT: usize = 200;

/// Behaviour of a host.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// For each step, what came of it and what the host sent until the next one.
    pub moments: Vec<Moment>,
    /// When each step happened, and when the watching ended.
    pub times: Vec<Instant>,
    /// Everything, for a person.
    pub trace: Vec<String>,
    /// Largest lateness of the player.
    pub lateness: Duration,
}

/// From one step to the next.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// Result of a call or a readiness check.
    pub came: Option<String>,
    /// A packet of the host.
    pub sent: Vec<Sent>,
}

/// Plays `exchange` on `side`, each step at its time, or as soon after it as the player can.
pub fn watch(exchange: &Exchange, side: &mut dyn Side, times: &[Instant]) -> Result<Watched, String> {
    let mut player = Player::new(side, Ends::new(exchange.is_ipv6));
    let planned = exchange.times();
    for ((timed, &at), &stamp) in exchange.steps.iter().zip(times).zip(&planned) {
        player.advance(at)?;
        // What the peer stamps is the same however late a step is.
        player.stamp(Instant::ZERO + stamp);
        player.perform(&timed.step)?;
    }
    player.advance(times.last().copied().unwrap_or(Instant::ZERO))?;
    Ok(player.finish())
}

/// A side to which steps happen one by one.
pub struct Player<'a> {
    driver: Driver<'a>,
    watched: Watched,
}

impl<'a> Player<'a> {
    /// Before the first step.
    pub fn new(side: &'a mut dyn Side, ends: Ends) -> Self {
        Player { driver: Driver::new(side, ends), watched: Watched::default() }
    }
    /// Lets time pass; what the host sends belongs to the latest step.
    pub fn advance(&mut self, until: Instant) -> Result<(), String> {
        while let Some(arrived) = self.driver.next_arrived(until)? {
            let sent = Sent::new(&arrived, self.driver.ends());
            if let Some(moment) = self.watched.moments.last_mut()
                && moment.sent.len() < SENT_LIMIT
            {
                moment.sent.push(sent);
            }
        }
        let now = self.driver.side.now();
        self.watched.lateness = self.watched.lateness.max(now.since(until));
        self.watched.times.push(now.max(until));
        Ok(())
    }
    /// What the peer's timestamps tell from now on.
    pub fn stamp(&mut self, at: Instant) {
        self.driver.peer_clock = Some(at);
    }
    /// The next step happens. An error is one of the wire, not of the host.
    pub fn perform(&mut self, step: &Step) -> Result<(), String> {
        let came = match step {
            Step::In(segment) => {
                self.driver.send(segment)?;
                None
            }
            Step::InIcmp(icmp) => {
                let sent = self.driver.send_icmp(icmp)?;
                (!sent).then(|| "cannot".to_owned())
            }
            Step::InDatagram(datagram) => {
                self.driver.send_datagram(datagram)?;
                None
            }
            Step::SocketCall(call) => {
                let came = self.driver.call(call).map(|came| came_text(&came));
                Some(self.or_cannot(came))
            }
            Step::Assert(said) if said.ready => {
                let is_ready = self.driver.side.is_ready(&said.on, &said.field);
                let word = is_ready.map(|yes| if yes == Some(true) { "yes" } else { "no" }.to_owned());
                Some(self.or_cannot(word))
            }
            Step::Wait => None,
            _ => return Err("a step that is neither an arrival nor a call".into()),
        };
        self.watched.moments.push(Moment { came, sent: Vec::new() });
        Ok(())
    }
    /// A call that cannot be made, for want of its socket or in the state of it; the sides have no common words for why.
    fn or_cannot(&mut self, came: Result<String, String>) -> String {
        came.unwrap_or_else(|why| {
            self.driver.trace.add(self.driver.side.now(), &format!("the call before: {why}"));
            "cannot".to_owned()
        })
    }
    /// Observations so far.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }
    /// The observations.
    pub fn finish(mut self) -> Watched {
        self.watched.trace = self.driver.trace.lines().to_vec();
        self.watched
    }
}
