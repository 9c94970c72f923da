//! Sessions from the outside: what steps tell, faults, undo, scripts, and lines that make no sense.

use inhost_base::Random;
use inhost_debug::{About, COMMANDS, Outcome, Record, Session, Step, Why};
use serde_json::Value;

/// The text of a script, as `inhost debug SCRIPT` prints it.
fn played(script: &str) -> String {
    text_of(&mut Session::new().unwrap(), script)
}

fn text_of(session: &mut Session, script: &str) -> String {
    let mut text = String::new();
    let stopped = session.play(script, |line, outcome| {
        text += format!("> {line}").trim_end();
        text.push('\n');
        text += &outcome.text;
        Ok::<(), ()>(())
    });
    assert_eq!(stopped, Ok(None), "{text}");
    text
}

fn with(script: &str) -> Session {
    let mut session = Session::new().unwrap();
    text_of(&mut session, script);
    session
}

fn steps(outcome: &Outcome) -> Vec<&Step> {
    let records = outcome.records.iter();
    records
        .filter_map(|record| if let Record::Step(step) = record { Some(step.as_ref()) } else { None })
        .collect()
}

/// The value that a field got in the last step of an outcome.
fn changed(outcome: &Outcome, host: &str, field: &str) -> Value {
    let steps = steps(outcome);
    let changes = &steps.last().expect("a step").changes;
    let found = changes.iter().find(|change| change.host == host && change.field == field);
    found.unwrap_or_else(|| panic!("{host} {field} does not change: {}", outcome.text)).to.clone()
}

#[test]
fn a_handshake_is_told_state_by_state() {
    let mut session = Session::new().unwrap();
    let call = session.line("connect");
    assert_eq!(steps(&call)[0].why, Why::Call);
    assert_eq!(changed(&call, "client", "state"), "SYN-SENT");
    assert_eq!(steps(&call)[0].sent[0].arrives_ns, Some(10_000_000));
    assert_eq!(changed(&session.line("step"), "server", "state"), "SYN-RECEIVED");
    let third = session.line("s");
    assert_eq!(changed(&third, "client", "state"), "ESTABLISHED");
    assert_eq!(changed(&third, "client", "round_trip.smoothed_ns"), 20_000_000);
    assert!(session.line("").records.is_empty() && session.line("# a remark").text.is_empty());
    assert_eq!(changed(&session.line("next"), "server", "state"), "ESTABLISHED");
}

// spec: RFC8985 6.2-1
#[test]
fn a_loss_is_repaired_by_what_acknowledgments_tell() {
    let mut session = with("connect\nstep 3\nread all\nsend 7240\ndrop 2\n");
    let hole = session.line("step 2");
    assert_eq!(changed(&hole, "server", "receive.reassembly_bytes"), 1448);
    let again = session.line("next retransmission");
    let told = steps(&again).last().unwrap().events.iter().map(|event| event.about).collect::<Vec<_>>();
    assert_eq!(told, [About::Retransmission]);
    assert_eq!(changed(&again, "client", "recovery.state"), "recovery");
    assert!(
        again.text.contains("retransmits 1448 bytes from 1449: acknowledgments tell of a loss"),
        "{}",
        again.text
    );
    let repaired = session.line("next recovery");
    assert_eq!(changed(&repaired, "client", "recovery.state"), "open");
    assert_eq!(changed(&repaired, "client", "send.unacknowledged"), 7241);
}

// spec: RFC6298 5-4
#[test]
fn a_loss_is_repaired_by_the_timer() {
    let mut session = with("set tlp off\nconnect\nstep 3\nsend 1000\ndrop\n");
    let expired = session.line("next timer");
    let step = steps(&expired)[0];
    assert_eq!(
        (step.why, step.at_ns, &step.expired[..]),
        (Why::Timer, 250_000_000, &["retransmission".to_owned()][..])
    );
    assert_eq!(changed(&expired, "client", "round_trip.backoff"), 1);
    assert_eq!(changed(&expired, "client", "recovery.state"), "loss");
    assert_eq!(changed(&session.line("next recovery"), "client", "recovery.state"), "open");
}

