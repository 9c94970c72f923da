//! From accounts to a verdict.

mod confidence;
pub mod figures;
mod text;
mod words;

use crate::cause::{Cause, Sign};
use crate::conversation::{Conversation, Direction};
use crate::live::{self, Known};
use crate::report::{Claim, DirectionReport, Finding, Retransmissions, RoundTrip, Share, Vantage, Verdict};

/// A leg below this part of the round trip is the near one.
const NEAR_PART: u64 = 10;
/// Below this round trip the ends are too near to each other to tell where the capture was taken.
const LEAST_ROUND_TRIP_NS: u64 = 300_000;
/// The first retransmission of a SYN (RFC 6298 §2.1), a little less, and how many round trips that is at least.
const INITIAL_RTO_NS: u64 = 950_000_000;
const LOST_SYN_TIMES: u64 = 5;
/// A queueing delay that is called bufferbloat, with a round trip of this many times the least.
const BLOAT_NS: u64 = 50_000_000;
const BLOAT_TIMES: u64 = 3;
/// A first cause is named from this share on: a smaller one is printed as 0 %.
const LEAST_PER_CENT: f64 = 0.5;
/// A second cause is named from this share on.
const SECOND_PER_CENT: f64 = 20.0;

/// What the judging functions know.
pub(crate) struct Case<'a> {
    of: &'a Conversation,
    vantage: Vantage,
    round_trip: Option<RoundTrip>,
    /// The direction that is judged: 0 or 1.
    direction: usize,
    shares: &'a [Share],
    cause: Cause,
    second: Option<Share>,
}

impl Case<'_> {
    fn sender(&self) -> &Direction {
        &self.of.directions[self.direction]
    }
    /// Name of an end.
    fn name(&self, side: usize) -> &'static str {
        if side == 0 { "client" } else { "server" }
    }
    fn sender_name(&self) -> &'static str {
        self.name(self.direction)
    }
    fn receiver_name(&self) -> &'static str {
        self.name(1 - self.direction)
    }
    fn share(&self, cause: Cause) -> f64 {
        self.shares.iter().find(|share| share.cause == cause).map_or(0.0, |share| share.per_cent)
    }
    fn round_trip_ns(&self) -> u64 {
        self.round_trip.map_or(0, |of| of.least_ns)
    }
    /// The highest rate at which data was acknowledged, in bytes a second: at least the mean, which is all that is known where
    /// holes hide when data arrived.
    fn peak_rate(&self) -> u64 {
        let (of, lasted_ns) = (self.sender(), self.sender().account.total_ns());
        let mean = if lasted_ns == 0 { 0 } else { figures::window_rate(of.bytes, lasted_ns) };
        of.peak_rate.best().max(mean)
    }
    /// A SYN that was answered with a reset.
    fn is_refused(&self) -> bool {
        let [client, server] = &self.of.directions;
        self.of.reset_by == Some(1) && client.syns > 0 && server.syns == 0
    }
    /// Nothing but SYNs of the client.
    fn is_unanswered(&self) -> bool {
        let [client, server] = &self.of.directions;
        client.syns > 0 && client.segments == u64::from(client.syns) && server.segments == 0
    }
}

/// The verdict on a connection that is over, or of which a host told what it knows.
pub(crate) fn judge(mut conversation: Box<Conversation>, known: Option<&Known>) -> Verdict {
    let mut round_trip = round_trip(&conversation);
    let mut vantage = vantage(&conversation, round_trip);
    if let Some(known) = known {
        let side = usize::from(conversation.flow.source != known.local);
        vantage = [Vantage::Client, Vantage::Server][side];
        // The host has measured more than what is left of the frames shows.
        let knows_less = |ns: &u64| round_trip.is_none_or(|seen| *ns < seen.least_ns);
        if let Some(ns) = known.round_trip_ns.filter(knows_less) {
            round_trip = Some(RoundTrip {
                least_ns: ns,
                largest_ns: round_trip.map_or(ns, |seen| seen.largest_ns),
                client_ns: if side == 0 { 0 } else { ns },
                server_ns: if side == 0 { ns } else { 0 },
            });
        }
        live::impose(&mut conversation.directions[side].account, known);
        let age_ns = conversation.directions[side].account.total_ns();
        conversation.directions[1 - side].account.stretch_to(age_ns);
        // The recorder may have a part of it only.
        for (direction, bytes) in [(side, known.bytes[0]), (1 - side, known.bytes[1])] {
            let of = &mut conversation.directions[direction];
            of.bytes = of.bytes.max(bytes);
        }
    }
    name_lost_syns(&mut conversation, vantage, round_trip);
    name_syn_drops(&mut conversation, vantage);
    marks_bufferbloat(&mut conversation, round_trip);
    let of = &*conversation;
    let shares = [shares(&of.directions[0]), shares(&of.directions[1])];
    let direction = main_direction(of, &shares);
    let (direction, cause, second) = main_cause(direction, &shares);
    let case = Case { of, vantage, round_trip, direction, shares: &shares[direction], cause, second };
    let lost_ns = shares[direction].iter().filter(|share| !share.cause.is_idle()).map(|share| share.ns).sum();
    let (diagnosis, remedy) = (words::diagnosis(&case), words::remedy(&case));
    let (confidence, confidence_reasons) = confidence::confidence(&case);
    let (evidence, unknown) = (evidence(&case), confidence::unknown(&case));
    let [client, server] = shares.clone();
    let total_ns = of.directions.iter().map(|of| of.account.total_ns()).max().unwrap_or(0);
    Verdict {
        client: of.flow.source.to_string(),
        server: of.flow.destination.to_string(),
        interface: of.flow.interface,
        started_ns: of.started_ns,
        duration_ns: of.last_ns.saturating_sub(of.started_ns).max(total_ns),
        frames: of.frames,
        first_frame: of.first_frame,
        last_frame: of.last_frame,
        has_handshake: of.has_handshake,
        vantage,
        round_trip,
        directions: [direction_report(of, 0, client), direction_report(of, 1, server)],
        direction,
        cause,
        lost_ns,
        diagnosis,
        remedy,
        evidence,
        findings: findings(of),
        confidence,
        confidence_reasons,
        unknown,
    }
}

