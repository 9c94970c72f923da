//! Exchanges drawn from a seed. Our own stack plays along, so that what is drawn speaks of numbers that exist, and
//! an exchange whose outcome hangs on a few milliseconds is drawn again.

use super::compare::first_difference;
use super::exchange::{Exchange, Timed};
use super::view::View;
use super::watch::{Player, watch};
use super::{datagrams, opening, steps};
use crate::language::{CallKind, Expect, Presence, Segment, SocketCall, Step};
use crate::ours::{Offloads, Ours};
use crate::packet::Ends;
use inhost_base::{Duration, Instant, Random};
use inhost_wire::tcp::Flags;

/// How often a seed is drawn anew because its outcome is not defined.
const ATTEMPTS: u32 = 40;
/// Most steps after the opening.
const BODY_LIMIT_STEPS: u32 = 8;
/// No step begins its wait later than this.
const BUDGET: Duration = Duration::from_millis(1200);
/// The time that an exchange takes at most, the watching at its end included: two seconds, less what a busy machine is
/// late.
const LIMIT: Duration = Duration::from_millis(1700);
/// The shortest watching at the end.
const LEAST_TAIL: Duration = Duration::from_millis(60);
const TAILS_MILLIS: [u64; 4] = [60, 120, 300, 600];
/// A timer of ours that expires closer than this to a step makes the step wait for so long.
const MARGIN: Duration = Duration::from_millis(30);
/// What a host sends so soon is an answer and no timer's doing.
const ANSWER: Duration = Duration::from_millis(1);
/// Of a hundred gaps, how many are of which length in milliseconds.
const GAPS: [(u32, u64); 6] = [(45, 0), (17, 15), (16, 75), (10, 130), (8, 310), (4, 530)];

/// The exchange of `seed`; nothing where every attempt hung on milliseconds.
pub fn draw(seed: u64) -> Result<Option<Exchange>, String> {
    for attempt in 0..ATTEMPTS {
        let random = Random::from_number(seed.wrapping_mul(1000).wrapping_add(u64::from(attempt)));
        if let Some(exchange) = draw_once(seed, random)?
            && is_defined(&exchange)?
        {
            return Ok(Some(exchange));
        }
    }
    Ok(None)
}

fn draw_once(seed: u64, mut random: Random) -> Result<Option<Exchange>, String> {
    let (exchange, opening) = opening::headings(seed, &mut random);
    let mut side = Ours::new(&exchange.script(), Offloads::default())?;
    let ends = Ends::new(exchange.is_ipv6);
    let mut drawing = Drawing {
        random,
        player: Player::new(&mut side, ends),
        view: View::default(),
        exchange,
        clock: Instant::ZERO,
        looked: 0,
        stamps: opening.stamps,
        sack: opening.sack,
        most_written: usize::MAX,
        datagrams: false,
        held: false,
        is_too_long: false,
    };
    if opening.datagrams {
        let steps = drawing.below(BODY_LIMIT_STEPS);
        datagrams::draw(&mut drawing, steps)?;
        return drawing.finish();
    }
    opening::open(&mut drawing, opening)?;
    if drawing.datagrams && drawing.held {
        steps::blind(&mut drawing)?;
    }
    if opening.windows && drawing.held {
        steps::windows(&mut drawing)?;
    }
    let steps = 1 + drawing.random.public_below(BODY_LIMIT_STEPS);
    for _ in 0..steps {
        if drawing.has_time() {
            let gap = drawing.gap();
            steps::draw(&mut drawing, gap)?;
        }
    }
    drawing.finish()
}

/// Whether our own stack does the same where every step comes a little later or earlier.
fn is_defined(exchange: &Exchange) -> Result<bool, String> {
    let times = exchange.times();
    let mut seen = Vec::new();
    for shift in [|_, gap| gap, later, earlier, unsteady] {
        let mut clock = Instant::ZERO;
        let mut before = Duration::ZERO;
        let mut shifted = Vec::with_capacity(times.len());
        for (index, &time) in times.iter().enumerate() {
            clock += shift(index, time - before);
            before = time;
            shifted.push(clock);
        }
        let mut side = Ours::new(&exchange.script(), Offloads::default())?;
        seen.push(watch(exchange, &mut side, &shifted)?);
    }
    let (first, others) = seen.split_at(1);
    Ok(others.iter().all(|other| first_difference(exchange, &first[0], other).is_none()))
}
fn later(_index: usize, gap: Duration) -> Duration {
    gap + gap.divided_by(10) + Duration::from_millis(4)
}
fn earlier(_index: usize, gap: Duration) -> Duration {
    gap - gap.divided_by(8) - Duration::from_millis(5)
}
fn unsteady(index: usize, gap: Duration) -> Duration {
    gap + Duration::from_millis(if index.is_multiple_of(2) { 5 } else { 0 })
}

