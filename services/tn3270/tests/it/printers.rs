//! Prints of panels: on our printer, and on Debian's pr3287.

use std::net::SocketAddr;
use std::process::Command;

use inhost_interop::{DEADLINE, Running, until};
use inhost_tn3270::client::Printer;
use inhost_tn3270::codec::{CodePage, DeviceReason, Resource};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::kernel::Served;
use crate::place::{Scratch, text};
use crate::s3270::S3270;

/// A printer for `resource`, until it has a job or is refused.
fn print(at: SocketAddr, resource: Resource) -> Result<Vec<String>, DeviceReason> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut stream = tokio::net::TcpStream::connect(at).await.unwrap();
        let mut printer = Printer::new(Some(resource), CodePage::default());
        let mut buffer = [0; 4096];
        loop {
            let pending = printer.pending().to_vec();
            stream.write_all(&pending).await.unwrap();
            printer.sent(pending.len());
            if let Some(reason) = printer.device_rejected() {
                return Err(reason);
            }
            if let Some(job) = printer.take_job() {
                assert_eq!(printer.device(), Some("PR001"));
                return Ok(job);
            }
            let reading = tokio::time::timeout(DEADLINE, stream.read(&mut buffer));
            let count = reading.await.unwrap().unwrap();
            assert!(count > 0);
            let mut input = &buffer[..count];
            printer.receive(&mut input);
            assert!(input.is_empty());
        }
    })
}

/// Asks for a print until there is a printer.
fn ask_for_a_print(terminal: &mut S3270) {
    until("a print", || {
        terminal.command("EraseInput()");
        terminal.command("String(\"3\")");
        terminal.command("Enter()");
        terminal.screen().contains("It is printed").then_some(())
    });
}

#[test]
fn a_panel_is_printed_on_the_printer_of_its_terminal() {
    let served = Served::start(None, None);
    let at = served.address;
    let associate = || Resource::Associate("LU001".into());
    assert_eq!(print(at, associate()), Err(DeviceReason::ConnectPartner));
    assert_eq!(print(at, Resource::Connect("LU002".into())), Err(DeviceReason::TypeNameError));
    let mut terminal = S3270::start(&[&at.to_string()]);
    terminal.wait_for("LU001");
    let printer = std::thread::spawn(move || print(at, associate()));
    ask_for_a_print(&mut terminal);
    let job = inhost_interop::join(printer).unwrap();
    assert_eq!(job, text().lines().collect::<Vec<_>>());
}

#[test]
fn pr3287_prints_a_panel() {
    let (served, scratch) = (Served::start(None, None), Scratch::new("pr3287"));
    let mut terminal = S3270::start(&[&format!("127.0.0.1:{}", served.port())]);
    terminal.wait_for("LU001");
    let out = scratch.path("out");
    let _printer = Running::start(Command::new("pr3287").args([
        "-assoc",
        "LU001",
        "-command",
        &format!("cat >> {}", out.display()),
        &format!("127.0.0.1:{}", served.port()),
    ]));
    ask_for_a_print(&mut terminal);
    let printed = until("the file", || {
        let text = std::fs::read_to_string(&out).ok()?;
        text.contains("line number 100").then_some(text)
    });
    let lines: Vec<&str> = printed.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, text().lines().collect::<Vec<_>>());
}