fn round_trip(of: &Conversation) -> Option<RoundTrip> {
    let [client, server] = &of.legs;
    if client.least_ns().is_none() && server.least_ns().is_none() {
        return None;
    }
    let (client_ns, server_ns) = (client.least_ns().unwrap_or(0), server.least_ns().unwrap_or(0));
    Some(RoundTrip {
        least_ns: client_ns + server_ns,
        largest_ns: client.largest_ns() + server.largest_ns(),
        client_ns,
        server_ns,
    })
}

/// The end whose leg is short has the capture.
fn vantage(of: &Conversation, round_trip: Option<RoundTrip>) -> Vantage {
    let both = of.legs.iter().all(|leg| leg.least_ns().is_some());
    match round_trip {
        Some(of) if both && of.least_ns >= LEAST_ROUND_TRIP_NS => {
            if of.client_ns <= of.least_ns / NEAR_PART {
                Vantage::Client
            } else if of.server_ns <= of.least_ns / NEAR_PART {
                Vantage::Server
            } else {
                Vantage::Middle
            }
        }
        _ => Vantage::Unknown,
    }
}

/// A handshake that takes a retransmission timer's time, where later round trips are far shorter, lost a SYN before the
/// capture. At the server it is the server that was slow: what it loses behind the capture it sends again.
fn name_lost_syns(of: &mut Conversation, vantage: Vantage, round_trip: Option<RoundTrip>) {
    if vantage == Vantage::Server {
        return;
    }
    let least_ns = round_trip.map_or(0, |trip| trip.least_ns);
    for direction in &mut of.directions {
        let opening_ns = direction.account.of(Cause::Opening);
        if of.has_handshake && opening_ns >= INITIAL_RTO_NS && opening_ns >= LOST_SYN_TIMES * least_ns {
            direction.account.reassign(Cause::Opening, Cause::SynLoss, opening_ns - 2 * least_ns);
        }
    }
}

/// A SYN that arrives at the server and is not answered was not lost on the path.
fn name_syn_drops(of: &mut Conversation, vantage: Vantage) {
    if vantage == Vantage::Server && of.directions[1].syns == 1 && of.directions[0].syns > 1 {
        for direction in &mut of.directions {
            direction.account.reassign(Cause::SynLoss, Cause::AcceptQueue, u64::MAX);
        }
    }
}

fn marks_bufferbloat(of: &mut Conversation, round_trip: Option<RoundTrip>) {
    let Some(trip) = round_trip else { return };
    let (least, largest) = (trip.least_ns, trip.largest_ns);
    for side in [0, 1] {
        let direction = &mut of.directions[side];
        let longest = direction.account.longest(Cause::BottleneckRate);
        let is_loaded = direction.account.of(Cause::BottleneckRate) > 0;
        if is_loaded && largest >= least + BLOAT_NS && largest >= BLOAT_TIMES * least {
            direction.evidence.mark(Sign::Bufferbloat, longest.to_frame);
        }
    }
}