/// An exchange that is being drawn.
pub struct Drawing<'a> {
    pub random: Random,
    player: Player<'a>,
    pub view: View,
    pub exchange: Exchange,
    clock: Instant,
    /// Packets of the latest step that the view knows of.
    looked: usize,
    /// Whether timestamps were offered.
    pub stamps: bool,
    /// The most that one call writes: some segments.
    pub most_written: usize,
    /// Whether a datagram socket is open that sends nothing.
    pub datagrams: bool,
    /// Whether SACK was offered.
    pub sack: bool,
    /// Whether the application has the connection's socket.
    pub held: bool,
    /// It took more time than it may.
    is_too_long: bool,
}

impl Drawing<'_> {
    /// The exchange, where it takes no more time than it may.
    fn finish(mut self) -> Result<Option<Exchange>, String> {
        let tail = TAILS_MILLIS[self.below(TAILS_MILLIS.len() as u32) as usize];
        let left = LIMIT - self.clock.since(Instant::ZERO);
        self.exchange.tail = self.quiet(Duration::from_millis(tail).min(left.max(LEAST_TAIL)))?;
        Ok(Some(self.exchange).filter(|_| !self.is_too_long))
    }
    /// Whether there is time for another step.
    pub fn has_time(&self) -> bool {
        self.clock.since(Instant::ZERO) < BUDGET
    }
    /// A number below `limit`.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.random.public_below(limit)
    }
    /// How much may be written now: so much less than the congestion window takes that whether a host waits for room for
    /// more segments at once is not a question.
    pub fn room(&self) -> usize {
        let out = (self.view.written - self.view.host_acknowledged).max(0) as usize;
        self.most_written.saturating_mul(2).saturating_sub(out).clamp(1, self.most_written)
    }
    /// True so many times in a hundred.
    pub fn percent(&mut self, times: u32) -> bool {
        self.below(100) < times
    }
    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }
    /// The time before the next step.
    pub fn gap(&mut self) -> Duration {
        let mut drawn = self.below(100);
        for (share, millis) in GAPS {
            if drawn < share {
                return Duration::from_millis(millis);
            }
            drawn -= share;
        }
        Duration::ZERO
    }
    /// Lets `gap` pass, or longer where a timer of the host's expires at its end; how long it became.
    fn quiet(&mut self, mut gap: Duration) -> Result<Duration, String> {
        let from = self.clock;
        for _ in 0..8 {
            self.player.advance(from + gap)?;
            let last = self.look(from);
            // The longer one waits, the later the kernel may be.
            let margin = MARGIN + gap.divided_by(6);
            match last.filter(|&last| last > ANSWER && gap - last < margin) {
                Some(last) => gap = last + margin,
                None => break,
            }
        }
        self.clock = from + gap;
        self.is_too_long |= self.clock.since(Instant::ZERO) > LIMIT;
        Ok(gap)
    }
    /// Takes note of what the host sent; when the last of it was, counted from `from`.
    fn look(&mut self, from: Instant) -> Option<Duration> {
        let moment = self.player.watched().moments.last()?;
        for sent in &moment.sent[self.looked..] {
            self.view.sent(sent);
        }
        self.looked = moment.sent.len();
        moment.sent.last().map(|sent| sent.at.since(from))
    }
    /// The next step, a while after the one before.
    pub fn put(&mut self, gap: Duration, mut step: Step) -> Result<(), String> {
        if let Step::In(segment) = &mut step
            && segment.flags.syn()
            && segment.options.mss == Presence::Unsaid
            && self.exchange.steps.iter().any(|timed| timed.step.sets("mss"))
        {
            // Linux takes the socket's own size for what the peer does not say (RFC 9293 MUST-15 says 536).
            segment.options.mss = Presence::Is(1000);
        }
        let after = self.quiet(gap)?;
        self.player.stamp(self.clock);
        self.player.perform(&step)?;
        let came = self.player.watched().moments.last().and_then(|moment| moment.came.clone());
        self.view.happened(&step, came.as_deref());
        self.looked = 0;
        self.exchange.steps.push(Timed { after, step });
        self.player.advance(self.clock)?;
        self.look(self.clock);
        Ok(())
    }
    /// A call that follows.
    pub fn call(&mut self, gap: Duration, what: CallKind) -> Result<(), String> {
        let (on, names) = match what {
            CallKind::Accept => ("listener", Some("main".to_owned())),
            CallKind::Listen { .. } => ("listener", None),
            CallKind::Datagrams { .. } | CallKind::Send { .. } | CallKind::Receive { .. } => {
                ("datagrams", None)
            }
            _ => ("main", None),
        };
        let call = SocketCall { what, on: on.to_owned(), names, expect: Expect::Any };
        self.put(gap, Step::SocketCall(call))
    }
    /// A segment of the peer's that acknowledges everything and carries nothing.
    pub fn segment(&self) -> Segment {
        Segment {
            peer: 1,
            flags: Flags::ACK,
            acknowledgment: Some(self.view.host_next),
            sequence: Some(self.view.peer_next),
            ..Segment::default()
        }
    }
}
