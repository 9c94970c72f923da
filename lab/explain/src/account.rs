//! The account of a direction: every nanosecond belongs to one cause.
//!
//! Why time was spent is often known only when it is over, so time goes to open rows first: those of a known cause,
//! and three whose cause the next event decides. [`Account::settle`] names the cause; [`Account::seize`] gives all that
//! is open to one, as a retransmission timeout does.

use crate::cause::Cause;

/// Where time goes while it passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Row {
    /// The cause is known.
    Known(Cause),
    /// Data is in flight and more may be sent.
    Flight,
    /// Nothing is in flight.
    Idle,
    /// The receiver tells of a hole.
    Hole,
}

/// The longest single wait for a cause.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Longest {
    pub(crate) ns: u64,
    pub(crate) from_frame: u64,
    pub(crate) to_frame: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Account {
    start_ns: u64,
    cursor_ns: u64,
    settled: [u64; Cause::COUNT],
    open: [u64; Cause::COUNT],
    /// In flight, before and since the last acknowledgment of new data.
    flight_before: u64,
    flight: u64,
    idle: u64,
    hole: u64,
    /// What flight was named since then, which a timeout takes back.
    flight_named: [u64; Cause::COUNT],
    longest: [Longest; Cause::COUNT],
    /// When each cause held, where somebody wants to draw it.
    spans: Option<Spans>,
}

/// The most spans that are kept.
const MAX_SPANS: usize = 200_000;

/// Times and what held, in order and without gaps, as far as there is room.
#[derive(Clone, Default, Debug)]
struct Spans {
    all: Vec<Span>,
    /// All before are named.
    named: usize,
}

/// From one moment to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// A cause that is known once the account is settled.
    row: Row,
    is_named: bool,
    /// New data was acknowledged since, so that it is not a timeout's.
    is_before: bool,
}

impl Span {
    #[cfg(feature = "draw")]
    pub(crate) fn cause(&self) -> Cause {
        match self.row {
            Row::Known(cause) => cause,
            _ => Cause::Unknown,
        }
    }
}

impl Spans {
    fn add(&mut self, from_ns: u64, to_ns: u64, row: Row) {
        let has_room = self.all.len() < MAX_SPANS;
        match self.all.last_mut() {
            Some(last) if last.row == row && !last.is_named && !last.is_before => last.to_ns = to_ns,
            _ if has_room => {
                self.all.push(Span { from_ns, to_ns, row, is_named: false, is_before: false });
            }
            _ => {}
        }
    }
    /// Names those that are open: each as `name` says, or it stays open.
    fn name(&mut self, name: impl Fn(&Span) -> Option<Cause>) {
        for span in self.all[self.named..].iter_mut().filter(|span| !span.is_named) {
            if let Some(cause) = name(span) {
                (span.row, span.is_named) = (Row::Known(cause), true);
            }
        }
        self.named += self.all[self.named..].iter().take_while(|span| span.is_named).count();
    }
    /// Names the latest of the time in flight before the last progress.
    fn name_latest_flight(&mut self, cause: Cause, most_ns: u64) {
        let mut left_ns = most_ns;
        for place in (self.named..self.all.len()).rev() {
            let span = self.all[place];
            if span.is_named || !span.is_before || left_ns == 0 {
                continue;
            }
            let from_ns = span.from_ns.max(span.to_ns.saturating_sub(left_ns));
            left_ns -= span.to_ns - from_ns;
            let latest = Span { from_ns, row: Row::Known(cause), is_named: true, ..span };
            if from_ns == span.from_ns {
                self.all[place] = latest;
            } else if self.all.len() < MAX_SPANS {
                self.all[place].to_ns = from_ns;
                self.all.insert(place + 1, latest);
            }
        }
    }
    /// Renames the latest that are named `from`.
    fn rename(&mut self, from: Cause, to: Cause, most_ns: u64) {
        let mut left_ns = most_ns;
        let found = self.all.iter_mut().rev().filter(|span| span.is_named && span.row == Row::Known(from));
        for span in found {
            if left_ns == 0 {
                return;
            }
            span.row = Row::Known(to);
            left_ns = left_ns.saturating_sub(span.to_ns - span.from_ns);
        }
    }
}

/// What the open rows turn out to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    pub(crate) flight: Cause,
    /// Time before the last progress that the peer's application took, while its acknowledgment was awaited.
    pub(crate) answer_ns: u64,
    pub(crate) idle: Cause,
    pub(crate) hole: Cause,
}