#[test]
fn frames_on_their_way_are_repeated_delayed_overtaken_and_spoilt() {
    let mut session = with("connect\nstep 3\nread all\nsend 4000\n");
    for (line, says) in [
        ("duplicate", "will arrive twice"),
        ("delay 5ms 4", "will arrive 5 ms later"),
        ("reorder 2", "will arrive behind the next"),
        ("corrupt 3", "with bits changed"),
    ] {
        let outcome = session.line(line);
        assert!(outcome.text.contains(says), "{line}: {}", outcome.text);
    }
    let run = session.line("run");
    let text = &run.text;
    assert!(text.contains("drops what arrived: bad checksum"), "{text}");
    assert!(text.contains("reads the end") || text.contains("SND 4001..4001"), "all is repaired: {text}");
    assert!(!text.contains("a rule is broken"), "{text}");
    assert!(session.line("drop").text.contains("no frame is on its way"));
    let mut session = with("connect\n");
    assert!(session.line("reorder").failed && session.line("drop 2").failed);
}

#[test]
fn duplicates_arrive_twice_and_overtaken_frames_out_of_order() {
    let mut session = with("connect\nstep 3\nread all\nsend 2896\nreorder\n");
    let first = session.line("step");
    assert_eq!(changed(&first, "server", "receive.reassembly_bytes"), 1448);
    let second = session.line("step");
    assert_eq!(changed(&second, "server", "receive.next"), 2897);
    let mut session = with("connect\nstep 3\nsend 100\nduplicate\n");
    let twice = session.line("step 2");
    assert_eq!(steps(&twice).iter().filter(|step| step.received.is_some()).count(), 2);
    assert!(twice.text.contains("sack 1-101"), "the second is reported: {}", twice.text);
}

#[test]
fn settings_count_where_they_should() {
    let mut session =
        with("server set window 4K\nset mss 500\nclient set congestion newreno\nset delay 1ms\n");
    text_of(&mut session, "connect\nstep 3\n");
    let shown = session.line("show").text;
    assert!(shown.contains("newreno") && shown.contains("cubic"), "{shown}");
    assert!(shown.contains("send MSS 488"), "500 without timestamps: {shown}");
    let sent = session.line("send 20000");
    let window = steps(&sent)[0].ends[0].figures.as_ref().unwrap().send_window_bytes;
    assert!(window <= 4096 && steps(&sent)[0].ends[0].figures.as_ref().unwrap().not_sent_bytes > 0);
    assert_eq!(steps(&sent)[0].sent[0].arrives_ns, Some(steps(&sent)[0].at_ns + 1_000_000));
    assert!(session.line("set rack off").text.contains("from the next connect on"));
}

#[test]
fn a_slow_line_has_a_queue() {
    let mut session = with("set rate 1Mbit\nconnect\nstep 3\n");
    let sent = session.line("send 5000");
    assert!(sent.text.contains("waits for the line"), "{}", sent.text);
    assert!(session.line("queues").text.contains("frames wait for the line"));
    assert!(session.line("run").text.contains("SND 5001..5001"));
}

/// Whatever was done, a step back is the session with a step less.
#[test]
fn undo_is_the_session_with_a_step_less() {
    let script =
        "connect\nstep 3\nread all\nsend 7240\ndrop 2\nstep 4\nshow\nnext retransmission\nstep\nrun\n";
    let whole = with(script);
    let count = whole.script().lines().count();
    assert_eq!(count, script.lines().count());
    // The session as single steps, for comparison.
    let mut single = Session::new().unwrap();
    let mut states = vec![single.line("show").text];
    for line in ["connect", "s", "s", "s", "read all", "send 7240", "drop 2"] {
        single.line(line);
        if line != "drop 2" {
            states.push(single.line("show").text);
        }
    }
    while !single.line("step").records.iter().any(|record| matches!(record, Record::Answer { .. })) {
        states.push(single.line("show").text);
    }
    let mut session = whole;
    let last = steps_of(&session.line("undo").text);
    for number in (7..=last).rev() {
        assert_eq!(session.line("show").text, states[number], "at step {number}");
        session.line("undo");
    }
    // What is done after a step back is a session like any other.
    let mut again = with(&session.script());
    assert_eq!(session.line("show").text, again.line("show").text);
    assert_eq!(session.line("run").text, again.line("run").text);
    assert!(Session::new().unwrap().line("undo").failed);
}

