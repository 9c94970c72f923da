use super::*;

fn script(text: &str) -> Script {
    parse_text("t.script", &format!("# RFC 0: purpose\n{text}")).unwrap_or_else(|error| panic!("{error}"))
}
fn wrong(text: &str) -> String {
    parse_text("t.script", &format!("# RFC 0: purpose\n{text}")).unwrap_err().to_string()
}
fn segment(text: &str) -> Segment {
    match script(text).lines.swap_remove(0).step {
        Step::In(segment) | Step::Out(segment) => segment,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_script_has_a_purpose_headings_and_lines() {
    let text = "profile linux\nnetwork ipv6\nhost timestamps off\n\ncall connect # as client\nout SYN seq 0";
    let script = script(text);
    assert_eq!(script.purpose, "RFC 0: purpose");
    assert_eq!((script.profile, script.is_ipv6), (Profile::Linux, true));
    assert_eq!((script.host[0].name.as_str(), script.host[0].value.as_str()), ("timestamps", "off"));
    assert_eq!(script.lines.len(), 2);
    assert_eq!(script.lines[1].place.to_string(), "t.script:7");
}

#[test]
fn a_segment_acknowledges_unless_it_opens_resets_or_denies_it() {
    assert_eq!(segment("in data 1..101 ack 1").flags, Flags::ACK);
    assert_eq!(segment("in SYN").flags, Flags::SYN);
    assert_eq!(segment("in SYN ack 1").flags, Flags::SYN | Flags::ACK);
    assert_eq!(segment("in RST seq 1").flags, Flags::RST);
    assert_eq!(segment("in no ACK data 1..2").flags, Flags::empty());
    assert_eq!(segment("out FIN seq 1").flags, Flags::FIN | Flags::ACK);
}

#[test]
fn fields_and_options_are_read() {
    let read =
        segment("out SYN ACK seq 0 ack 1 win 100..200 mss 1460 sackok ts ecr 7 no scale fo cookie ecn ect0");
    assert_eq!((read.sequence, read.acknowledgment), (Some(0), Some(1)));
    assert_eq!(read.window, Some(100..=200));
    assert_eq!(read.options.mss, Presence::Is(1460));
    assert_eq!(read.options.scale, Presence::Absent);
    assert_eq!(
        (read.options.timestamps, read.options.timestamp_echo),
        (Presence::Is(()), Some(Echo::Value(7)))
    );
    assert_eq!(read.options.fast_open, Presence::Is(Cookie::Known));
    assert_eq!(read.ecn, Some(Ecn::Capable0));
    assert_eq!(segment("in ack 1 ecr last-100").options.timestamp_echo, Some(Echo::Earlier(100)));
    assert!(wrong("out ack 1 ecr last-100").contains("expected the timestamp that is echoed"));
    let read = segment("in ack 1 sack 101..201, 301..401 raw 1e02 peer 2");
    assert_eq!(read.options.sack, Presence::Is(vec![(101, 201), (301, 401)]));
    assert_eq!((read.options.raw, read.peer), (vec![0x1e, 2], 2));
}

#[test]
fn data_is_cut_into_segments_and_only_the_last_ends_the_stream() {
    let script = script("after 5ms out FIN data 1..2501 each 1000");
    let spans: Vec<_> = script
        .lines
        .iter()
        .map(|line| match &line.step {
            Step::Out(segment) => (segment.data.unwrap(), segment.flags.fin(), line.when),
            other => panic!("{other:?}"),
        })
        .collect();
    let after = When::After { delay: Duration::from_millis(5), tolerance: None };
    assert_eq!(spans[0], ((1, 1001), false, after));
    assert_eq!(spans[2], ((2001, 2501), true, When::AtOnce));
}

#[test]
fn several_events_can_be_one_burst() {
    let script = script("in data 1..3 each 1\nalso call close");
    let times: Vec<_> = script.lines.iter().map(|line| line.when).collect();
    assert_eq!(times, [When::AtOnce, When::InOneBurst, When::InOneBurst]);
    assert!(wrong("also out ack 1").contains("`also` stands before an `in` or a `call`"));
}

#[test]
fn times_have_units_tolerances_and_ranges() {
    let when = |text: &str| script(text).lines[0].when;
    let after = |micros, tolerance: Option<u64>| When::After {
        delay: Duration::from_micros(micros),
        tolerance: tolerance.map(Duration::from_micros),
    };
    assert_eq!(when("after 1.5s out ack 1"), after(1_500_000, None));
    assert_eq!(when("after 40ms ~500us out ack 1"), after(40_000, Some(500)));
    assert_eq!(when("wait 2min"), after(120_000_000, None));
    let range = When::Between(Duration::from_millis(10), Duration::from_millis(20));
    assert_eq!(when("after 10ms..20ms out ack 1"), range);
}

#[test]
fn calls_name_their_sockets_and_what_they_expect() {
    let call = |text: &str| match script(text).lines.swap_remove(0).step {
        Step::SocketCall(call) => call,
        other => panic!("{other:?}"),
    };
    let accepted = call("call accept");
    assert_eq!((accepted.on.as_str(), accepted.names.as_deref()), ("listener", Some("main")));
    let write = call("call write 1_000 more on second expect would-block");
    assert_eq!(write.what, CallKind::Write { bytes: 1000, urgent: false, more: true });
    assert_eq!((write.on.as_str(), write.expect), ("second", Expect::Fails(Failure::WouldBlock)));
    assert_eq!(call("call read 100").expect, Expect::Bytes(100));
    assert_eq!(call("call read 100 expect end").expect, Expect::End);
}

#[test]
fn datagrams_have_lengths_peers_and_ports() {
    let step = |text: &str| script(text).lines.swap_remove(0).step;
    let plain =
        Datagram { bytes: 100, peer: 1, port: 9000, no_checksum: false, bad_checksum: false, length: None };
    assert_eq!(step("in datagram 100"), Step::InDatagram(plain.clone()));
    let odd = Datagram { peer: 2, port: 53, length: Some(7), bad_checksum: true, ..plain.clone() };
    assert_eq!(step("in datagram 100 peer 2 port 53 length 7 badsum"), Step::InDatagram(odd));
    assert_eq!(step("out datagram 100 nosum"), Step::OutDatagram(Datagram { no_checksum: true, ..plain }));
    let part = Fragment { from: 0, to: 1480, more: true };
    assert_eq!(step("out fragment 0..1480 more"), Step::OutFragment(part));
    let error = IcmpError { kind: IcmpKind::PortUnreachable, quotes: Some(28) };
    assert_eq!(step("out icmp port-unreachable quotes 28"), Step::OutIcmp(error));
    let Step::InIcmp(icmp) = step("in icmp time-exceeded about sent 2") else { panic!() };
    assert_eq!(icmp.about, About::Sent(2));
    let Step::SocketCall(call) = step("call receive 10 expect 10 of 20") else { panic!() };
    assert_eq!((call.on.as_str(), call.expect), ("datagrams", Expect::Cut(10, 20)));
    assert!(wrong("out datagram 100 badsum").contains("expected peer, port or nosum"));
    assert!(wrong("out fragment 9..8").contains("such as 0..1480"));
}

#[test]
fn assertions_compare_words_numbers_and_times() {
    let must = |text: &str| match script(text).lines.swap_remove(0).step {
        Step::Assert(assertion) => (assertion.ready, assertion.field, assertion.must),
        other => panic!("{other:?}"),
    };
    assert_eq!(must("assert info.state == ESTABLISHED").2, Must::Word("ESTABLISHED".into()));
    assert_eq!(must("assert info.rto in 1ms..2ms").2, Must::Between(1e6, 2e6));
    assert!(must("assert ready.readable == yes").0);
    assert_eq!(must("assert info.timeouts == 0").2, Must::Between(0.0, 0.0));
}

#[test]
fn the_kernel_s_difference_has_its_reason() {
    let note = |text: &str| script(&format!("{text}\nwait 1ms")).kernel;
    assert_eq!(note("kernel: differs because it waits"), KernelNote::Differs("it waits".into()));
    assert_eq!(note("kernel: cannot run because of X"), KernelNote::CannotRun("of X".into()));
    assert!(wrong("kernel: differs because").contains("expected `kernel: differs because"));
}

#[test]
fn an_error_says_where_what_was_expected_and_what_was_found() {
    assert_eq!(
        wrong("call connect\n\nout SYN sequence 0").split("or one").next().unwrap().trim(),
        "t.script:4: expected a flag (SYN FIN RST PSH ACK URG ECE CWR)"
    );
    assert!(wrong("out SYN sequence 0").ends_with("found `sequence`"));
    assert_eq!(
        wrong("in data 1-100"),
        "t.script:2: expected the data's numbers, such as 1..1001, found `1-100`"
    );
    assert_eq!(
        wrong("after soon out ack 1").split(", found").next().unwrap(),
        "t.script:2: expected a time such as 200ms, 1.5s or 180ms..220ms"
    );
    assert!(wrong("in ack").ends_with("expected an acknowledgment number, found the end of the line"));
    assert!(wrong("in seq 5 data 1..2").ends_with("`seq 5` contradicts data that begins at 1"));
    assert!(wrong("after 1ms wait 1ms").contains("`wait` says its own time"));
    assert!(wrong("in icmp too-big mtu 1200").ends_with("expected `about`, found the end of the line"));
    assert!(wrong("call connect\nhost mtu 1500").contains("before anything happens"));
    assert!(wrong("").contains("nothing happens"));
    assert!(wrong("include nowhere.part").contains("no file nowhere.part"));
    let none = parse_text("t.script", "call connect").unwrap_err().to_string();
    assert!(none.starts_with("t.script:1: a script begins with its purpose"), "{none}");
}

#[test]
fn what_is_not_understood_is_refused_whatever_it_is() {
    // A walk through cut and doubled lines: each is read or refused with a place.
    let lines =
        ["after 40ms ~1ms out SYN ACK seq 0 ack 1 sack 1..2 3..4 fo 0102", "call write 10 more expect 5"];
    for line in lines {
        for end in 0..line.len() {
            for text in [line[..end].to_owned(), format!("{}{line}", &line[..end])] {
                if let Err(error) = parse_text("t", &format!("# p\n{text}")) {
                    assert!(error.place.line > 0 && !error.message.is_empty());
                }
            }
        }
    }
}
