use crate::{Config, Event, Hop, Mtu, Trace, TraceOutcome};
use inhost_base::{Duration, Instant, IpAddr};
use inhost_stack::{ErrorKind, Probe, ProbeAnswer, ProbeNews};
use std::fmt::Write;

const TO: &str = "192.0.2.7";

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}
fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}
fn error(kind: ErrorKind) -> ProbeNews {
    ProbeNews::Error { kind, mtu_bytes: None }
}
fn too_big(bytes: u16) -> ProbeNews {
    ProbeNews::Error { kind: ErrorKind::PacketTooBig, mtu_bytes: Some(bytes) }
}
fn probes(trace: &mut Trace, now: Instant) -> Vec<Probe> {
    std::iter::from_fn(|| trace.poll_probe(now)).collect()
}
fn events(trace: &mut Trace) -> Vec<Event> {
    std::iter::from_fn(|| trace.poll_event()).collect()
}
fn answer(trace: &mut Trace, number: u16, from: &str, news: ProbeNews, now: Instant) {
    trace.answer(&ProbeAnswer { number, to: address(TO), from: address(from), news }, now);
}

#[test]
fn hops_are_reported_in_order_and_the_destination_ends_the_way() {
    let config = Config { probes_per_hop: 2, parallel: 6, ..Config::default() };
    let mut trace = Trace::new(config, address(TO));
    let sent = probes(&mut trace, at(0));
    let limits: Vec<u8> = sent.iter().map(|probe| probe.hop_limit).collect();
    assert_eq!(limits, [1, 1, 2, 2, 3, 3]);
    // The second hop is the destination. What was sent beyond it is of no interest any more.
    answer(&mut trace, 2, TO, ProbeNews::Answered, at(8));
    answer(&mut trace, 3, TO, error(ErrorKind::PortUnreachable), at(9));
    assert_eq!((events(&mut trace), probes(&mut trace, at(9))), (vec![], vec![]));
    answer(&mut trace, 1, "10.9.0.1", error(ErrorKind::TimeExceeded), at(10));
    assert_eq!(
        trace.deadline(),
        Some(at(100)),
        "a hop that answers is waited for three round trips, 100 ms at least"
    );
    trace.timeout(at(99));
    assert_eq!(events(&mut trace), []);
    trace.timeout(at(100));
    let told = events(&mut trace);
    let [Event::Hop(first), Event::Hop(second), Event::Done(outcome)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((first.number, first.replies[0]), (1, None));
    let reply = first.replies[1].unwrap();
    assert_eq!((reply.from, reply.round_trip), (address("10.9.0.1"), Duration::from_millis(10)));
    assert_eq!(second.replies.iter().map(|reply| reply.unwrap().error).collect::<Vec<_>>(), [None, None]);
    assert_eq!((*outcome, trace.deadline()), (TraceOutcome::Reached { hop: 2 }, None));
}

#[test]
fn a_silent_hop_costs_little_when_those_behind_it_answer_and_the_whole_wait_when_none_does() {
    let config = Config { probes_per_hop: 1, last_hop: 2, ..Config::default() };
    let mut trace = Trace::new(config, address(TO));
    assert_eq!(probes(&mut trace, at(0)).len(), 2);
    assert_eq!(trace.deadline(), Some(at(5000)));
    answer(&mut trace, 1, "10.9.1.1", error(ErrorKind::TimeExceeded), at(40));
    assert_eq!(trace.deadline(), Some(at(400)), "ten round trips of a hop behind");
    trace.timeout(at(400));
    assert_eq!(events(&mut trace).last(), Some(&Event::Done(TraceOutcome::TooFar)));
}

#[test]
fn a_router_that_knows_no_way_ends_it() {
    let config = Config { probes_per_hop: 1, parallel: 4, ..Config::default() };
    let mut trace = Trace::new(config, address(TO));
    probes(&mut trace, at(0));
    answer(&mut trace, 1, "10.9.0.1", error(ErrorKind::NetworkUnreachable), at(5));
    answer(&mut trace, 0, "10.9.0.1", error(ErrorKind::TimeExceeded), at(6));
    let why = ErrorKind::NetworkUnreachable;
    let stopped = TraceOutcome::Stopped { hop: 2, by: address("10.9.0.1"), why };
    assert_eq!(events(&mut trace).last(), Some(&Event::Done(stopped)));
}

#[test]
fn answers_that_nobody_asked_for_change_nothing() {
    let mut trace = Trace::new(Config::default(), address(TO));
    probes(&mut trace, at(0));
    let elsewhere = ProbeAnswer {
        number: 0,
        to: address("192.0.2.8"),
        from: address("192.0.2.8"),
        news: ProbeNews::Answered,
    };
    trace.answer(&elsewhere, at(1));
    answer(&mut trace, 16, TO, ProbeNews::Answered, at(1));
    answer(&mut trace, 0, TO, error(ErrorKind::TimeExceeded), at(1));
    answer(&mut trace, 0, TO, ProbeNews::Answered, at(2));
    assert_eq!((events(&mut trace), trace.deadline()), (vec![], Some(at(100))));
}

/// A path whose links take packets of these lengths; `None` for a router that says nothing of it.
fn measured(links: &[(u16, Option<Option<u16>>)]) -> (Vec<Option<Mtu>>, usize) {
    let config = Config {
        probes_per_hop: 1,
        last_hop: links.len() as u8,
        parallel: 1,
        measure_from_bytes: Some(1500),
        ..Config::default()
    };
    let mut trace = Trace::new(config, address(TO));
    let (mut now, mut found, mut sent) = (at(0), Vec::new(), 0);
    loop {
        for probe in probes(&mut trace, now) {
            sent += 1;
            let hops = &links[..usize::from(probe.hop_limit)];
            let narrow = hops.iter().position(|link| probe.packet_bytes > link.0);
            now += Duration::from_millis(10);
            match narrow.map(|hop| (hop, hops[hop].1)) {
                None => answer(&mut trace, probe.number, "10.0.0.9", error(ErrorKind::TimeExceeded), now),
                Some((hop, Some(told))) => {
                    let news = ProbeNews::Error { kind: ErrorKind::PacketTooBig, mtu_bytes: told };
                    answer(&mut trace, probe.number, &format!("10.0.0.{hop}"), news, now);
                }
                Some((_, None)) => {}
            }
        }
        for event in events(&mut trace) {
            match event {
                Event::Hop(Hop { mtu, .. }) => found.push(mtu),
                Event::Done(_) => return (found, sent),
            }
        }
        if let Some(deadline) = trace.deadline() {
            now = deadline;
            trace.timeout(now);
        }
    }
}

#[test]
fn routers_tell_how_large_a_packet_may_be() {
    let told = |bytes: u16| (bytes, Some(Some(bytes)));
    let (found, sent) = measured(&[told(1500), told(1400), told(1450), told(1280)]);
    let mtu =
        |bytes, router: Option<&str>| Some(Mtu { bytes, told_by: router.map(address), is_black_hole: false });
    let by = [None, Some("10.0.0.1"), Some("10.0.0.1"), Some("10.0.0.3")];
    assert_eq!(found, [mtu(1500, by[0]), mtu(1400, by[1]), mtu(1400, by[2]), mtu(1280, by[3])]);
    assert_eq!(sent, 4 + 4 + 2, "one probe a hop, one packet a hop, and one for each that was too big");
}

#[test]
fn where_routers_do_not_tell_it_is_found_out() {
    let (found, _) = measured(&[(1500, None), (1400, Some(None)), (1400, None)]);
    let found: Vec<_> = found.into_iter().flatten().map(|mtu| (mtu.bytes, mtu.told_by.is_some())).collect();
    assert_eq!(found, [(1500, false), (1400, true), (1400, true)], "a router of before RFC 1191");
    let (found, sent) = measured(&[(1500, None), (1372, None), (1500, None)]);
    let found: Vec<_> = found.into_iter().flatten().map(|mtu| (mtu.bytes, mtu.is_black_hole)).collect();
    assert_eq!(found, [(1500, false), (1372, true), (1372, true)], "a black hole");
    assert!(sent < 30, "{sent}");
}

#[test]
fn a_hop_that_answers_only_small_probes_says_nothing_of_the_path() {
    // The reported MTU is not below a size that has already passed, so it cannot be true.
    let (found, _) = measured(&[(1500, None), (60, Some(Some(20))), (60, None)]);
    assert_eq!(found.len(), 3);
    let (found, _) = measured(&[(60, None), (60, None)]);
    assert_eq!(found, [None, None]);
}

/// What every kind of news does to an ordinary probe and to one that measures, and what follows.
#[test]
fn transition_table() {
    let news: [(&str, ProbeNews); 8] = [
        ("answered", ProbeNews::Answered),
        ("refused", ProbeNews::Refused),
        ("time exceeded", error(ErrorKind::TimeExceeded)),
        ("port unreachable", error(ErrorKind::PortUnreachable)),
        ("host unreachable", error(ErrorKind::HostUnreachable)),
        ("prohibited", error(ErrorKind::Prohibited)),
        ("too big, 1000", too_big(1000)),
        ("too big", error(ErrorKind::PacketTooBig)),
    ];
    let mut table = String::new();
    for (phase, from) in [("ask", TO), ("ask", "10.9.0.1"), ("measure", TO), ("measure", "10.9.0.1")] {
        for (name, news) in news.iter().map(|(name, news)| (*name, Some(*news))).chain([("silence", None)]) {
            let config = Config {
                probes_per_hop: 1,
                last_hop: 2,
                parallel: 1,
                measure_from_bytes: (phase == "measure").then_some(1500),
                ..Config::default()
            };
            let mut trace = Trace::new(config, address(TO));
            assert_eq!(probes(&mut trace, at(0)).len(), 1);
            let mut number = 0;
            if phase == "measure" {
                answer(&mut trace, 0, "10.9.0.1", error(ErrorKind::TimeExceeded), at(1));
                number = probes(&mut trace, at(1))[0].number;
            }
            match news {
                Some(news) => answer(&mut trace, number, from, news, at(2)),
                None => trace.timeout(at(5000)),
            }
            let who = if from == TO { "destination" } else { "router" };
            write!(table, "{phase:<8} {who:<12} {name:<17}").unwrap();
            for event in events(&mut trace) {
                match event {
                    Event::Hop(hop) => {
                        let mtu = hop.mtu.map_or("-".into(), |mtu| mtu.bytes.to_string());
                        let error = hop.replies[0].map_or("silent".into(), |r| format!("{:?}", r.error));
                        write!(table, " hop {error} mtu {mtu};").unwrap();
                    }
                    Event::Done(outcome) => write!(table, " done {outcome:?};").unwrap(),
                }
            }
            for probe in probes(&mut trace, at(5000)) {
                write!(table, " send hop {} of {} bytes;", probe.hop_limit, probe.packet_bytes).unwrap();
            }
            table.push('\n');
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/table.txt");
    if std::env::var_os("INHOST_BLESS").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    assert_eq!(table, include_str!("table.txt"), "INHOST_BLESS=1 writes the new one");
}
