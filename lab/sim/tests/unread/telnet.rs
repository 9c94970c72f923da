//! The Telnet server, before login, and with a shell that talks without end.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use inhost_common::LocalFuture;
use inhost_common::service::Order;
use inhost_common::users::{Account, Verdict};
use inhost_common::{Admission, AdmissionLimits};
use inhost_sim::{Node, ProgramResult};
use inhost_socket::{Host, Stream};
use inhost_telnet::driver::{Services, SessionEvent, serve_session};
use inhost_telnet::pty::{Shell, TerminalKeys};
use inhost_telnet::server::{ServerConfig, ShellRequest};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{assert_little, expect, held, says};

const PORT: u16 = 23;

struct Doors {
    host: Host,
    admission: Admission,
}

impl Services for Doors {
    type Clock = Host;
    type Shell = Yes;
    fn clock(&self) -> &Host {
        &self.host
    }
    fn admission(&self) -> &Admission {
        &self.admission
    }
    fn authenticate(&self, name: String, _: String) -> LocalFuture<Verdict> {
        Box::pin(std::future::ready(Verdict::Granted(Account { name, shell: None, is_operator: false })))
    }
    fn shell(&self, _: &ShellRequest) -> io::Result<Yes> {
        Ok(Yes)
    }
    fn news(&self) -> String {
        "There is much to tell.\n".repeat(1000)
    }
    fn netstat(&self) -> String {
        "tcp ESTABLISHED 10.0.0.1:23 10.0.0.2:49152\n".repeat(1000)
    }
    fn figures(&self) -> String {
        String::new()
    }
    fn carry_out(&self, _: &str, _: Order) -> LocalFuture<String> {
        Box::pin(std::future::ready(String::new()))
    }
    fn record(&self, _: SessionEvent<'_>) {}
}

/// It says yes for ever, and takes what it is told.
struct Yes;

impl AsyncRead for Yes {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while into.remaining() >= 3 {
            into.put_slice(b"y\r\n");
        }
        Poll::Ready(Ok(()))
    }
}
impl AsyncWrite for Yes {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
impl Shell for Yes {
    fn resize(&self, _: u16, _: u16) {}
    fn keys(&self) -> TerminalKeys {
        TerminalKeys::default()
    }
    fn interrupt(&self) {}
    fn discard_output(&self) {}
    fn end(&mut self) {}
}

async fn serve(node: Node) -> ProgramResult {
    let doors =
        Rc::new(Doors { host: node.host().clone(), admission: Admission::new(AdmissionLimits::default()) });
    let listener = node.bind(PORT)?;
    loop {
        let stream = listener.accept().await?;
        let doors = doors.clone();
        node.spawn(async move {
            let peer = stream.remote().address;
            serve_session(stream, peer, &ServerConfig::default(), &*doors).await;
        })
        .detach();
    }
}

/// Commands, options that must be answered, and questions after the host's health.
const REQUESTS: [&[u8]; 6] = [
    b"HELP\r\n",
    b"NETSTAT\r\n",
    b"NEWS\r\n",
    b"\r\n",
    b"\xff\xf6",
    b"\xff\xfd\x50\xff\xfb\x51\xff\xfe\x50\xff\xfc\x51",
];

#[test]
fn commands_before_login() {
    for request in REQUESTS {
        let held = held(PORT, serve, async |_, _| Ok(None), request);
        assert_little(&format!("Telnet, {} before login", request.escape_ascii()), held);
    }
}

#[test]
fn a_shell_that_talks_without_end() {
    for request in REQUESTS {
        let log_in = async |_: &Node, stream: &mut Stream| {
            expect(stream, "> ").await?;
            says(stream, "logon ada", "Password: ").await?;
            says(stream, "engine", "y\r\n").await?;
            Ok(None)
        };
        let held = held(PORT, serve, log_in, request);
        assert_little(&format!("Telnet, {} after login", request.escape_ascii()), held);
    }
}
