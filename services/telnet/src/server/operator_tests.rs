//! The operator's prompt: inputs and screens, who gets it, and when it ends.

use super::*;
use crate::codec::{Side, TelnetOption};
use crate::pty::TerminalKeys;
use inhost_base::{Duration, Instant};
use inhost_common::service::Order;
use inhost_common::users::{Account, Verdict};

/// Types a line at the prompt of a client that does not echo; gives what was said, and the screen.
fn line(front: &mut LoginHandler, text: &str) -> (Option<Said>, String) {
    let (mut said, mut screen) = (None, Vec::new());
    for octet in text.bytes().chain(*b"\r") {
        said = said.or(front.key(octet, true, &mut screen));
    }
    (said, String::from_utf8(screen).unwrap())
}

#[test]
fn what_a_visitor_says_and_sees() {
    let mut front = LoginHandler::new("host", 3);
    let log_on = |purpose| Some(Said::LogOn { purpose, user: "ada".into(), password: "engine".into() });
    let table: [(&str, Option<Said>, &str); 8] = [
        ("sys", Some(Said::Figures), "sys\r\n"),
        ("ne", None, "ne\r\nAmbiguous; HELP lists the commands.\r\nhost> "),
        ("operator", None, "operator\r\nUser: "),
        ("ada", None, "ada\r\nPassword: "),
        ("engine", log_on(Purpose::Operate), "\r\n"),
        ("op ada", None, "op ada\r\nPassword: "),
        ("engine", log_on(Purpose::Operate), "\r\n"),
        ("login ada", None, "login ada\r\nPassword: "),
    ];
    for (typed, said, shown) in table {
        let (found, screen) = line(&mut front, typed);
        let is_asked = found.is_some();
        assert_eq!((found, &*screen), (said, shown), "{typed}");
        if is_asked {
            assert!(!front.is_listening());
            let mut screen = Vec::new();
            front.reply("Three\u{1b}[2J sessions.", &mut screen);
            assert_eq!(String::from_utf8(screen).unwrap(), "Three\u{fffd}[2J sessions.\r\nhost> ");
        }
    }
    assert_eq!(line(&mut front, "engine").0, log_on(Purpose::LogOn));
}

#[test]
fn what_an_operator_says_and_sees() {
    let mut front = LoginHandler::new("host", 3);
    let mut screen = Vec::new();
    front.operate("ada", &mut screen);
    assert_eq!(screen, b"HELP lists the commands, QUIT leaves.\r\nada# ");
    let order = |order| Some(Said::Order(order));
    let table: [(&str, Option<Said>, &str); 7] = [
        ("", None, "\r\nada# "),
        ("sys", order(Order::System), "sys\r\n"),
        (
            "stop telnet force",
            order(Order::Stop { service: "telnet".into(), force: true }),
            "stop telnet force\r\n",
        ),
        ("s", None, "s\r\nAmbiguous: SYSSTAT, SERVICES, STOP, START.\r\nada# "),
        ("logon ada", None, "logon ada\r\nUnknown; HELP lists the commands.\r\nada# "),
        ("log", order(Order::Log(20)), "log\r\n"),
        ("quit", Some(Said::Leave), "quit\r\n"),
    ];
    for (typed, said, shown) in table {
        let (found, screen) = line(&mut front, typed);
        assert_eq!((&found, &*screen), (&said, shown), "{typed}");
        if matches!(found, Some(Said::Order(_))) {
            assert!(!front.is_listening(), "what is typed meanwhile waits");
            let mut screen = Vec::new();
            // A name with which somebody tries to clear the operator's screen.
            front.reply("telnet.1  \u{1b}[2J\u{9b}1A\u{202e}eve\ntelnet.2  ada\n", &mut screen);
            let shown = "telnet.1  \u{fffd}[2J\u{fffd}1A\u{fffd}eve\r\ntelnet.2  ada\r\nada# ";
            assert_eq!(String::from_utf8(screen).unwrap(), shown);
        }
    }
}

