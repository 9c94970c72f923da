//! Prints of panels: on our printer, and on Debian's pr3287.

use std::net::SocketAddr;
use std::process::Command;

use inhost_base::Duration;
use inhost_common::Clock;
use inhost_interop::{Running, until};
use inhost_tn3270::client::Printer;
use inhost_tn3270::codec::{CodePage, DeviceReason, Resource};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::kernel::{RealClock, Served, script};
use crate::place::{Scratch, text};

const PRINT: &str = "wait text \"The Menu\"\ntype 3\npress enter\nwait text \"It is printed\"\ntype 3\npress enter\npress pf3";

/// A printer for `resource`, until it has so many jobs or is refused one; `ready` is called when it has its device.
fn print(
    at: SocketAddr,
    resource: Resource,
    jobs: usize,
    ready: impl FnOnce(),
) -> Result<Vec<Vec<String>>, DeviceReason> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut stream = tokio::net::TcpStream::connect(at).await.unwrap();
        let (mut printer, clock, mut ready) =
            (Printer::new(Some(resource), CodePage::default()), RealClock::new(), Some(ready));
        let (mut buffer, mut done) = ([0; 4096], Vec::new());
        while done.len() < jobs {
            let pending = printer.pending().to_vec();
            stream.write_all(&pending).await.unwrap();
            printer.sent(pending.len());
            if let Some(reason) = printer.device_rejected() {
                return Err(reason);
            }
            if printer.is_ready()
                && let Some(ready) = ready.take()
            {
                ready();
            }
            let reading = tokio::time::timeout(std::time::Duration::from_secs(40), stream.read(&mut buffer));
            let count = reading.await.unwrap().unwrap();
            assert!(count > 0);
            printer.advance(clock.now() + Duration::from_secs(1));
            printer.receive(&buffer[..count]);
            done.extend(std::iter::from_fn(|| printer.take_job()));
        }
        Ok(done)
    })
}

#[test]
fn a_panel_is_printed_on_the_printer_of_its_terminal() {
    let served = Served::start(None, None);
    let at = served.address;
    let associate = || Resource::Associate("LU001".into());
    assert_eq!(print(at, associate(), 1, || ()), Err(DeviceReason::ConnectPartner));
    assert_eq!(print(at, Resource::Connect("LU002".into()), 1, || ()), Err(DeviceReason::TypeNameError));
    let (go, wait) = std::sync::mpsc::channel();
    let terminal = std::thread::spawn(move || {
        // The terminal has its device before the printer comes, and prints once that is there.
        script(at, Default::default(), &format!("wait text LU001\nwithin 40\n{PRINT}"))
    });
    let printer = std::thread::spawn(move || {
        let jobs = until("the terminal", || print(at, associate(), 2, || go.send(()).unwrap_or(())).ok());
        jobs
    });
    inhost_interop::receive(&wait);
    let jobs = inhost_interop::join(printer);
    let shown = inhost_interop::join(terminal);
    let lines: Vec<String> = text().lines().map(str::to_owned).collect();
    assert_eq!(jobs, [lines.clone(), lines], "{}", shown.text);
}

#[test]
fn pr3287_prints_a_panel() {
    let (served, scratch) = (Served::start(None, None), Scratch::new("pr3287"));
    let mut terminal = crate::s3270::S3270::start(&[&format!("127.0.0.1:{}", served.port())]);
    terminal.wait_for("LU001");
    let out = scratch.path("out");
    let _printer = Running::start(Command::new("pr3287").args([
        "-assoc",
        "LU001",
        "-command",
        &format!("cat >> {}", out.display()),
        &format!("127.0.0.1:{}", served.port()),
    ]));
    // The printer is there once something can be printed.
    until("a print", || {
        terminal.command("EraseInput()");
        terminal.command("String(\"3\")");
        terminal.command("Enter()");
        terminal.screen().contains("It is printed").then_some(())
    });
    let printed = until("the file", || {
        let text = std::fs::read_to_string(&out).ok()?;
        text.contains("line number 100").then_some(text)
    });
    let lines: Vec<&str> = printed.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, text().lines().collect::<Vec<_>>());
}
