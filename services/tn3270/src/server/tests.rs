use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use inhost_base::{Duration, Instant, IpAddr, Ipv4Addr};

use super::*;
use crate::client::{Terminal, TerminalConfig};
use crate::codec::{Aid, CodePage, DeviceReason, ModifiedField, QueryReply, Resource};
use crate::screen::{Key, Model, Screen, ScreenConfig};

fn shown(panel: &Panel, layout: &Layout, first_line: usize) -> Screen {
    let model = Model::ALL.into_iter().find(|model| model.alternate() == (layout.rows, layout.columns));
    let mut screen = Screen::new(ScreenConfig::new(model.unwrap()));
    assert_eq!(screen.receive(&panel.render(layout, first_line)), Ok(None));
    screen
}

fn layout(model: Model) -> Layout {
    let (rows, columns) = model.alternate();
    Layout { rows, columns, is_alternate: model != Model::Two, ..Layout::default() }
}

#[test]
fn panels_fit_every_screen() {
    let text = "a line that is longer than any screen is wide ".repeat(5);
    let form = Panel::new("FORM", &text)
        .text(1, 2, &text)
        .text(60, 2, "beyond the end")
        .input(Input::new("end", 2, 70, 200).holding(&text))
        .input(Input::new("beyond", 50, 2, 5))
        .input(Input::new("no column", 3, 1, 5))
        .with_command()
        .key(Aid::Pf(3), &text)
        .error(&text);
    for model in Model::ALL {
        let layout = layout(model);
        for panel in [&form, &Panel::lines("TEXT", &text, &text.repeat(40))] {
            let screen = shown(panel, &layout, 0);
            assert_eq!((screen.rows(), screen.columns()), (layout.rows, layout.columns));
            // Each row begins with an attribute or a blank: nothing runs over from the row above.
            for row in 0..screen.rows() {
                assert!(screen.line(row).starts_with(' '), "{:?}", screen.lines());
            }
        }
        let screen = shown(&form, &layout, 0);
        let inputs: Vec<_> =
            screen.fields().into_iter().filter(|field| !field.attribute.is_protected()).collect();
        assert_eq!(inputs.len(), 2, "those that have room, and the command line");
        assert_eq!(screen.position(screen.cursor()).column, 70);
    }
}

#[test]
fn text_that_the_page_does_not_have_is_question_marks() {
    let panel = Panel::new("X", "t\u{1b}[2J\u{202e}漢").text(1, 2, "a\nb\tc");
    let screen = shown(&panel, &Layout::default(), 0);
    assert!(screen.line(0).contains("t?[2J??"), "{}", screen.line(0));
    assert!(screen.line(2).contains("a?b?c"));
}

#[test]
fn only_fields_of_the_panel_are_read() {
    let panel = Panel::new("FORM", "Form")
        .input(Input::new("name", 1, 10, 4).holding("old"))
        .input(Input::new("other", 2, 10, 4).holding("kept"));
    let layout = Layout::default();
    let field =
        |address, text: &str| ModifiedField { address: Some(address), text: CodePage::Cp037.encode(text) };
    let fields = [
        field(2 * 80 + 9, " longer than four"),
        field(2 * 80 + 10, "not the beginning"),
        field(5, "the title"),
        ModifiedField { address: None, text: vec![0xc1] },
    ];
    let values = panel.read(&layout, &fields);
    let expected = [("name", "lon"), ("other", "kept")].map(|(name, value)| (name.into(), value.into()));
    assert_eq!(values, BTreeMap::from(expected));
}

