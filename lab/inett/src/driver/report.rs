//! From what was counted to results: those that go over the wire, and those of a repetition.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::counters::Counter;
use super::running::Ran;
use super::transactions::Tally;
use crate::face::{Processor, StreamFigures};
use crate::iperf3::{InettResults, Results, StreamResults, stream_id};
use crate::plan::{Plan, Protocol};
use crate::result::{
    Datagrams, Evidence, ProcessorUse, Repetition, Transactions, Transfer, Who, layer_uses, layers_s, limit,
};

/// What one end does with a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Side {
    Sends,
    Receives,
}

/// What one end does with each stream, in the order in which the client opens them: those on which the client sends come
/// first. `first` is what this end does with those.
pub fn sides(plan: &Plan, first: Side) -> Vec<Side> {
    let [client_sends, server_sends] = plan.direction.senders();
    let each = usize::from(plan.streams);
    let second = if first == Side::Sends { Side::Receives } else { Side::Sends };
    let count = |is_wanted: bool| if is_wanted { each } else { 0 };
    std::iter::repeat_n(first, count(client_sends))
        .chain(std::iter::repeat_n(second, count(server_sends)))
        .collect()
}

/// What one end counted, frozen at the end of the test.
#[derive(Clone, Debug)]
pub struct Found {
    plan: Plan,
    sides: Vec<Side>,
    streams: Vec<StreamResults>,
    out_of_order: u64,
    waited_share: Option<f64>,
    seconds: f64,
    /// Seconds, warm-up included.
    age_s: f64,
    processor: Option<Processor>,
    transactions: Option<Transactions>,
    /// What the face knows of each stream, once it was asked.
    pub figures: Vec<StreamFigures>,
}

