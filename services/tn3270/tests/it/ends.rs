//! Our two ends with each other: a bad link, both modes of file transfer, printers, what is broken off.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use inhost_base::{Endpoint, IpAddr};
use inhost_common::{Admission, AdmissionLimits, Clock};
use inhost_stack::ListenOptions;
use inhost_tn3270::client::script::Script;
use inhost_tn3270::client::{Terminal, TerminalConfig, TransferError};
use inhost_tn3270::driver::{
    Connection, Ended, ScriptError, ScriptFiles, Server, TlsClient, run_script, serve,
};
use inhost_tn3270::screen::{Key, Model, Snapshot};
use inhost_tn3270::server::{Closing, Devices, Origin, SessionConfig};
use inhost_tn3270::transfer::{Direction, TransferCommand};

use crate::kernel::{Local, RealClock, Served};
use crate::network::Network;
use crate::place::{Place, Scratch};

/// A whole visit, over a link that loses packets, in virtual time.
#[test]
fn a_script_goes_through_panels_over_a_bad_link() {
    for loss in [0.0, 0.08] {
        let mut network = Network::losing(loss);
        let (near, far) = (network.ends[0].host.clone(), network.ends[1].host.clone());
        let place = Place::new(None);
        let (served, ended) = (place.clone(), Rc::new(RefCell::new(Vec::new())));
        let (listener, own, ends) = (
            far.listen(Endpoint::new([0, 0, 0, 0], 3270), ListenOptions::default()).unwrap(),
            far.clone(),
            ended.clone(),
        );
        far.spawn(async move {
            let admission = Admission::new(AdmissionLimits::default());
            while let Ok(stream) = listener.accept().await {
                let peer = stream.remote().address;
                let permit = admission.admit(peer, own.now()).unwrap();
                let log = |_: inhost_tn3270::driver::DeviceEvent<'_>| {};
                let (config, devices) = (SessionConfig::default(), Devices::new(4));
                let server = Server { config, devices, panels: &served, clock: &own, log: &log };
                let end = serve(stream, Origin::clear(peer), &server, &permit).await;
                ends.borrow_mut().push(end);
            }
        })
        .detach();
        let text = "within 600
            wait text \"The Menu\"
            type 1
            press enter
            wait text \"A Form\"
            press enter
            assert text \"Enter a name\"
            field Name
            type \"Ada Äß\"
            field Age
            type 36
            press enter
            wait text \"Hello, Ada Äß\"
            type 2
            press enter
            press pf8
            press pf8
            assert at 3 2 \"line number 77\"
            dump json
            press pf3
            press pf3
            wait closed";
        let script = Script::parse(text).unwrap();
        let shown = network.run(async move {
            let stream = near.connect(Endpoint::new([10, 9, 0, 2], 3270)).await.unwrap();
            let mut config = TerminalConfig::default();
            config.screen.model = Model::Four;
            let mut connection = Connection::new(stream, Terminal::new(config), &near);
            let mut local = Local::default();
            let outcome = run_script(&mut connection, script, &mut local).await;
            // The server's end is the end of its last task.
            drop(connection);
            near.sleep(inhost_base::Duration::from_secs(60)).await;
            (outcome.map_err(|error| error.to_string()), local.0)
        });
        assert_eq!(shown.0, Ok(()));
        let screen: serde_json::Value = serde_json::from_str(&shown.1).unwrap();
        assert_eq!((&screen["rows"], &screen["cursor"]["row"]), (&43.into(), &42.into()));
        assert_eq!(*ended.borrow(), [Ended::Closed(Closing::Left)]);
        assert!(place.log.borrow().iter().any(|line| line.contains("age=36,name=Ada Äß")));
    }
}