#[test]
fn an_operator_may_give_any_number_of_orders_and_long_answers_are_cut() {
    let mut front = LoginHandler::new("host", 3);
    front.operate("ada", &mut Vec::new());
    for _ in 0..1000 {
        assert_eq!(line(&mut front, "sys").0, Some(Said::Order(Order::System)));
        front.reply("", &mut Vec::new());
    }
    let mut screen = Vec::new();
    line(&mut front, "net");
    front.reply(&"é\n".repeat(100_000), &mut screen);
    assert!(screen.len() < 3 * super::login::TEXT_BYTES, "{}", screen.len());
    assert!(String::from_utf8(screen).unwrap().ends_with("\r\n... and more than is shown here.\r\nada# "));
}

/// A session at which `typed` was typed, and its actions so far.
fn session(typed: &str, now: Instant) -> (Session, Vec<Action>) {
    let mut session = Session::new(ServerConfig::default(), now);
    session.network(typed.as_bytes(), TerminalKeys::default(), now);
    let actions = std::iter::from_fn(|| session.action()).collect();
    (session, actions)
}

fn screen(session: &mut Session) -> String {
    let mut all = Vec::new();
    while session.telnet().pending_bytes() > 0 {
        let octets = session.telnet().pending().0.to_vec();
        session.telnet().sent(octets.len());
        all.extend(octets);
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn granted(is_operator: bool) -> Verdict {
    Verdict::Granted(Account { name: "ada".into(), shell: None, is_operator })
}

#[test]
fn a_right_password_of_another_user_is_refused() {
    let now = Instant::from_millis(1);
    let (mut session, actions) = session("operator ada\r\nengine\r\nsysstat\r\n", now);
    assert!(matches!(&actions[..], [Action::Authenticate { .. }]), "{actions:?}");
    session.verdict(granted(false));
    let actions: Vec<_> = std::iter::from_fn(|| session.action()).collect();
    // What was typed ahead is a visitor's.
    assert_eq!(actions, [Action::NotOperator("ada".into()), Action::Figures]);
    assert!(screen(&mut session).contains("You are not an operator of this host"));
}

#[test]
fn a_wrong_password_pauses_counts_and_closes_as_at_logon() {
    let now = Instant::from_millis(1);
    let (mut session, _) = session("operator ada\r\nwrong\r\n", now);
    for pause_s in [1, 2, 4] {
        session.verdict(Verdict::Denied);
        let pause = Duration::from_secs(pause_s);
        assert_eq!(session.action(), Some(Action::Denied { user: "ada".into(), pause }));
        session.resume();
        session.network(b"operator ada\r\nwrong\r\n", TerminalKeys::default(), now);
        let next = session.action();
        match pause_s {
            4 => assert_eq!(next, Some(Action::Close(Closing::Attempts))),
            _ => assert!(matches!(next, Some(Action::Authenticate { .. })), "{next:?}"),
        }
    }
}

#[test]
fn an_operator_has_the_time_of_a_user_and_is_ended_by_another() {
    let now = Instant::from_millis(1);
    let idle = ServerConfig::default().idle_time.unwrap();
    let operate = || {
        let (mut session, _) = session("operator ada\r\nengine\r\n", now);
        session.verdict(granted(true));
        assert_eq!(session.action(), Some(Action::Operate("ada".into())));
        assert!(!session.telnet().is_active(Side::Remote, TelnetOption::Echo));
        assert_eq!(session.deadline(), Some(now + idle), "the time for logging in is over");
        session
    };
    let mut first = operate();
    let later = now + Duration::from_secs(600);
    first.network(b"sysstat\r\n", TerminalKeys::default(), later);
    assert_eq!(first.action(), Some(Action::Order(Order::System)));
    first.reply("All is well.");
    assert!(screen(&mut first).ends_with("All is well.\r\nada# "));
    first.timeout(now + idle);
    assert_eq!(first.action(), None);
    first.timeout(later + idle);
    assert_eq!(first.action(), Some(Action::Close(Closing::Idle)));

    let mut second = operate();
    second.dropped();
    assert_eq!(second.action(), Some(Action::Close(Closing::Dropped)));
    assert!(screen(&mut second).contains("The operator has ended this session"));

    let mut third = operate();
    third.network(b"quit\r\n", TerminalKeys::default(), later);
    assert_eq!(third.action(), Some(Action::Close(Closing::Quit)));
}