/// The number in `back at step N`.
fn steps_of(text: &str) -> usize {
    let number = text.strip_prefix("back at step ").and_then(|rest| rest.split(',').next());
    number.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

#[test]
fn a_saved_session_runs_again_to_the_same_text() {
    for script in [include_str!("../scripts/loss.debug"), include_str!("../scripts/timeout.debug")] {
        let mut session = Session::new().unwrap();
        let text = text_of(&mut session, script);
        let saved = session.line("save x.debug").save.unwrap();
        assert_eq!((&*saved.0, &*saved.1), ("x.debug", script));
        assert_eq!(played(&saved.1), text);
        // The same after steps back, which are not in it.
        text_of(&mut session, "undo 3\nstep\ntrace\n");
        let saved = session.script();
        assert!(!saved.contains("undo") && saved.ends_with("step\ntrace\n"), "{saved}");
        assert_eq!(played(&saved), played(&saved));
        assert_eq!(with(&saved).line("show").text, session.line("show").text);
    }
}

/// Lines of words that commands are made of, and of anything else.
fn random_line(random: &mut Random) -> String {
    const WORDS: &[&str] = &[
        "client",
        "server",
        "1",
        "2",
        "3",
        "100",
        "5000",
        "64K",
        "0",
        "-1",
        "1e9",
        "99999999999999999999",
        "50ms",
        "1s",
        "0s",
        "all",
        "state",
        "loss",
        "timer",
        "data",
        "window",
        "8K",
        "delay",
        "rate",
        "1Mbit",
        "mss",
        "536",
        "on",
        "off",
        "sack",
        "pacing",
        "congestion",
        "newreno",
        "linux",
        "profile",
        "5%",
        "none",
        "é",
        "\u{1b}[2J",
        "#",
        "?",
    ];
    let mut words = Vec::new();
    if random.public_below(10) > 1 {
        let known = &COMMANDS[random.public_below(COMMANDS.len() as u32) as usize];
        // One that begins again would leave little to try.
        words.push(if known.name == "restart" { "step" } else { known.name });
    }
    for _ in 0..random.public_below(4) {
        words.push(WORDS[random.public_below(WORDS.len() as u32) as usize]);
    }
    if random.public_below(6) == 0 {
        words.insert(0, if random.public_below(2) == 0 { "client" } else { "server" });
    }
    words.join(" ")
}

#[test]
fn five_hundred_lines_of_anything_do_no_harm() {
    for seed in 1..=5 {
        let mut random = Random::from_number(seed);
        let mut session = Session::new().unwrap();
        session.line("connect");
        session.line("step 3");
        for _ in 0..100 {
            let line = random_line(&mut random);
            // Runs of a session that was set to lose frames may take long.
            let line =
                if line.starts_with("next") || line.starts_with("step") { "step 5".to_owned() } else { line };
            let outcome = session.line(&line);
            assert!(!outcome.text.contains("a rule is broken"), "{line}: {}", outcome.text);
            assert!(!outcome.failed || outcome.text.lines().count() == 1, "{line}: {}", outcome.text);
            assert!(outcome.text.lines().all(|line| line.chars().count() < 400));
        }
        // It is a session all the same.
        assert_eq!(with(&session.script()).line("show").text, session.line("show").text, "seed {seed}");
    }
}

/// The lines of text fit a terminal.
#[test]
fn lines_are_short() {
    let text = played(include_str!("../scripts/loss.debug"));
    let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// docs/debug.md shows what the scripts print now. `INHOST_WRITE=1` writes the page anew.
#[test]
fn the_page_shows_what_the_scripts_print() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/debug.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut sessions =
        vec![played(include_str!("../scripts/loss.debug")), played(include_str!("../scripts/timeout.debug"))];
    let mut new = String::new();
    let mut parts = page.split("```debug\n");
    new += parts.next().unwrap();
    for part in parts {
        let (block, rest) = part.split_once("```").expect("the end of a block");
        // A block has as many commands as it shows, and the next goes on behind them.
        let commands = block.lines().filter(|line| line.starts_with('>')).count();
        if sessions.first().is_some_and(String::is_empty) {
            sessions.remove(0);
        }
        let session = sessions.first_mut().expect("no block has more than the scripts");
        let lines: Vec<&str> = session.lines().collect();
        let starts = (0..lines.len()).filter(|&at| lines[at].starts_with('>'));
        let end = starts.clone().nth(commands).unwrap_or(lines.len());
        let shown: String = lines[..end].iter().map(|line| format!("{line}\n")).collect();
        *session = lines[end..].iter().map(|line| format!("{line}\n")).collect();
        new += &format!("```debug\n{shown}```{rest}");
    }
    assert!(sessions.iter().all(String::is_empty), "a part of a script is not shown: {sessions:?}");
    if std::env::var_os("INHOST_WRITE").is_some() {
        std::fs::write(&path, &new).unwrap();
    }
    assert!(
        new == page,
        "docs/debug.md shows another text than the scripts print; INHOST_WRITE=1 writes it anew"
    );
}