impl Account {
    pub(crate) fn new(start_ns: u64) -> Account {
        Account {
            start_ns,
            cursor_ns: start_ns,
            settled: [0; Cause::COUNT],
            open: [0; Cause::COUNT],
            flight_before: 0,
            flight: 0,
            idle: 0,
            hole: 0,
            flight_named: [0; Cause::COUNT],
            longest: [Longest::default(); Cause::COUNT],
            spans: None,
        }
    }
    /// Keeps when each cause holds from now on.
    pub(crate) fn keep_spans(&mut self) {
        self.spans.get_or_insert_default();
    }
    /// When each cause held.
    #[cfg(feature = "draw")]
    pub(crate) fn spans(&self) -> &[Span] {
        self.spans.as_ref().map_or(&[], |spans| &spans.all)
    }
    /// Time passes until `now_ns`; an earlier instant changes nothing. How much passed.
    pub(crate) fn advance(&mut self, now_ns: u64, row: Row) -> u64 {
        let passed = now_ns.saturating_sub(self.cursor_ns);
        if let Some(spans) = &mut self.spans
            && passed > 0
        {
            spans.add(self.cursor_ns, self.cursor_ns + passed, row);
        }
        self.cursor_ns += passed;
        match row {
            Row::Known(cause) => self.open[cause as usize] += passed,
            Row::Flight => self.flight += passed,
            Row::Idle => self.idle += passed,
            Row::Hole => self.hole += passed,
        }
        passed
    }
    /// New data was acknowledged: what was waited until now is not a timeout's.
    pub(crate) fn progress(&mut self, frames: (u64, u64)) {
        self.flight_before += std::mem::take(&mut self.flight);
        self.flight_named = [0; Cause::COUNT];
        if let Some(spans) = &mut self.spans {
            let open = spans.all[spans.named..].iter_mut().filter(|span| span.row == Row::Flight);
            open.for_each(|span| span.is_before = true);
        }
        self.settle_known(frames);
    }
    /// Closes all rows.
    pub(crate) fn settle(&mut self, meaning: Meaning, frames: (u64, u64)) {
        self.settle_known(frames);
        let answer_ns = meaning.answer_ns.min(self.flight_before);
        self.flight_before -= answer_ns;
        self.add(Cause::AwaitingPeer, answer_ns, frames);
        if let Some(spans) = &mut self.spans {
            spans.name_latest_flight(Cause::AwaitingPeer, answer_ns);
            spans.name(|span| {
                Some(match span.row {
                    Row::Known(cause) => cause,
                    Row::Flight => meaning.flight,
                    Row::Idle => meaning.idle,
                    Row::Hole => meaning.hole,
                })
            });
        }
        let (before, since) = (std::mem::take(&mut self.flight_before), std::mem::take(&mut self.flight));
        self.flight_named[meaning.flight as usize] += since;
        self.add(meaning.flight, before + since, frames);
        let (idle, hole) = (std::mem::take(&mut self.idle), std::mem::take(&mut self.hole));
        self.add(meaning.idle, idle, frames);
        self.add(meaning.hole, hole, frames);
    }
    /// Closes the row of idle time alone.
    pub(crate) fn settle_idle(&mut self, cause: Cause, frames: (u64, u64)) {
        let idle = std::mem::take(&mut self.idle);
        self.add(cause, idle, frames);
        self.name_row(Row::Idle, cause);
    }
    fn name_row(&mut self, row: Row, cause: Cause) {
        if let Some(spans) = &mut self.spans {
            spans.name(|of| (of.row == row).then_some(cause));
        }
    }
    /// Closes the row of holes alone.
    pub(crate) fn settle_hole(&mut self, cause: Cause, frames: (u64, u64)) {
        let hole = std::mem::take(&mut self.hole);
        self.add(cause, hole, frames);
        self.name_row(Row::Hole, cause);
    }
    /// Gives `cause` all that was waited since the last progress; how much.
    pub(crate) fn seize(&mut self, cause: Cause, frames: (u64, u64)) -> u64 {
        if let Some(spans) = &mut self.spans {
            spans.name(|of| (!of.is_before).then_some(cause));
        }
        let open: u64 = self.open.iter_mut().map(std::mem::take).sum();
        let rest = [&mut self.flight, &mut self.idle, &mut self.hole];
        let seized = open + rest.into_iter().map(std::mem::take).sum::<u64>();
        self.add(cause, seized, frames);
        let named = std::mem::replace(&mut self.flight_named, [0; Cause::COUNT]);
        let again = Cause::ALL.iter().map(|&of| self.reassign(of, cause, named[of as usize])).sum::<u64>();
        seized + again
    }
    /// Moves time of one cause to another, at most as much as there is; how much.
    pub(crate) fn reassign(&mut self, from: Cause, to: Cause, most_ns: u64) -> u64 {
        let moved = most_ns.min(self.settled[from as usize]);
        self.settled[from as usize] -= moved;
        self.settled[to as usize] += moved;
        if let Some(spans) = &mut self.spans {
            spans.rename(from, to, moved);
        }
        let longest = self.longest[from as usize];
        if moved > 0 && self.longest[to as usize].ns < longest.ns.min(moved) {
            self.longest[to as usize] = longest;
        }
        moved
    }
    /// Other times for all causes; the total is their sum from now on.
    pub(crate) fn replace(&mut self, settled: [u64; Cause::COUNT]) {
        self.cursor_ns = self.start_ns.saturating_add(settled.iter().sum());
        self.settled = settled;
    }
    /// What is known of a part holds of the whole, which lasted `total_ns`; nothing is known of one without a part.
    pub(crate) fn stretch_to(&mut self, total_ns: u64) {
        let part_ns = self.total_ns();
        if part_ns >= total_ns {
            return;
        }
        let mut settled = self.settled;
        for ns in &mut settled {
            *ns = (u128::from(*ns) * u128::from(total_ns) / u128::from(part_ns.max(1))) as u64;
        }
        // Rounding leaves a few nanoseconds.
        let largest =
            Cause::ALL.iter().copied().max_by_key(|&of| settled[of as usize]).filter(|_| part_ns > 0);
        settled[largest.unwrap_or(Cause::Unknown) as usize] += total_ns - settled.iter().sum::<u64>();
        self.replace(settled);
    }
    pub(crate) fn of(&self, cause: Cause) -> u64 {
        self.settled[cause as usize]
    }
    pub(crate) fn longest(&self, cause: Cause) -> Longest {
        self.longest[cause as usize]
    }
    /// Time since the beginning; the sum of all causes once all is settled.
    pub(crate) fn total_ns(&self) -> u64 {
        self.cursor_ns - self.start_ns
    }
    fn settle_known(&mut self, frames: (u64, u64)) {
        if let Some(spans) = &mut self.spans {
            spans.name(|span| match span.row {
                Row::Known(cause) => Some(cause),
                _ => None,
            });
        }
        for &cause in Cause::ALL {
            let open = std::mem::take(&mut self.open[cause as usize]);
            self.add(cause, open, frames);
        }
    }
    fn add(&mut self, cause: Cause, ns: u64, (from_frame, to_frame): (u64, u64)) {
        self.settled[cause as usize] += ns;
        let longest = &mut self.longest[cause as usize];
        if ns > longest.ns {
            *longest = Longest { ns, from_frame, to_frame };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 100 ns in flight the last 70 are the answer's, however the time was counted.
    #[test]
    fn what_an_answer_took_is_the_end_of_the_wait_for_its_acknowledgment() {
        let mut account = Account::new(1000);
        account.keep_spans();
        for now_ns in [1040, 1050, 1100] {
            account.advance(now_ns, Row::Flight);
            // Each is a span of its own.
            account.progress((1, 2));
        }
        account.advance(1110, Row::Idle);
        account.settle_idle(Cause::AwaitingPeer, (2, 3));
        account.advance(1115, Row::Idle);
        let (flight, idle) = (Cause::AwaitingAcknowledgment, Cause::ThinkTime);
        account.settle(Meaning { flight, answer_ns: 70, idle, hole: Cause::FastRecovery }, (3, 4));
        let expected = [(flight, 30), (Cause::AwaitingPeer, 80), (idle, 5)];
        for (cause, ns) in expected {
            assert_eq!(account.of(cause), ns, "{cause:?}");
        }
        let spans = account.spans.unwrap().all;
        let times = spans.iter().map(|span| (span.from_ns, span.to_ns));
        assert_eq!(
            times.collect::<Vec<_>>(),
            [(1000, 1030), (1030, 1040), (1040, 1050), (1050, 1100), (1100, 1110), (1110, 1115)]
        );
        let of = |cause| {
            spans
                .iter()
                .filter(move |span| span.row == Row::Known(cause))
                .map(|span| span.to_ns - span.from_ns)
        };
        for (cause, ns) in expected {
            assert_eq!(of(cause).sum::<u64>(), ns, "{cause:?}");
        }
    }
}