#[test]
fn rules_say_what_to_enter() {
    let panel = Panel::new("FORM", "Form")
        .input(Input::new("a", 1, 10, 4).called("the first").required())
        .input(Input::new("b", 2, 10, 4).rule(Rule::Number(1, 5)))
        .input(Input::new("c", 3, 10, 4).rule(Rule::OneOf(vec!["YES".into(), "NO".into()])));
    let check = |a: &str, b: &str, c: &str| {
        let values = [("a", a), ("b", b), ("c", c)].map(|(name, value)| (name.to_owned(), value.to_owned()));
        panel.check(&BTreeMap::from(values))
    };
    let wrong = |field: &str, why: &str| Err((field.to_owned(), why.to_owned()));
    assert_eq!(check("x", "", ""), Ok(()));
    assert_eq!(check("x", "5", "yes"), Ok(()));
    assert_eq!(check("", "5", "yes"), wrong("a", "Enter the first"));
    assert_eq!(check("x", "6", "yes"), wrong("b", "b: enter a number from 1 to 5"));
    assert_eq!(check("x", "-1", "yes"), wrong("b", "b: enter a number from 1 to 5"));
    assert_eq!(check("x", "1", "maybe"), wrong("c", "c: enter one of YES, NO"));
}

#[test]
fn devices_have_names_limits_and_printers() {
    let devices = Devices::new(2);
    let request = |kind: &str, resource: Option<Resource>| {
        devices.request(kind, resource.as_ref(), HERE).map_err(|reason| reason as u8)
    };
    let reason = |reason: DeviceReason| Some(reason as u8);
    let connect = |name: &str| Some(Resource::Connect(name.into()));
    let associate = |name: &str| Some(Resource::Associate(name.into()));
    let terminal = request("IBM-3278-2", None).ok().unwrap();
    let second = request("IBM-3279-5-E", connect("LU002")).ok().unwrap();
    assert_eq!((terminal.name(), second.name()), ("LU001", "LU002"));
    assert_eq!(request("IBM-3278-2", None).err(), reason(DeviceReason::DeviceInUse));
    assert_eq!(request("IBM-3278-2", connect("LU001")).err(), reason(DeviceReason::DeviceInUse));
    for name in ["LU003", "LU1", "X", "LU000", "LU+01"] {
        assert_eq!(request("IBM-3278-2", connect(name)).err(), reason(DeviceReason::InvalidName), "{name}");
    }
    assert_eq!(request("IBM-3278-2", connect("PR001")).err(), reason(DeviceReason::TypeNameError));
    assert_eq!(request("VT100", None).err(), reason(DeviceReason::InvalidDeviceType));
    assert_eq!(request("IBM-3278-2", associate("LU001")).err(), reason(DeviceReason::InvalidAssociate));
    assert_eq!(request("IBM-3287-1", associate("LU009")).err(), reason(DeviceReason::ConnectPartner));
    assert_eq!(devices.print("LU001", Vec::new()), Err(PrintError::NoPrinter));
    let printer = request("IBM-3287-1", associate("LU001")).ok().unwrap();
    assert!(printer.is_printer() && !terminal.is_printer());
    assert_eq!(request("IBM-3287-1", associate("LU001")).err(), reason(DeviceReason::DeviceInUse));
    for number in 0..JOBS {
        assert_eq!(devices.print("LU001", vec![number.to_string()]), Ok(()));
    }
    assert_eq!(devices.print("LU001", Vec::new()), Err(PrintError::Busy));
    assert_eq!(devices.print("LU001", vec![String::new(); JOB_LINES + 1]), Err(PrintError::TooLong));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(printer.poll_job(&mut context), Poll::Ready(vec!["0".to_owned()]));
    drop(printer);
    assert_eq!(devices.print("LU001", Vec::new()), Err(PrintError::NoPrinter));
    drop(terminal);
    assert_eq!(request("IBM-3278-2", None).ok().unwrap().name(), "LU001");
}

/// An origin.
const HERE: Origin = Origin { address: IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2)), is_tls: true };

