//! Fuzz targets. The input is the network: what it answers to which probe, and how much time passes; the invariants are
//! asserted.

use crate::{Config, Event, LARGEST_PROBES_PER_HOP, Trace};
use inhost_base::{Duration, Instant, IpAddr, Ipv4Addr};
use inhost_stack::{ErrorKind, Probe, ProbeAnswer, ProbeNews};

/// Probes that one trace sends at most; see `MEASURED_UNTIL`.
const MOST_PROBES: usize = 8192;

/// One input, to a trace that measures.
pub fn fuzz_traceroute(input: &[u8]) {
    let [hops, tries, parallel, rest @ ..] = input else { return };
    let to = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
    let config = Config {
        last_hop: *hops,
        probes_per_hop: *tries,
        parallel: *parallel,
        measure_from_bytes: Some(1500),
        ..Config::default()
    };
    let mut trace = Trace::new(config, to);
    let mut now = Instant::ZERO;
    let mut seen = Seen::default();
    seen.take(&mut trace, now);
    for octets in rest.chunks_exact(3) {
        let [which, what, mtu] = *octets else { continue };
        now += Duration::from_millis(u64::from(which % 16));
        match what % 8 {
            7 => trace.timeout(now),
            what => {
                // Mostly one of the last probes; now and then one that was never sent.
                let number = (seen.probes.len() as u16).wrapping_sub(u16::from(which / 16)).wrapping_add(1);
                trace.answer(&ProbeAnswer { number, to, from: from(which, to), news: news(what, mtu) }, now);
            }
        }
        seen.take(&mut trace, now);
    }
    // Without answers, it ends by itself.
    while let Some(at) = trace.deadline() {
        now = now.max(at);
        trace.timeout(now);
        seen.take(&mut trace, now);
    }
    assert!(seen.done, "the trace has no end");
    assert!(trace.poll_probe(now).is_none() && trace.poll_event().is_none());
}

fn from(which: u8, to: IpAddr) -> IpAddr {
    if which.is_multiple_of(32) { to } else { IpAddr::V4(Ipv4Addr::new(10, 0, 0, which)) }
}

fn news(what: u8, mtu: u8) -> ProbeNews {
    let error = |kind| ProbeNews::Error { kind, mtu_bytes: None };
    match what {
        0 => error(ErrorKind::TimeExceeded),
        1 => ProbeNews::Error { kind: ErrorKind::PacketTooBig, mtu_bytes: Some(u16::from(mtu) * 8) },
        2 => error(ErrorKind::PortUnreachable),
        3 => ProbeNews::Answered,
        4 => ProbeNews::Refused,
        5 => error(ErrorKind::PacketTooBig),
        _ => error(ErrorKind::HostUnreachable),
    }
}

#[derive(Default)]
struct Seen {
    probes: Vec<Probe>,
    last_hop: u8,
    done: bool,
}

impl Seen {
    fn take(&mut self, trace: &mut Trace, now: Instant) {
        while let Some(probe) = trace.poll_probe(now) {
            assert!(!self.done && probe.hop_limit > 0);
            self.probes.push(probe);
            assert!(self.probes.len() <= MOST_PROBES);
        }
        while let Some(event) = trace.poll_event() {
            assert!(!self.done, "news after the end");
            match event {
                Event::Hop(hop) => {
                    assert_eq!(hop.number, self.last_hop + 1);
                    assert!(hop.replies.len() <= usize::from(LARGEST_PROBES_PER_HOP));
                    self.last_hop = hop.number;
                }
                Event::Done(_) => self.done = true,
            }
        }
    }
}
