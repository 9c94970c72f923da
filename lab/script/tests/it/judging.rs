//! What the runner says of a script that does not hold: the line, what was expected, what came, and the packets.

use inhost_base::Duration;
use inhost_script::language::parse_text;
use inhost_script::suite::{self, Verdict};
use inhost_script::{Failed, table};

/// A host that has accepted a connection; seven lines, so that `lines` begins with line 9.
const ACCEPTED: &str = "# RFC 0: judged\nhost timestamps off\nhost sack off\ncall listen\nin SYN mss 1000\n\
                        out SYN ACK seq 0 ack 1\nin ack 1\ncall accept\n";

fn failure(lines: &str) -> Failed {
    let script = parse_text("t.script", &format!("{ACCEPTED}{lines}")).unwrap();
    match suite::on_ours(&script) {
        Verdict::Failed(failed) => failed,
        other => panic!("{lines}: {other:?}"),
    }
}

#[test]
fn a_segment_that_differs_is_told_field_by_field() {
    let failed = failure("call write 100\nout FIN data 1..51 ack 7 win 1..2 ts");
    assert_eq!(failed.place, "t.script:10");
    assert_eq!(failed.line, "out FIN data 1..51 ack 7 win 1..2 ts");
    for part in [
        "flags FIN|ACK expected, ACK found",
        "data 1..51 expected, 1..101 found",
        "ack 7 expected, 1 found",
        "win 1..2 expected, ",
        "ts () expected, None found",
        "there came `out PSH ACK data 1..101 ack 1",
    ] {
        assert!(failed.reason.contains(part), "{part:?} is not in {:?}", failed.reason);
    }
    assert!(failed.trace.iter().any(|line| line.contains("in  SYN seq 0")), "{:?}", failed.trace);
    assert!(suite::report(&failed).starts_with("t.script:10: "));
}

#[test]
fn early_late_missing_and_unexpected_segments_fail() {
    let reason = |lines: &str| failure(lines).reason;
    assert!(reason("in data 1..101\nafter 100ms out ack 101").contains("too early"));
    assert!(reason("in data 1..101\nafter 20ms out ack 101").contains("nothing came by"));
    assert!(reason("in data 1..101\nafter 50ms..60ms out ack 101").contains("too early"));
    assert!(reason("out data 1..101").contains("nothing came by"));
    assert!(reason("call write 100\nwait 10ms").contains("nothing more was to be sent"));
    assert!(reason("call write 100\nin ack 1").contains("nothing more was to be sent"));
    assert!(reason("call write 100").contains("after this line: nothing more was to be sent"));
}

#[test]
fn calls_figures_and_streams_are_compared() {
    let reason = |lines: &str| failure(lines).reason;
    assert!(reason("call read 10").contains("10 bytes expected, would-block came of it"));
    assert!(reason("in data 1..11\ncall read 10 expect 5").contains("5 bytes expected, 10 bytes read"));
    assert!(
        reason("in data 1..11 forged\ncall read 10").contains("number 1 is not the one that the peer sent")
    );
    assert!(reason("assert info.state == CLOSED").contains("state is ESTABLISHED"));
    assert!(reason("assert info.sent_bytes > 0").contains("sent_bytes is 0"));
    assert!(reason("assert info.nonsense == 1").contains("has no nonsense"));
    assert!(reason("call set nonsense on").contains("nonsense"));
    assert!(reason("call write 10 on other").contains("there is no socket other"));
}

#[test]
fn a_setting_that_is_not_known_fails_with_its_place() {
    let script = parse_text("t.script", "# p\nhost nonsense on\ncall connect").unwrap();
    let Verdict::Failed(failed) = suite::on_ours(&script) else { panic!("it passed") };
    assert_eq!(failed.reason, "t.script:2: no option is called nonsense");
}

#[test]
fn a_difference_needs_a_reason_and_a_reason_a_difference() {
    let script = |note: &str| parse_text("a/b.script", &format!("# purpose\n{note}\nwait 1ms")).unwrap();
    let (same, differs) = (script(""), script("kernel: differs because of | pipes"));
    let failed = Verdict::Failed(Failed {
        place: "a/b.script:3".into(),
        line: String::new(),
        reason: "nothing came".into(),
        trace: Vec::new(),
        lateness: Duration::ZERO,
    });
    assert!(suite::contradiction(&same.kernel, &Verdict::Passed).is_none());
    assert!(suite::contradiction(&same.kernel, &failed).unwrap().contains("gives no reason"));
    assert!(suite::contradiction(&differs.kernel, &failed).is_none());
    assert!(suite::contradiction(&differs.kernel, &Verdict::Passed).unwrap().contains("does not differ"));
    let results = table::Results {
        scripts: &[same, differs],
        ours: &[Verdict::Passed, Verdict::Passed],
        kernel: &[Verdict::Passed, failed],
    };
    let text = results.markdown("6.18");
    assert!(
        text.starts_with("2 scripts; 2 hold on our stack, 1 on Linux 6.18, 1 differ there, 0 cannot"),
        "{text}"
    );
    assert!(
        text.ends_with("| a/b | purpose | line 3: nothing came | of \\| pipes | as the RFC |\n"),
        "{text}"
    );
}