/// Prints of a terminal go to its own user's printer, and not in clear text if it has TLS.
#[test]
fn a_printer_of_another_origin_is_not_associated() {
    let devices = Devices::new(2);
    let terminal = devices.request("IBM-3278-2", None, HERE).unwrap();
    let associate = Resource::Associate(terminal.name().to_owned());
    let elsewhere = Origin { address: [10, 9, 0, 3].into(), ..HERE };
    for origin in [elsewhere, Origin::clear(HERE.address)] {
        let refused = devices.request("IBM-3287-1", Some(&associate), origin).err();
        assert_eq!(refused, Some(DeviceReason::InvalidAssociate));
    }
    assert_eq!(devices.print("LU001", Vec::new()), Err(PrintError::NoPrinter));
    assert!(devices.request("IBM-3287-1", Some(&associate), HERE).is_ok());
}

/// A session and a terminal; the session's actions are given back as they come.
struct Pair {
    session: Session,
    terminal: Terminal,
    now: Instant,
}

impl Pair {
    fn new(config: TerminalConfig) -> Pair {
        let mut session = Session::new(SessionConfig::default());
        session.start(Instant::ZERO);
        Pair { session, terminal: Terminal::new(config), now: Instant::ZERO }
    }
    fn carry(&mut self) -> Option<Action> {
        for _ in 0..20 {
            self.terminal.receive(&mut self.session.pending());
            self.session.sent(usize::MAX);
            let octets = self.terminal.pending().to_vec();
            self.terminal.sent(octets.len());
            let mut input = &octets[..];
            while !input.is_empty() {
                self.session.receive(&mut input, self.now);
                match self.session.action() {
                    Some(Action::Device { .. }) => self.session.device(Ok("LU001")),
                    Some(Action::Ready { .. }) => {}
                    Some(action) => return Some(action),
                    None => {}
                }
            }
            if let Some(action) = self.session.action() {
                return Some(action);
            }
        }
        None
    }
    fn show(&mut self, panel: Panel) {
        self.session.next(Next::Show(Box::new(panel)), self.now);
        assert_eq!(self.carry(), None);
    }
}

#[test]
fn a_terminal_is_asked_what_it_can_do() {
    let screen = ScreenConfig::new(Model::Five);
    let mut pair = Pair::new(TerminalConfig { screen, ..TerminalConfig::default() });
    assert_eq!(pair.carry(), Some(Action::Ask(Entered::start())));
    let layout = pair.session.layout();
    assert_eq!((layout.rows, layout.columns, layout.is_alternate), (27, 132, true));
    pair.show(Panel::lines("TEXT", "Text", &"line\n".repeat(100)));
    pair.terminal.press(Key::Pf(8)).unwrap();
    assert_eq!(pair.carry(), None, "going through a text is not the dialog's matter");
    assert!(pair.terminal.screen().line(1).contains("Lines 23 to 44 of 100"));
}

#[test]
fn a_terminal_that_does_not_say_is_taken_as_its_name_says() {
    let mut session = Session::new(SessionConfig::default());
    session.start(Instant::ZERO);
    let opening = b"\xff\xfb\x28\xff\xfa\x28\x02\x07IBM-3278-4-E\xff\xf0";
    session.receive(&mut &opening[..], Instant::ZERO);
    assert!(matches!(session.action(), Some(Action::Device { .. })));
    session.device(Ok("LU001"));
    session.receive(&mut &b"\xff\xfa\x28\x03\x07\xff\xf0"[..], Instant::ZERO);
    assert!(matches!(session.action(), Some(Action::Ready { .. })));
    let deadline = session.deadline().unwrap();
    session.expire(Instant::ZERO);
    assert_eq!(session.action(), None, "it is not yet time");
    session.expire(deadline);
    assert_eq!(session.action(), Some(Action::Ask(Entered::start())));
    assert_eq!(session.layout().rows, 43);
}