impl Found {
    /// From counters, at the end of the test.
    pub fn new(plan: &Plan, sides: &[Side], counters: &[Rc<Counter>], ran: &Ran) -> Found {
        let seconds = ran.seconds();
        let streams = counters.iter().zip(sides).enumerate().map(|(index, (counter, side))| {
            let (arrivals, omitted) = (counter.arrivals.get(), counter.omitted.get());
            let packets = if *side == Side::Sends { counter.blocks.get() } else { arrivals.highest };
            let is_udp = plan.protocol == Protocol::Udp;
            StreamResults {
                id: stream_id(index),
                bytes: counter.measured_bytes() as i64,
                retransmits: -1,
                jitter: arrivals.jitter_s,
                errors: arrivals.lost as i64,
                omitted_errors: omitted.lost as i64,
                packets: if is_udp { packets as i64 } else { 0 },
                omitted_packets: if is_udp { omitted.packets as i64 } else { 0 },
                start_time: 0.0,
                end_time: seconds,
            }
        });
        let late =
            |counter: &Rc<Counter>| counter.arrivals.get().out_of_order - counter.omitted.get().out_of_order;
        let (mut waits, mut writes) = (0, 0);
        for (counter, _) in counters.iter().zip(sides).filter(|(_, side)| **side == Side::Sends) {
            waits += counter.waits.get();
            writes += counter.blocks.get();
        }
        Found {
            plan: plan.clone(),
            sides: sides.to_vec(),
            streams: streams.collect(),
            out_of_order: counters.iter().map(late).sum(),
            waited_share: (writes > 0).then(|| waits as f64 / writes as f64),
            seconds,
            age_s: ran.ended.since(ran.began).as_secs_f64(),
            processor: ran.processor,
            transactions: None,
            figures: Vec::new(),
        }
    }
    /// What transactions counted.
    pub fn take_tally(&mut self, tally: &Tally, ran: &Ran) {
        let (times, seconds) = (tally.times.borrow(), ran.seconds());
        self.transactions = Some(Transactions {
            count: times.count(),
            failed: tally.failed.get(),
            seconds,
            per_second: if seconds > 0.0 { times.count() as f64 / seconds } else { 0.0 },
            times: times.percentiles(),
        });
    }
    fn sends(&self) -> impl Iterator<Item = (usize, &StreamFigures)> {
        self.figures.iter().enumerate().filter(|(index, _)| self.sides.get(*index) == Some(&Side::Sends))
    }
    /// Causes for which streams that send waited, as shares of their time.
    fn causes(&self) -> BTreeMap<String, f64> {
        let mut causes = BTreeMap::new();
        let time_s = self.age_s * self.sends().count() as f64;
        for (cause, seconds) in self.sends().flat_map(|(_, figures)| &figures.waits_s) {
            if *seconds > 0.0 && time_s > 0.0 {
                *causes.entry(cause.clone()).or_default() += seconds / time_s;
            }
        }
        causes.values_mut().for_each(|share: &mut f64| *share = share.min(1.0));
        causes
    }
    fn processor_use(&self) -> Option<ProcessorUse> {
        let processor = self.processor.filter(|_| self.seconds > 0.0)?;
        Some(ProcessorUse::new(&processor, self.seconds))
    }
    fn layers_s(&self) -> BTreeMap<String, f64> {
        self.processor.and_then(|processor| processor.layers).as_ref().map(layers_s).unwrap_or_default()
    }
    /// What goes to the other end.
    pub fn results(&self) -> Results {
        let percent = |seconds: f64| if self.seconds > 0.0 { seconds / self.seconds * 100.0 } else { 0.0 };
        let processor = self.processor.unwrap_or_default();
        let mut streams = self.streams.clone();
        for (index, figures) in self.sends() {
            streams[index].retransmits = figures.retransmits.map_or(-1, |count| count as i64);
        }
        let knows = self.sends().all(|(_, figures)| figures.retransmits.is_some());
        let has_senders = self.sides.contains(&Side::Sends);
        Results {
            cpu_util_total: percent(processor.user_s + processor.system_s),
            cpu_util_user: percent(processor.user_s),
            cpu_util_system: percent(processor.system_s),
            sender_has_retransmits: if has_senders {
                i64::from(knows && !self.figures.is_empty())
            } else {
                -1
            },
            congestion_used: self.figures.iter().find_map(|figures| figures.congestion.clone()),
            streams,
            inett: Some(InettResults {
                causes: self.causes(),
                out_of_order: self.out_of_order,
                processor_s: self.processor.map(|processor| processor.user_s + processor.system_s),
                counts: processor.counts,
                layers_s: self.layers_s(),
            }),
        }
    }
    /// Bulk data of the streams on which this end is on `side`, with what the other end says of them.
    fn transfer(&self, side: Side, remote: Option<&Results>) -> Option<Transfer> {
        let is_sent = side == Side::Sends;
        let mut transfer = Transfer { seconds: self.seconds, ..Transfer::default() };
        let mut datagrams = Datagrams::default();
        let mut jitters = Vec::new();
        let mut again = Vec::new();
        for (own, _) in self.streams.iter().zip(&self.sides).filter(|(_, own)| **own == side) {
            let other = remote.and_then(|remote| remote.streams.iter().find(|other| other.id == own.id));
            let other = other.unwrap_or(own);
            let (sender, receiver) = if is_sent { (own, other) } else { (other, own) };
            // The other end may say anything.
            let add = |sum: &mut u64, value: i64| *sum = sum.saturating_add(positive(value));
            add(&mut transfer.bytes, receiver.bytes);
            add(&mut transfer.sent_bytes, sender.bytes);
            add(&mut datagrams.sent, sender.packets.saturating_sub(sender.omitted_packets));
            add(&mut datagrams.lost, receiver.errors.saturating_sub(receiver.omitted_errors));
            jitters.push(receiver.jitter);
            again.push(u64::try_from(other.retransmits).ok().filter(|_| remote.is_some()));
        }
        if jitters.is_empty() {
            return None;
        }
        let retransmits = match is_sent {
            true => self.sends().map(|(_, figures)| figures.retransmits).sum(),
            false => again.into_iter().try_fold(0, |sum: u64, count| Some(sum.saturating_add(count?))),
        };
        if self.seconds > 0.0 {
            transfer.bits_per_second = transfer.bytes as f64 * 8.0 / self.seconds;
        }
        if self.plan.protocol == Protocol::Udp {
            if datagrams.sent > 0 {
                datagrams.lost_share = datagrams.lost as f64 / datagrams.sent as f64;
            }
            let theirs = remote.and_then(|remote| remote.inett.as_ref()).map(|inett| inett.out_of_order);
            datagrams.out_of_order = if is_sent { theirs } else { Some(self.out_of_order) };
            datagrams.jitter_ms = jitters.iter().sum::<f64>() * 1e3 / jitters.len() as f64;
            transfer.datagrams = Some(datagrams);
        } else {
            transfer.retransmits = retransmits;
        }
        Some(transfer)
    }
}

