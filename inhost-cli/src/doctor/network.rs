//! What a private host on the link `user` can do: carry data, and look names up.

use super::Finding;
use crate::through::{Private, seen_at};
use inhost_base::{Duration, Endpoint};
use inhost_names::proto::rr::RecordType;
use inhost_names::{Names, RecordsRequest};
use inhost_socket::Host;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Octets that are carried there and back.
const CARRIED_BYTES: usize = 1 << 20;
/// The subject of each finding.
const CARRIES: &str = "link user";
const RESOLVES: &str = "resolver";

/// Starts a private host and tries it.
pub fn look(wait: Duration) -> Vec<Finding> {
    let private = match Private::new(Some("user")) {
        Ok(private) => private,
        Err(why) => {
            let advice = "the line says which call of the system was refused; a sandbox may forbid it";
            return vec![Finding::fails(CARRIES, why.to_string(), advice)];
        }
    };
    let Private { mut runtime, links, names, .. } = private;
    let host = runtime.host().clone();
    let found = runtime.run(async { vec![carries(&host, wait).await, resolves(&host, &names, wait).await] });
    drop(links);
    found.unwrap_or_else(|error| {
        vec![Finding::fails(
            CARRIES,
            format!("the host cannot wait: {error}"),
            "is epoll forbidden by a sandbox? inhost needs epoll and timers of Linux",
        )]
    })
}

/// Whether data goes through the private host to this machine and back.
async fn carries(host: &Host, wait: Duration) -> Finding {
    let began = host.now();
    let port = match echo_once() {
        Ok(port) => port,
        Err(error) => {
            return Finding::fails(
                CARRIES,
                format!("this machine cannot listen on 127.0.0.1: {error}"),
                "bring loopback up, as root: ip link set lo up",
            );
        }
    };
    let advice = "is a packet filter in the way of 127.0.0.1? See nft list ruleset";
    let to = Endpoint::new(seen_at(Ipv4Addr::LOCALHOST.into(), true), port);
    match host.timeout(wait, there_and_back(host, to)).await {
        Ok(Ok(())) => {
            let took = host.now().since(began);
            Finding::works(CARRIES, format!("1 MB went to this machine and back in {took}"))
        }
        Ok(Err(why)) => Finding::fails(CARRIES, format!("no data to this machine and back: {why}"), advice),
        Err(_) => Finding::fails(CARRIES, format!("no data came back within {} s", wait.as_secs()), advice),
    }
}

/// Listens on this machine's loopback, and echoes what the first caller says, on a thread of its own.
fn echo_once() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::Builder::new().name("echo".into()).spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let mut place = [0; 16 << 10];
        while let Ok(count @ 1..) = stream.read(&mut place) {
            if stream.write_all(&place[..count]).is_err() {
                return;
            }
        }
    })?;
    Ok(port)
}

async fn there_and_back(host: &Host, to: Endpoint) -> Result<(), String> {
    let stream = host.connect(to).await.map_err(|e| e.to_string())?;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let sent: Vec<u8> = (0..CARRIED_BYTES).map(|index| (index % 251) as u8).collect();
    let sending = async {
        writer.write_all(&sent).await?;
        writer.shutdown().await
    };
    let mut received = Vec::with_capacity(CARRIED_BYTES);
    let receiving = async { reader.read_to_end(&mut received).await.map(drop) };
    futures_lite::future::try_zip(sending, receiving).await.map_err(|e| e.to_string())?;
    match received == sent {
        true => Ok(()),
        false => Err(format!("{} of {CARRIED_BYTES} bytes came back as they were sent", received.len())),
    }
}

/// Whether somebody answers questions for names.
async fn resolves(host: &Host, names: &Names, wait: Duration) -> Finding {
    let configured = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let servers = name_servers(&configured);
    if servers.is_empty() {
        return Finding::fails(
            RESOLVES,
            "/etc/resolv.conf names no server: only names of /etc/hosts can be looked up",
            "add a line such as nameserver 192.0.2.53, or nameserver = [\"192.0.2.53\"] to host.toml",
        );
    }
    // Any answer will do, and every server has one to this.
    let mut request = RecordsRequest::new(".");
    request.kinds.push(RecordType::NS);
    let list = servers.join(", ");
    let advice = "inhost lookup example.com --trace shows each question; is another server in /etc/resolv.conf better?";
    match host.timeout(wait, names.records(&request)).await {
        Ok(Ok(found)) if found.iter().any(|looked| looked.result.is_ok()) => {
            Finding::works(RESOLVES, format!("an answer came, by way of {list}"))
        }
        Ok(Ok(found)) => {
            let why = found.iter().find_map(|looked| looked.result.as_ref().err()).map(ToString::to_string);
            Finding::fails(RESOLVES, format!("{list}: {}", why.unwrap_or_default()), advice)
        }
        Ok(Err(why)) => Finding::fails(RESOLVES, format!("{list}: {why}"), advice),
        Err(_) => Finding::fails(RESOLVES, format!("{list}: no answer within {} s", wait.as_secs()), advice),
    }
}

/// The servers of a `resolv.conf`.
fn name_servers(text: &str) -> Vec<&str> {
    let server = |line| {
        let mut words = str::split_whitespace(line);
        words.next().filter(|word| *word == "nameserver")?;
        words.next()
    };
    text.lines().filter_map(server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read() {
        let text =
            "# nameserver 10.0.0.9\nsearch example\nnameserver 10.0.0.1\n nameserver fd00::1\nnameserver\n";
        assert_eq!(name_servers(text), ["10.0.0.1", "fd00::1"]);
    }
}