/// An address has 14 bits: a larger screen is not used as such.
#[test]
fn a_screen_without_addresses_for_all_of_it_is_refused() {
    for (rows, columns, expected) in [(128, 128, (128, 128)), (128, 129, (24, 80)), (82, 200, (24, 80))] {
        let mut session = Session::new(SessionConfig::default());
        session.start(Instant::ZERO);
        let opening = b"\xff\xfb\x28\xff\xfa\x28\x02\x07IBM-DYNAMIC\xff\xf0";
        session.receive(&mut &opening[..], Instant::ZERO);
        session.action();
        session.device(Ok("LU001"));
        session.receive(&mut &b"\xff\xfa\x28\x03\x07\xff\xf0"[..], Instant::ZERO);
        session.action();
        let mut record = vec![0, 0, 0, 0, 0, Aid::StructuredField.octet()];
        QueryReply::ImplicitPartition { default: (80, 24), alternate: (columns, rows) }.write(&mut record);
        record.extend_from_slice(b"\xff\xef");
        session.receive(&mut &record[..], Instant::ZERO);
        assert_eq!(session.action(), Some(Action::Ask(Entered::start())));
        assert_eq!((session.layout().rows, session.layout().columns), expected);
    }
}

#[test]
fn an_idle_session_ends() {
    let mut pair = Pair::new(TerminalConfig::default());
    pair.carry();
    pair.show(Panel::new("FORM", "Form").input(Input::new("a", 1, 10, 4)));
    assert_eq!(pair.session.deadline(), Some(Instant::ZERO + Duration::from_secs(1800)));
    pair.session.expire(Instant::ZERO + Duration::from_secs(1800));
    assert_eq!(pair.session.action(), Some(Action::Close(Closing::Idle)));
    assert!(!pair.session.takes_input());
}

fn start_transfer(command: &str) -> Pair {
    let mut pair = Pair::new(TerminalConfig::default());
    pair.carry();
    pair.show(Panel::new("MENU", "Menu").with_command());
    pair.terminal.transfer(&command.parse().unwrap(), b"data").unwrap();
    pair
}

