//! Named applications: what a caller is led to, by name, by a menu and by a port.

use std::rc::Rc;

use super::*;
use crate::codec::Charset;
use crate::machine::OUTPUT_BYTES;
use crate::pty::TerminalKeys;
use crate::translation::{TABS, Table, Translation};
use inhost_base::{Endpoint, Instant, Ipv4Addr};
use inhost_common::users::{Account, Verdict};

fn applications() -> Rc<Applications> {
    let host = Endpoint::new(Ipv4Addr::new(10, 9, 0, 5), 23);
    let entries = ["tso", "cal"].map(str::to_owned);
    let mut all = vec![
        Application::new("cal", Target::Program(vec!["/usr/bin/cal".into(), "-y".into()])),
        Application::new("main", Target::Menu(entries.into())),
        Application::new("tso", Target::Host(host)),
    ];
    (all[1].needs_password, all[2].needs_password) = (false, false);
    (all[0].about, all[1].about) = ("A calendar".into(), "What there is".into());
    Rc::new(Applications::new(all))
}

/// A session with the applications, whose port leads to `contact`.
fn session(contact: Option<&str>) -> Session {
    let config = ServerConfig {
        applications: applications(),
        contact: contact.map(str::to_owned),
        ..ServerConfig::default()
    };
    Session::new(config, Instant::from_millis(1))
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

/// Types a line; gives the actions and the screen.
fn line(session: &mut Session, text: &str) -> (Vec<Action>, String) {
    let typed = format!("{text}\r\n");
    session.network(typed.as_bytes(), TerminalKeys::default(), Instant::from_millis(2));
    (std::iter::from_fn(|| session.action()).collect(), screen(session))
}

fn granted() -> Verdict {
    Verdict::Granted(Account { name: "ada".into(), shell: None, is_operator: false })
}

/// Who is led where.
fn led(actions: &[Action]) -> Option<(&str, &str)> {
    match actions {
        [Action::StartShell(request)] => {
            Some((&request.account.name, request.application.as_ref().map_or("", |of| &of.name)))
        }
        _ => None,
    }
}

#[test]
fn log_on_leads_to_an_application_by_its_name() {
    let mut session = session(None);
    let (_, help) = line(&mut session, "help");
    assert!(help.contains("LOGON cal        A calendar\r\n"), "{help}");
    let (actions, _) = line(&mut session, "logon TSO");
    assert_eq!(led(&actions), Some(("", "tso")), "no password is asked for");
    session.shell_started(Instant::from_millis(3));
    session.shell_ended(Instant::from_millis(4));
    assert_eq!(session.action(), Some(Action::Close(Closing::ShellEnded)));
}

#[test]
fn a_program_asks_for_a_user_and_another_name_is_a_user() {
    let mut session = session(None);
    let (actions, shown) = line(&mut session, "logon cal");
    assert!(actions.is_empty() && shown.ends_with("User: "), "{shown}");
    line(&mut session, "ada");
    let (actions, _) = line(&mut session, "engine");
    assert_eq!(actions, [Action::Authenticate { user: "ada".into(), password: "engine".into() }]);
    session.verdict(granted());
    let actions: Vec<_> = std::iter::from_fn(|| session.action()).collect();
    assert_eq!(led(&actions), Some(("ada", "cal")));

    let mut other = self::session(None);
    let (_, shown) = line(&mut other, "logon ada");
    assert!(shown.ends_with("Password: "), "{shown}");
    line(&mut other, "engine");
    other.verdict(granted());
    let actions: Vec<_> = std::iter::from_fn(|| other.action()).collect();
    assert_eq!(led(&actions), Some(("ada", "")), "the user's shell");
}

#[test]
fn a_menu_is_come_back_to_and_asks_for_a_password_once() {
    let now = Instant::from_millis(3);
    let mut session = session(Some("main"));
    let shown = screen(&mut session);
    let menu = "\r\nWhat there is\r\n  1  tso          \r\n  2  cal          A calendar\r\nNumber or name, QUIT to leave: ";
    assert!(shown.ends_with(menu) && !shown.contains("LOGON"), "{shown:?}");
    let (_, shown) = line(&mut session, "3");
    assert!(shown.contains("That is not among them.") && shown.ends_with(menu), "{shown:?}");
    let (_, shown) = line(&mut session, "2");
    assert!(shown.ends_with("User: "), "{shown}");
    line(&mut session, "ada");
    line(&mut session, "engine");
    session.verdict(granted());
    let actions: Vec<_> = std::iter::from_fn(|| session.action()).collect();
    assert_eq!(led(&actions), Some(("ada", "cal")));
    session.shell_started(now);
    screen(&mut session);
    session.shell_ended(now);
    let shown = screen(&mut session);
    assert!(shown.ends_with(menu), "{shown:?}");
    let (actions, _) = line(&mut session, "CAL");
    assert_eq!(led(&actions), Some(("ada", "cal")), "the user is known");
    session.shell_failed(now);
    let shown = screen(&mut session);
    assert!(shown.contains("It could not be started.\r\n") && shown.ends_with(menu), "{shown:?}");
    let (actions, _) = line(&mut session, "quit");
    assert_eq!(actions, [Action::Close(Closing::Quit)]);
}

#[test]
fn a_caller_who_comes_back_to_a_menu_has_time_to_choose() {
    let at = |seconds: u64| Instant::from_millis(1000 * seconds);
    let mut session = session(Some("main"));
    line(&mut session, "tso");
    session.shell_started(at(1));
    // Longer than a visitor may take to log on, and nothing typed.
    session.shell_ended(at(121));
    session.timeout(at(121));
    assert_eq!(session.action(), None);
    session.timeout(at(240));
    let (actions, _) = line(&mut session, "tso");
    assert_eq!(led(&actions), Some(("", "tso")));
    session.shell_failed(at(400));
    session.timeout(at(519));
    assert_eq!(session.action(), None);
    session.timeout(at(520));
    assert_eq!(session.action(), Some(Action::Close(Closing::Idle)));
}

#[test]
fn a_menu_that_was_chosen_leads_back_to_the_commands() {
    let mut session = session(None);
    let (_, shown) = line(&mut session, "logon main");
    assert!(shown.ends_with("QUIT to leave: "), "{shown}");
    let (_, shown) = line(&mut session, "quit");
    assert!(shown.ends_with("inhost> "), "{shown}");
}

#[test]
fn a_port_leads_to_its_application() {
    let mut led_at_once = session(Some("tso"));
    let actions: Vec<_> = std::iter::from_fn(|| led_at_once.action()).collect();
    assert_eq!(led(&actions), Some(("", "tso")));

    let mut asked = session(Some("cal"));
    assert!(screen(&mut asked).ends_with("User: "));
    line(&mut asked, "eve");
    line(&mut asked, "guess");
    asked.verdict(Verdict::Denied);
    assert!(matches!(asked.action(), Some(Action::Denied { .. })));
    asked.resume();
    assert!(screen(&mut asked).ends_with("User: "), "there are no commands at this port");
    let (actions, _) = line(&mut asked, "");
    assert_eq!(actions, [Action::Close(Closing::Quit)]);
}

#[test]
fn a_menu_of_a_caller_who_only_types_numbers_has_an_end() {
    let mut session = session(Some("main"));
    for _ in 0..1000 {
        let (actions, _) = line(&mut session, "9");
        if actions == [Action::Close(Closing::Quit)] {
            return;
        }
    }
    panic!("the caller is still there");
}

/// A session in an application with a charset, tab stops and a table.
fn translated(tabs: u8, table: &str) -> Session {
    let charset = Charset::from_name("IBM037").unwrap();
    let table = Table::parse(table, charset).unwrap();
    let mut of = Application::new("tso", Target::Host(Endpoint::new(Ipv4Addr::new(10, 9, 0, 5), 23)));
    of.needs_password = false;
    of.translation = Some(Rc::new(Translation { charset, tabs: core::num::NonZeroU8::new(tabs), table }));
    let applications = Rc::new(Applications::new(vec![of]));
    let config = ServerConfig { applications, contact: Some("tso".into()), ..ServerConfig::default() };
    let mut session = Session::new(config, Instant::from_millis(1));
    while session.action().is_some() {}
    session.shell_started(Instant::from_millis(2));
    screen(&mut session);
    session
}
/// The keys of another host's application.
fn no_keys() -> TerminalKeys {
    TerminalKeys {
        canonical: false,
        signals: false,
        traps: false,
        flow_control: false,
        ..TerminalKeys::default()
    }
}

#[test]
fn an_application_is_met_in_its_charset() {
    let now = Instant::from_millis(3);
    let mut session = translated(8, "4f = \\e|");
    session.output(b"\xd9\x05\xc5\x4f\x15", now);
    assert_eq!(screen(&mut session), "R       E\x1b|\r\n");
    session.network("é\x1b|\r\n".as_bytes(), no_keys(), now);
    assert_eq!(session.typed(), b"\x51\x4f\x15");
    assert_eq!(session.action(), None);
    session.network("€€".as_bytes(), no_keys(), now);
    let lacks = Charset::from_name("IBM037").map(Action::Substituted);
    assert_eq!((session.action(), session.action()), (lacks, None), "told once");
}

/// The caller's charset, and the application's: each is translated for the other.
#[test]
fn a_caller_with_a_charset_meets_an_application_with_another() {
    let now = Instant::from_millis(3);
    let mut session = translated(0, "");
    session.network(b"\xff\xfb\x2a\xff\xfa\x2a\x01 ISO-8859-1\xff\xf0\xe9\r\n", no_keys(), now);
    assert_eq!(session.typed(), b"\x51\x15");
    screen(&mut session);
    session.output(b"\x51\x15", now);
    assert_eq!(session.telnet().pending().0, b"\xe9\r\n");
}

#[test]
fn what_was_typed_for_an_application_is_not_typed_at_the_menu() {
    let now = Instant::from_millis(3);
    let mut all = applications().find("tso").cloned().into_iter().collect::<Vec<_>>();
    let charset = Charset::from_name("IBM037").unwrap();
    all[0].translation = Some(Rc::new(Translation { charset, tabs: None, table: Table::default() }));
    let mut menu = Application::new("main", Target::Menu(["tso".to_owned()].into()));
    menu.needs_password = false;
    all.push(menu);
    let (applications, contact) = (Rc::new(Applications::new(all)), Some("main".into()));
    let mut session = Session::new(ServerConfig { applications, contact, ..ServerConfig::default() }, now);
    line(&mut session, "tso");
    session.shell_started(now);
    session.network(b"..", no_keys(), now);
    assert_eq!(session.typed(), b"KK", "in EBCDIC");
    screen(&mut session);
    session.shell_ended(now);
    let shown = screen(&mut session);
    assert!(shown.ends_with("QUIT to leave: "), "{shown:?}");
    let (actions, _) = line(&mut session, "1");
    assert_eq!(led(&actions), Some(("", "tso")), "the number stands alone");
    session.shell_started(now);
    assert_eq!(session.typed(), b"");
}

#[test]
fn an_application_for_a_caller_who_reads_nothing_is_held() {
    let now = Instant::from_millis(3);
    let mut session = translated(TABS, "05 > 01234567890123456789012345678901");
    let mut most = 0;
    for _ in 0..1000 {
        if session.takes_output(now) {
            session.output(&[5; 2048], now);
        }
        if session.takes_input() {
            session.network(&[b'x'; 2048], no_keys(), now);
        }
        most = most.max(session.telnet().pending_bytes());
        assert!(session.typed().len() <= 8192);
    }
    assert!(most <= OUTPUT_BYTES + 2048 * usize::from(TABS), "{most} octets wait");
}