fn shares(direction: &Direction) -> Vec<Share> {
    let total = direction.account.total_ns();
    let share = |cause| {
        let ns = direction.account.of(cause);
        let per_cent = if total == 0 { 0.0 } else { ns as f64 * 100.0 / total as f64 };
        Share { cause, ns, per_cent }
    };
    let mut shares: Vec<Share> =
        Cause::ALL.iter().map(|&cause| share(cause)).filter(|share| share.ns > 0).collect();
    shares.sort_by_key(|share| (std::cmp::Reverse(share.ns), share.cause));
    shares
}

/// The direction with more data; of two with little, the one that lost more time.
fn main_direction(of: &Conversation, shares: &[Vec<Share>; 2]) -> usize {
    let [there, back] = of.directions.each_ref().map(|direction| direction.bytes);
    if there.max(back) >= 2 * there.min(back) + 1000 {
        return usize::from(back > there);
    }
    let lost = |shares: &[Share]| -> u64 {
        shares.iter().filter(|share| !share.cause.is_idle()).map(|share| share.ns).sum()
    };
    usize::from(lost(&shares[1]) > lost(&shares[0]))
}

/// The largest share, and the next if it is large. Where a direction waits for the peer's application, the other
/// direction says why.
fn main_cause(direction: usize, shares: &[Vec<Share>; 2]) -> (usize, Cause, Option<Share>) {
    let ranked = |direction: usize| {
        let mut named = shares[direction].iter().filter(|share| share.cause != Cause::Closed);
        (named.next().copied(), named.next().copied())
    };
    // A host without frames knows nothing of its peer's direction.
    let is_unknown = |side: usize| shares[side].first().is_none_or(|share| share.cause == Cause::Unknown);
    let direction =
        if is_unknown(direction) && !is_unknown(1 - direction) { 1 - direction } else { direction };
    let (mut direction, (mut first, mut second)) = (direction, ranked(direction));
    if first.is_some_and(|first| first.cause == Cause::AwaitingPeer) {
        let other = ranked(1 - direction);
        if other.0.is_some_and(|first| first.cause != Cause::AwaitingPeer) {
            (direction, (first, second)) = (1 - direction, other);
        }
    }
    let second = second.filter(|second| second.per_cent >= SECOND_PER_CENT);
    // What took no time to speak of is not the matter.
    let first = first.filter(|first| first.per_cent >= LEAST_PER_CENT);
    let alone = if shares[direction].is_empty() { Cause::Unknown } else { Cause::Closed };
    (direction, first.map_or(alone, |first| first.cause), second)
}

fn direction_report(of: &Conversation, side: usize, shares: Vec<Share>) -> DirectionReport {
    let direction = &of.directions[side];
    let (total, needless, spurious) = direction.retransmissions();
    DirectionReport {
        bytes: direction.bytes,
        segments: direction.segments,
        shares,
        retransmissions: Retransmissions { total, needless, spurious },
        largest_window_bytes: direction.largest_window_bytes,
        peak_flight_bytes: direction.peak_flight as u64,
        mss_bytes: direction.mss_bytes,
        window_scale: of.scale(1 - side),
    }
}

fn findings(of: &Conversation) -> Vec<Finding> {
    let of_directions = [Some(0), Some(1), None];
    let mut findings: Vec<Finding> = of_directions
        .into_iter()
        .flat_map(|direction| {
            let evidence = direction.map_or(&of.evidence, |side: usize| &of.directions[side].evidence);
            evidence.iter().map(move |(sign, found)| Finding {
                sign,
                direction,
                count: found.count,
                frames: found.frames.clone(),
            })
        })
        .filter(|found| {
            // One large segment that is lost twice is not a black hole.
            found.sign != Sign::MtuBlackHole
                || found.direction.is_some_and(|side| of.directions[side].has_black_hole())
        })
        .collect();
    findings.sort_by_key(|found| found.sign);
    findings
}

/// The claims behind the diagnosis.
fn evidence(case: &Case<'_>) -> Vec<Claim> {
    let mut claims = Vec::new();
    let sender = case.sender();
    for cause in [Some(case.cause), case.second.map(|second| second.cause)].into_iter().flatten() {
        let longest = sender.account.longest(cause);
        let mut frames = vec![longest.from_frame, longest.to_frame];
        frames.retain(|&frame| frame > 0);
        frames.sort_unstable();
        frames.dedup();
        if longest.ns > 0 && !frames.is_empty() {
            let longest = figures::time(longest.ns);
            claims.push(Claim { claim: format!("longest wait, {}: {longest}", cause.text()), frames });
        }
        for &sign in words::signs(cause) {
            for evidence in [&sender.evidence, &case.of.evidence] {
                if evidence.count(sign) > 0 {
                    claims.push(Claim {
                        claim: format!("{}: {}", sign.text(), evidence.count(sign)),
                        frames: evidence.frames(sign).to_vec(),
                    });
                }
            }
        }
    }
    claims
}
