//! The FTP server, before login and after, on its control connection and on data connections.

#[path = "../../../../services/ftp/tests/it/place/server.rs"]
mod server;

use std::rc::Rc;

use inhost_base::Endpoint;
use inhost_common::{Admission, AdmissionLimits};
use inhost_ftp::driver::serve_session;
use inhost_ftp::server::ServerConfig;
use inhost_sim::{Node, ProgramResult};
use inhost_socket::Stream;

use super::files::Endless;
use super::{assert_little, expect, held, says};
use server::Server;

const PORT: u16 = 21;

async fn serve(node: Node) -> ProgramResult {
    let host = node.host().clone();
    let server = Rc::new(Server::new(&host, Rc::new(Endless), Admission::new(AdmissionLimits::default())));
    let config = Rc::new(ServerConfig::default());
    let listener = node.bind(PORT)?;
    loop {
        let stream = listener.accept().await?;
        let (local, peer) = (stream.local(), stream.remote());
        node.spawn(serve_session(stream, local, peer, false, config.clone(), server.clone())).detach();
    }
}

async fn log_in(stream: &mut Stream) -> std::io::Result<()> {
    expect(stream, "\r\n").await?;
    says(stream, "USER ada", "\r\n").await?;
    let said = says(stream, "PASS engine", "\r\n").await?;
    assert!(said.starts_with("230 "), "{said}");
    Ok(())
}

#[test]
fn commands_before_login() {
    for request in
        [&b"HELP\r\n"[..], b"STAT\r\n", b"FEAT\r\n", b"NOOP\r\n", b"\r\n", b"USER ada\r\n", b"LIST\r\n"]
    {
        let held = held(PORT, serve, async |_, _| Ok(None), request);
        assert_little(&format!("FTP, {} before login", request.escape_ascii()), held);
    }
}

#[test]
fn commands_after_login() {
    let requests = [
        &b"HELP\r\n"[..],
        b"STAT /\r\n",
        b"MLST\r\n",
        b"PWD\r\n",
        b"SITE HELP\r\n",
        b"FEAT\r\n",
        b"EPSV\r\n",
    ];
    for request in requests {
        let log_in = async |_: &Node, stream: &mut Stream| {
            log_in(stream).await?;
            Ok(None)
        };
        let held = held(PORT, serve, log_in, request);
        assert_little(&format!("FTP, {} after login", request.escape_ascii()), held);
    }
}

#[test]
fn data_connections() {
    for command in ["RETR file", "LIST", "NLST", "MLSD"] {
        let opens = async move |node: &Node, stream: &mut Stream| {
            log_in(stream).await?;
            let said = says(stream, "EPSV", "\r\n").await?;
            let port = said.split('|').nth(3).unwrap().parse().unwrap();
            let at = Endpoint::new(stream.remote().address, port);
            let data = node.connect(at).await.map_err(std::io::Error::other)?;
            says(stream, command, "\r\n").await?;
            Ok(Some(data))
        };
        let held = held(PORT, serve, opens, b"NOOP\r\n");
        assert_little(&format!("FTP, {command}"), held);
    }
}
