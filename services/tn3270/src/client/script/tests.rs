use super::*;
use crate::client::tests::{carry, fields, ready_to_transfer, send};
use crate::client::{Terminal, TerminalConfig};
use crate::codec::{Ddm, DeviceReason, OPEN_DATA};
use crate::machine::{Event, ServerConfig, Tn3270};
use inhost_base::{Duration, Instant};

#[test]
fn lines_are_read() {
    let text = "# a comment\n\n  within 5 # seconds\nwait text \"a \\\"b\\\" \\\\\"\npress PF3\nsend a b binary append\n";
    let script = Script::parse(text).unwrap();
    assert_eq!(script.lines.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 4, 5, 6]);
    let wrong = |text: &str| Script::parse(text).unwrap_err().to_string();
    assert_eq!(wrong("\nwait text \"a"), "line 2: a quote is not closed");
    assert!(wrong("press pf25").contains("\"pf25\" is not a key"));
    assert!(wrong("move a 1").contains("\"a\" is not a number"));
    assert!(wrong("jump").contains("\"jump\""));
    assert!(wrong("wait for it").contains("is not a condition"));
    assert!(wrong(&"dump\n".repeat(SCRIPT_LINES + 1)).contains("at most"));
}

/// The page of this module is a script.
#[test]
fn the_page_is_a_script() {
    let page = include_str!("mod.rs").lines().map_while(|line| line.strip_prefix("//!"));
    let script: Vec<&str> = page.skip_while(|line| *line != " ```text").skip(1).collect();
    let end = script.iter().position(|line| *line == " ```").unwrap();
    let script = Script::parse(&script[..end].join("\n")).unwrap();
    assert_eq!(script.lines.len(), 18);
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    let mut terminal = Terminal::new(TerminalConfig::default());
    let mut run = Run::new(Script::parse("within 3\nwait ready").unwrap());
    let begin = Instant::from_millis(1000);
    let until = begin + Duration::from_secs(3);
    assert_eq!(run.step(&mut terminal, begin), Ok(Step::Wait(until)));
    assert_eq!(run.step(&mut terminal, begin + Duration::from_secs(2)), Ok(Step::Wait(until)));
    let failure = run.step(&mut terminal, until).unwrap_err();
    assert_eq!(failure.to_string(), "line 2: the host has not begun 3270 mode");
}

#[test]
fn a_host_that_has_closed_ends_waits() {
    let mut terminal = Terminal::new(TerminalConfig::default());
    let mut run = Run::new(Script::parse("wait closed\nwait unlocked").unwrap());
    assert!(matches!(run.step(&mut terminal, Instant::ZERO), Ok(Step::Wait(_))));
    terminal.close();
    let failure = run.step(&mut terminal, Instant::ZERO).unwrap_err();
    assert_eq!(failure.to_string(), "line 2: the keyboard is locked, and the host has closed the connection");
}

/// The host would go on without TN3270E, on a device of its choice.
#[test]
fn a_device_that_is_refused_ends_a_script() {
    let config = TerminalConfig { device: Some("LU042".into()), ..TerminalConfig::default() };
    let (mut host, mut terminal) = (Tn3270::server(ServerConfig::default()), Terminal::new(config));
    let mut run = Run::new(Script::parse("wait ready").unwrap());
    host.start();
    let failure = loop {
        terminal.receive(&mut host.pending());
        host.sent(usize::MAX);
        let step = run.step(&mut terminal, Instant::ZERO);
        let octets = terminal.pending().to_vec();
        terminal.sent(octets.len());
        let mut input = &octets[..];
        while let Some(event) = host.receive(&mut input) {
            if matches!(event, Event::DeviceRequested { .. }) {
                host.reject_device(DeviceReason::DeviceInUse);
            }
        }
        match step {
            Ok(Step::Wait(_)) => {}
            other => break other.unwrap_err(),
        }
    };
    assert!(failure.to_string().starts_with("line 1: the host refuses the device: "), "{failure}");
}

#[test]
fn without_a_host_keys_and_checks_fail() {
    let fails = |text: &str| {
        let mut terminal = Terminal::new(TerminalConfig::default());
        let mut run = Run::new(Script::parse(text).unwrap());
        run.step(&mut terminal, Instant::ZERO).unwrap_err().why
    };
    assert!(fails("type x").contains("no 3270 session"));
    assert!(fails("press enter").contains("no 3270 session"));
    assert!(fails("assert text x").contains("does not have"));
    assert!(fails("assert cursor 2 2").contains("row 1, column 1"));
    assert!(fails("assert at 30 1 x").contains("no row 30"));
    assert!(fails("field x").contains("does not have"));
    assert!(fails("press sysreq").contains("SysReq"));
    let mut terminal = Terminal::new(TerminalConfig::default());
    let mut run = Run::new(Script::parse("assert no text x\ndump\ndump json").unwrap());
    assert!(matches!(run.step(&mut terminal, Instant::ZERO), Ok(Step::Show(_))));
    assert_eq!(run.step(&mut terminal, Instant::ZERO), Ok(Step::ShowJson));
    assert_eq!(run.step(&mut terminal, Instant::ZERO), Ok(Step::Done));
}

#[test]
fn a_transfer_takes_its_time_as_long_as_it_goes_on() {
    let (mut host, mut terminal) = ready_to_transfer();
    let mut run = Run::new(Script::parse("within 30\nreceive x y binary").unwrap());
    let mut now = Instant::ZERO;
    assert!(matches!(run.step(&mut terminal, now), Ok(Step::Wait(_))));
    carry(&mut host, &mut terminal);
    send(&mut host, &mut terminal, &fields(&[Ddm::Open { name: *OPEN_DATA, is_upload: false }]));
    for _ in 0..10 {
        send(&mut host, &mut terminal, &fields(&[Ddm::Insert, Ddm::InsertData(b"piece")]));
        assert!(matches!(run.step(&mut terminal, now), Ok(Step::Wait(_))));
        now += Duration::from_secs(20);
    }
    now += Duration::from_secs(20);
    let failure = run.step(&mut terminal, now).unwrap_err();
    assert_eq!(failure.to_string(), "line 2: the transfer has not ended");
}