/// What a host does not take is an error, and so is what cannot be shown.
#[test]
fn a_script_whose_keys_or_screens_are_lost_fails() {
    struct Full;
    impl ScriptFiles for Full {
        fn read(&mut self, _: &str) -> io::Result<Vec<u8>> {
            Err(io::ErrorKind::NotFound.into())
        }
        fn write(&mut self, _: &str, _: &[u8]) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn show(&mut self, _: &str) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn show_screen(&mut self, _: &Snapshot) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    let fails = |text: &str| {
        let mut network = Network::losing(0.0);
        let (clock, script) = (network.ends[0].host.clone(), Script::parse(text).unwrap());
        network.run(async move {
            let (near, _unread) = tokio::io::duplex(64);
            let mut connection = Connection::new(near, Terminal::new(TerminalConfig::default()), &clock);
            run_script(&mut connection, script, &mut Full).await.unwrap_err()
        })
    };
    assert!(matches!(fails(&"press attn\n".repeat(100)), ScriptError::LastKeys));
    assert!(matches!(fails("dump"), ScriptError::Show(_)));
    assert!(matches!(fails("dump json"), ScriptError::Show(_)));
}

/// A terminal and a session of [`Place`] on a pipe.
async fn with_terminal<T>(
    config: TerminalConfig,
    folder: &Scratch,
    test: impl AsyncFnOnce(&mut Connection<'_, tokio::io::DuplexStream, RealClock>) -> T,
) -> T {
    let (near, far) = tokio::io::duplex(1000);
    let (clock, place) = (RealClock::new(), Place::new(Some(&folder.0)));
    let admission = Admission::new(AdmissionLimits::default());
    let peer = IpAddr::from([127, 0, 0, 1]);
    let permit = admission.admit(peer, clock.now()).unwrap();
    let log = |_: inhost_tn3270::driver::DeviceEvent<'_>| {};
    let server = Server {
        config: SessionConfig::default(),
        devices: Devices::new(4),
        panels: &place,
        clock: &clock,
        log: &log,
    };
    let serving = serve(far, Origin::clear(peer), &server, &permit);
    let work = async {
        let mut connection = Connection::new(near, Terminal::new(config), &clock);
        test(&mut connection).await
    };
    tokio::select! {
        value = work => value,
        ended = serving => panic!("the session has ended: {ended:?}"),
    }
}

type Pipe<'a> = Connection<'a, tokio::io::DuplexStream, RealClock>;

async fn until(connection: &mut Pipe<'_>, mut is_so: impl FnMut(&Terminal) -> bool) {
    while !is_so(&connection.terminal) {
        let until = RealClock::new().now() + inhost_base::Duration::from_secs(40);
        assert!(connection.exchange(until).await.unwrap());
    }
}

async fn transfer(
    connection: &mut Pipe<'_>,
    command: &TransferCommand,
    file: &[u8],
) -> Result<Vec<u8>, TransferError> {
    connection.terminal.transfer(command, file).unwrap();
    let unlocked = |terminal: &Terminal| {
        terminal.is_transferred() && terminal.screen().keyboard() == inhost_tn3270::screen::Keyboard::Unlocked
    };
    until(connection, unlocked).await;
    connection.terminal.take_transfer().unwrap().map(|report| report.file)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tokio::task::LocalSet::new().run_until(future))
}

/// Both modes: structured fields, and the screen of a terminal that has none.
fn configs() -> [TerminalConfig; 2] {
    let mut cut = TerminalConfig::default();
    (cut.has_tn3270e, cut.screen.is_extended, cut.screen.has_color) = (false, false, false);
    [TerminalConfig::default(), cut]
}

#[test]
fn files_go_both_ways_in_both_modes() {
    for (mode, config) in configs().into_iter().enumerate() {
        let scratch = Scratch::new(&format!("ends-{mode}"));
        let octets: Vec<u8> = (0..50_000u32).map(|at| (at * 31 + at / 97) as u8).collect();
        let text = "Zeile mit Ümläuten, [x] {y} ^~\\|¬¢\n\n".repeat(200);
        scratch.write("octets", &octets);
        block_on(with_terminal(config, &scratch, async |connection| {
            until(connection, |terminal| terminal.screen().line(0).contains("The Menu")).await;
            let get = |name| TransferCommand::binary(Direction::Download, name);
            let put = |name| TransferCommand::binary(Direction::Upload, name);
            assert!(transfer(connection, &get("octets"), &[]).await.unwrap() == octets);
            transfer(connection, &put("stored"), &octets).await.unwrap();
            assert!(scratch.read("stored") == octets);
            transfer(connection, &TransferCommand::text(Direction::Upload, "text"), text.as_bytes())
                .await
                .unwrap();
            assert_eq!(String::from_utf8(scratch.read("text")).unwrap(), text);
            let back = transfer(connection, &TransferCommand::text(Direction::Download, "text"), &[]).await;
            assert_eq!(String::from_utf8(back.unwrap()).unwrap(), text);
            for empty in [put("empty"), get("empty")] {
                assert_eq!(transfer(connection, &empty, &[]).await, Ok(Vec::new()));
            }
            let mut append = put("stored");
            append.is_append = true;
            transfer(connection, &append, b"more").await.unwrap();
            assert!(scratch.read("stored").ends_with(b"more"));
            assert_eq!(scratch.read("stored").len(), octets.len() + 4);
            let error = transfer(connection, &get("none"), &[]).await.unwrap_err();
            assert!(matches!(&error, TransferError::Host(why) if why.contains("No such file")), "{error}");
            // A path leads nowhere but into the folder.
            let error = transfer(connection, &get("../../../etc/passwd"), &[]).await.unwrap_err();
            assert!(matches!(error, TransferError::Host(_)));
            assert!(connection.terminal.screen().line(0).contains("The Menu"));
        }));
    }
}

#[test]
fn a_transfer_that_is_given_up_leaves_nothing() {
    for (mode, config) in configs().into_iter().enumerate() {
        let scratch = Scratch::new(&format!("abandon-{mode}"));
        scratch.write("large", &vec![7; 1 << 20]);
        block_on(with_terminal(config, &scratch, async |connection| {
            until(connection, |terminal| terminal.screen().line(0).contains("The Menu")).await;
            for command in [
                TransferCommand::binary(Direction::Download, "large"),
                TransferCommand::binary(Direction::Upload, "new"),
            ] {
                connection.terminal.transfer(&command, &vec![9; 1 << 20]).unwrap();
                for _ in 0..20 {
                    connection.exchange(RealClock::new().now()).await.unwrap();
                }
                assert!(connection.terminal.press(Key::Enter).is_err(), "keys wait for the transfer");
                connection.terminal.abandon_transfer();
                until(connection, Terminal::is_transferred).await;
                let outcome = connection.terminal.take_transfer().unwrap();
                assert_eq!(outcome, Err(TransferError::Abandoned));
                until(connection, |terminal| {
                    terminal.screen().lines().iter().any(|line| line.contains("gave up"))
                })
                .await;
            }
            let names: Vec<_> = std::fs::read_dir(&scratch.0).unwrap().collect();
            assert_eq!(names.len(), 1, "{names:?}");
        }));
    }
}

#[test]
fn a_terminal_comes_by_tls_and_knows_its_host() {
    let certified = rcgen::generate_simple_self_signed(vec!["host.example".to_owned()]).unwrap();
    let (chain, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let scratch = Scratch::new("tls");
    scratch.write("roots.pem", chain.as_bytes());
    let served = Served::start(None, Some((chain, key)));
    block_on(async {
        let clock = RealClock::new();
        let connect = async |tls: TlsClient, name: &str| {
            let stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
            tls.connect(stream, name, &clock).await
        };
        let known = || TlsClient::with_system_roots(Some(&scratch.path("roots.pem"))).unwrap();
        for (tls, name) in [(known(), "host.example"), (TlsClient::unverified().unwrap(), "127.0.0.1")] {
            let stream = connect(tls, name).await.unwrap();
            let mut connection = Connection::new(stream, Terminal::new(TerminalConfig::default()), &clock);
            let script = Script::parse("wait text \"The Menu\"").unwrap();
            run_script(&mut connection, script, &mut Local::default()).await.unwrap();
        }
        assert!(connect(known(), "other.example").await.is_err());
        assert!(
            connect(TlsClient::new(rustls::RootCertStore::empty()).unwrap(), "host.example").await.is_err()
        );
    });
}
