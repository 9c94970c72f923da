//! tun2socks before the SOCKS5 server of the crate `fast-socks5`.

use crate::{LOCALHOST, guest_and_other, in_time, letters, over_tcp, shouting};
use fast_socks5::server::{DnsResolveHelper, Socks5ServerProtocol, run_tcp_proxy, run_udp_proxy};
use fast_socks5::{Socks5Command, SocksError};
use inhost_example_tunnel::tun2socks;
use inhost_interop::{left_out, own_network, readme, run};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// Longest time until the proxy has connected.
const LIMIT: Duration = Duration::from_secs(10);

/// Somebody else's SOCKS5 server, at `ip`.
async fn proxy(ip: IpAddr) -> io::Result<SocketAddr> {
    async fn serve(stream: TcpStream, ip: IpAddr) -> Result<(), SocksError> {
        let protocol = Socks5ServerProtocol::accept_no_auth(stream).await?;
        let (protocol, command, target) = protocol.read_command().await?.resolve_dns().await?;
        match command {
            Socks5Command::TCPConnect => drop(run_tcp_proxy(protocol, &target, LIMIT, false).await?),
            Socks5Command::UDPAssociate => drop(run_udp_proxy(protocol, &target, None, ip, None).await?),
            Socks5Command::TCPBind => {}
        }
        Ok(())
    }
    let listener = TcpListener::bind((ip, 0)).await?;
    let at = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, ip));
        }
    });
    Ok(at)
}

/// An address of this machine that is not a loopback's, which no guest would send out of itself.
async fn own_address() -> io::Result<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").await?;
    socket.connect("192.0.2.1:9").await?;
    Ok(socket.local_addr()?.ip())
}

#[tokio::test]
async fn a_guest_in_memory_reaches_servers_through_the_proxy() {
    let Ok(ip) = own_address().await else {
        return left_out("no address and route of this machine but its loopback's");
    };
    in_time(async {
        let (guest, other) = guest_and_other().unwrap();
        tokio::spawn(tun2socks::serve(other.start().unwrap(), proxy(LOCALHOST).await.unwrap()));
        let (server, letters) = (shouting(ip, 0).await.unwrap(), letters());
        // A caller before the tunnel listens is refused.
        let answer = loop {
            match over_tcp(&guest, server, &letters).await {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                answer => break answer.unwrap(),
            }
        };
        let expected = letters.to_ascii_uppercase();
        let first_wrong = answer.iter().zip(&expected).position(|(got, expected)| got != expected);
        assert_eq!((answer.len(), first_wrong), (expected.len(), None));
        // Two senders, whose answers find them; a datagram longer than a packet, which goes in fragments.
        let long = "x".repeat(5000);
        let sockets = [guest.udp("0.0.0.0:0").await.unwrap(), guest.udp("0.0.0.0:0").await.unwrap()];
        for (socket, word) in [(0, "one"), (1, "two"), (0, "three"), (1, &long)] {
            sockets[socket].send_to(word.as_bytes(), server).await.unwrap();
        }
        let mut place = [0; 8192];
        for (socket, word) in [(0, "ONE"), (0, "THREE"), (1, "TWO"), (1, &long.to_uppercase())] {
            let (count, from) = sockets[socket].recv_from(&mut place).await.unwrap();
            assert_eq!((&place[..count], from), (word.as_bytes(), server));
        }
        // The proxy finds nobody, so the caller is refused, and not accepted and then closed.
        let closed = TcpListener::bind((ip, 0)).await.unwrap().local_addr().unwrap();
        assert_eq!(guest.connect(closed).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    })
    .await;
}

#[test]
fn it_has_a_hundred_lines_of_code() {
    let sources = [include_str!("../../src/tun2socks.rs"), include_str!("../../src/bin/tun2socks.rs")];
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    assert_eq!(sources.iter().flat_map(|source| source.lines()).filter(is_code).count(), 100);
}

#[test]
fn programs_in_a_namespace_reach_servers_through_the_proxy_as_the_readme_says() {
    if !own_network() {
        return;
    }
    for address in ["203.0.113.7/32", "2001:db8::7/128"] {
        run(Command::new("ip").args(["address", "add", address, "dev", "lo"]));
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for ip in ["203.0.113.7", "2001:db8::7"] {
        runtime.block_on(shouting(ip.parse().unwrap(), 7)).unwrap();
    }
    let proxy = runtime.block_on(proxy(LOCALHOST)).unwrap().to_string();
    let section = include_str!("../../README.md").split("\n## ").nth(1).unwrap();
    let steps = readme::steps(section);
    let [_build, name, serve, set_up @ ..] = &steps[..] else { panic!("commands are missing") };
    assert!(serve.command.ends_with(" 127.0.0.1:1080 &"), "{}", serve.command);
    let serve = serve
        .command
        .replace("127.0.0.1:1080 &", &proxy)
        .replace("target/debug/tun2socks", env!("CARGO_BIN_EXE_tun2socks"));
    // Root needs no sudo. The namespace's name is this test's own.
    let start = "sudo() { \"$@\"; }; mount -t tmpfs none /run\n";
    let said = "said=$(mktemp); trap 'kill $server; rm $said' EXIT\n";
    let wait = format!("until grep -q ' goes through {proxy}' $said; do kill -0 $server; sleep 0.05; done\n");
    let mut script = format!("{start}{said}{}\n{serve} > $said & server=$!\n{wait}", name.command);
    set_up.iter().for_each(|step| script += &format!("{}\n", step.command));
    let ran = readme::shell(&["unshare", "--mount"], &script);
    let expected: String = set_up.iter().map(|step| step.output.as_str()).collect();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(expected.contains("HELLO\nHELLO"), "the steps move bytes");
}