/// What the files cannot do is told to the terminal, and shown on the panel.
#[test]
fn transfers_fail_with_a_reason() {
    let failed = || FileAnswer::Failed("Your quota is used up".into());
    let opened = || FileAnswer::Opened { position: 0 };
    type Answers<'a> = &'a [(FileAction, FileAnswer)];
    let name = || "x".to_owned();
    let open_read = || FileAction::OpenRead { name: name() };
    let open_write = || FileAction::OpenWrite { name: name(), is_append: false };
    let read = || FileAction::Read { position: 0, length: 8192 };
    let write = || FileAction::Write { position: 0, data: b"data".to_vec() };
    let commit = || FileAction::Commit { size_bytes: 4 };
    let cases: [(&str, Answers<'_>, bool); 5] = [
        ("IND$FILE GET x", &[(open_read(), failed())], false),
        ("IND$FILE GET x", &[(open_read(), opened()), (read(), failed())], false),
        ("IND$FILE PUT x", &[(open_write(), failed())], false),
        ("IND$FILE PUT x", &[(open_write(), opened()), (write(), failed())], true),
        (
            "IND$FILE PUT x",
            &[(open_write(), opened()), (write(), FileAnswer::Done), (commit(), failed())],
            false,
        ),
    ];
    for (command, answers, is_discarded) in cases {
        let mut pair = start_transfer(command);
        for (action, answer) in answers {
            assert_eq!(pair.carry(), Some(Action::File(action.clone())), "{command}");
            pair.session.file(answer.clone(), pair.now);
        }
        if is_discarded {
            assert_eq!(pair.carry(), Some(Action::File(FileAction::Discard)));
            pair.session.file(FileAnswer::Done, pair.now);
        }
        let Some(Action::Transferred { outcome: Err(why), .. }) = pair.carry() else { panic!("{command}") };
        assert!(why.contains("quota"), "{why}");
        pair.carry();
        assert!(pair.terminal.take_transfer().unwrap().unwrap_err().to_string().contains("quota"));
        assert!(pair.terminal.screen().lines().iter().any(|line| line.contains("quota")));
    }
}

#[test]
fn an_upload_that_is_too_large_is_refused() {
    let config = SessionConfig { upload_bytes: 3, ..SessionConfig::default() };
    let mut pair = Pair::new(TerminalConfig::default());
    pair.session = Session::new(config);
    pair.session.start(Instant::ZERO);
    pair.carry();
    pair.show(Panel::new("MENU", "Menu").with_command());
    pair.terminal.transfer(&"IND$FILE PUT x".parse().unwrap(), b"data").unwrap();
    pair.carry();
    pair.session.file(FileAnswer::Opened { position: 0 }, pair.now);
    assert_eq!(pair.carry(), Some(Action::File(FileAction::Discard)));
    pair.session.file(FileAnswer::Done, pair.now);
    let Some(Action::Transferred { outcome: Err(why), .. }) = pair.carry() else { panic!() };
    assert!(why.contains("too large"), "{why}");
}

#[test]
fn commands_that_are_not_understood_are_explained() {
    let mut pair = Pair::new(TerminalConfig::default());
    pair.carry();
    pair.show(Panel::new("MENU", "Menu").with_command());
    pair.terminal.type_text("ind$file list").unwrap();
    pair.terminal.press(Key::Enter).unwrap();
    assert_eq!(pair.carry(), None);
    let lines = pair.terminal.screen().lines();
    assert!(lines.iter().any(|line| line.contains("IND$FILE takes GET or PUT")), "{lines:?}");
}

#[test]
fn a_printer_that_fails_is_told_of() {
    let mut session = Session::new(SessionConfig::default());
    let now = Instant::ZERO;
    session.start(now);
    session.receive(&mut &b"\xff\xfb\x28\xff\xfa\x28\x02\x07IBM-3287-1\xff\xf0"[..], now);
    session.action();
    session.device(Ok("PR001"));
    session.receive(&mut &b"\xff\xfa\x28\x03\x07\x02\x03\xff\xf0"[..], now);
    session.action();
    session.sent(usize::MAX);
    assert!(session.is_idle_printer());
    session.print(&vec!["a line of some length".to_owned(); 200], now);
    assert!(!session.is_idle_printer() && session.pending().len() < 2000, "one record at a time");
    // The first record is done, the second is not: out of paper.
    session.receive(&mut &b"\x02\x00\x00\x00\x00\x00\xff\xef"[..], now);
    assert_eq!(session.action(), None);
    session.receive(&mut &b"\x02\x00\x01\x00\x01\x01\xff\xef"[..], now);
    assert_eq!(session.action(), Some(Action::Printed(Err(()))));
    session.sent(usize::MAX);
    assert!(session.is_idle_printer());
    // It is sent something now and then; one that takes nothing is closed.
    session.expire(session.deadline().unwrap());
    assert_eq!(session.pending(), b"\xff\xf1");
    session.sent(usize::MAX);
    assert!(session.is_idle_printer());
    session.print(&["x".to_owned()], now);
    session.expire(session.deadline().unwrap());
    assert_eq!(session.action(), Some(Action::Close(Closing::TooSlow)));
}

/// Without responses, only what is sent says that a print is done.
#[test]
fn a_printer_takes_the_next_print_when_the_last_one_is_sent() {
    let mut session = Session::new(SessionConfig::default());
    let now = Instant::ZERO;
    session.start(now);
    session.receive(&mut &b"\xff\xfb\x28\xff\xfa\x28\x02\x07IBM-3287-1\xff\xf0"[..], now);
    session.action();
    session.device(Ok("PR001"));
    session.receive(&mut &b"\xff\xfa\x28\x03\x07\xff\xf0"[..], now);
    session.action();
    session.sent(session.pending().len());
    assert!(session.is_idle_printer());
    session.print(&["a line".to_owned()], now);
    assert_eq!(session.action(), Some(Action::Printed(Ok(()))));
    session.sent(session.pending().len() - 1);
    assert!(!session.is_idle_printer());
    session.sent(1);
    assert!(session.is_idle_printer());
}