fn positive(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// A repetition at the client, from what both ends found.
pub fn repetition(number: u32, ran: &Ran, own: &Found, remote: Option<&Results>) -> Repetition {
    let sent = own.transfer(Side::Sends, remote);
    let received = own.transfer(Side::Receives, remote);
    let server_share = remote.map(|remote| remote.cpu_util_total / 100.0);
    let said = remote.and_then(|remote| remote.inett.clone()).unwrap_or_default();
    let server_processor = server_share.filter(|share| share.is_finite() && *share > 0.0).map(|share| {
        let seconds = said.processor_s.unwrap_or(share * own.seconds);
        ProcessorUse { seconds, share, host_thread_seconds: None, counts: said.counts }
    });
    let (client_causes, server_causes) = (own.causes(), said.causes);
    let client_processor = own.processor_use();
    let directions = f64::from(u8::from(sent.is_some()) + u8::from(received.is_some()));
    let rate = own.plan.rate() as f64 * f64::from(own.plan.streams) * directions;
    let reached: f64 =
        [&sent, &received].into_iter().flatten().map(|transfer| transfer.bits_per_second).sum();
    let mut causes = client_causes.clone();
    for (cause, share) in &server_causes {
        *causes.entry(cause.clone()).or_default() += share;
    }
    if !client_causes.is_empty() && !server_causes.is_empty() {
        causes.values_mut().for_each(|share| *share /= 2.0);
    }
    let datagrams = [&sent, &received].into_iter().flatten().filter_map(|transfer| transfer.datagrams);
    let lost = datagrams.map(|datagrams| datagrams.lost_share);
    let evidence = Evidence {
        paced_share: (rate > 0.0 && own.transactions.is_none()).then(|| reached / rate),
        client_share: client_processor.map(|processor| processor.share),
        server_share: server_processor.map(|processor| processor.share),
        // Transactions wait for their answers; their streams are only the background.
        causes: if own.transactions.is_none() { causes } else { BTreeMap::new() },
        waited_share: own.waited_share.filter(|_| own.transactions.is_none()),
        lost_share: lost.reduce(f64::max),
    };
    let limit =
        Some(limit(&evidence)).filter(|limit| own.transactions.is_none() || limit.who != Who::Unknown);
    Repetition {
        number,
        is_aborted: ran.is_aborted,
        sent,
        received,
        transactions: own.transactions,
        intervals: ran.intervals.clone(),
        client_processor,
        server_processor,
        client_layers: layer_uses(&own.layers_s()),
        server_layers: layer_uses(&said.layers_s),
        congestion: own.figures.iter().find_map(|figures| figures.congestion.clone()),
        client_causes,
        server_causes,
        limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::Counts;
    use crate::result::Outcome;
    use inhost_base::{Duration, Instant};
    use inhost_event::Layer;

    #[test]
    fn cycles_and_layers_of_both_ends_are_told() {
        let mut layers = [0; Layer::ALL.len()];
        (layers[Layer::Tcp as usize], layers[Layer::Read as usize]) = (375_000_000, 125_000_000);
        layers[Layer::Idle as usize] = 500_000_000;
        let counts = Some(Counts { cycles: 2_000, instructions: 3_000, is_user_only: true });
        let before = Processor {
            counts: Some(Counts::default()),
            layers: Some([0; Layer::ALL.len()]),
            ..Default::default()
        };
        let after = Processor { user_s: 0.5, counts, layers: Some(layers), ..before };
        let ran = Ran { processor: Some(after.since(before)), ..ran() };
        let plan = Plan::default();
        let found = Found::new(&plan, &[], &[], &ran);
        let said = serde_json::to_string(&found.results()).unwrap();
        let repetition = repetition(1, &ran, &found, Some(&serde_json::from_str(&said).unwrap()));
        for (processor, layers) in [
            (repetition.client_processor, &repetition.client_layers),
            (repetition.server_processor, &repetition.server_layers),
        ] {
            assert_eq!(processor.unwrap().counts, counts);
            let of = |layer: Layer| layers[layer.text()];
            assert_eq!((of(Layer::Tcp).share, of(Layer::Read).share), (Some(0.75), Some(0.25)));
            assert_eq!((of(Layer::Idle).seconds, of(Layer::Idle).share), (0.5, None));
        }
        let told = Outcome::new(&plan, vec![repetition]).text();
        assert!(
            told.contains("server: 2000 cycles and 3000 instructions in user mode, 1.50 a cycle"),
            "{told}"
        );
        assert!(told.contains("client's host worked for: TCP 75 %, copy out 25 %, idle 0.50 s"), "{told}");
        assert!(!told.contains("were not counted"), "{told}");
        let plain = Repetition { client_processor: Some(ProcessorUse::default()), ..Repetition::default() };
        let told = Outcome::new(&plan, vec![plain.clone(), plain]).text();
        assert_eq!(told.matches("were not counted").count(), 1, "{told}");
    }

    fn ran() -> Ran {
        Ran {
            began: Instant::ZERO,
            measured_from: Instant::ZERO,
            ended: Instant::ZERO + Duration::from_secs(1),
            intervals: Vec::new(),
            is_aborted: false,
            processor: None,
        }
    }

    /// The other end can say any number of each stream.
    #[test]
    fn what_the_other_end_says_adds_up_to_the_greatest_number() {
        let plan = Plan { streams: 3, protocol: Protocol::Udp, ..Plan::default() };
        let ran = ran();
        let counters: Vec<Rc<Counter>> = (0..3).map(|_| Rc::default()).collect();
        let said = |side: Side, protocol: Protocol| {
            let plan = Plan { protocol, ..plan.clone() };
            let found = Found::new(&plan, &[side; 3], &counters, &ran);
            let mut remote = found.results();
            for stream in &mut remote.streams {
                (stream.bytes, stream.packets, stream.omitted_packets) = (i64::MAX, i64::MAX, i64::MIN);
                (stream.errors, stream.omitted_errors, stream.retransmits) = (i64::MAX, i64::MIN, i64::MAX);
            }
            repetition(1, &ran, &found, Some(&remote))
        };
        let sent = said(Side::Sends, Protocol::Udp).sent.unwrap();
        assert_eq!((sent.bytes, sent.datagrams.unwrap().lost), (u64::MAX, u64::MAX));
        let received = said(Side::Receives, Protocol::Udp).received.unwrap();
        assert_eq!((received.sent_bytes, received.datagrams.unwrap().sent), (u64::MAX, u64::MAX));
        assert_eq!(said(Side::Receives, Protocol::Tcp).received.unwrap().retransmits, Some(u64::MAX));
    }
}
