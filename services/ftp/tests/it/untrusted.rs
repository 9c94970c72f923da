//! Attempts of untrusted peers, and how the server refuses them.

use crate::place::{HERE, Place, world};
use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_common::Transport;
use inhost_event::SendCause;
use inhost_ftp::server::{ServerConfig, TlsPolicy};
use inhost_stack::{ConnectOptions, Local, SocketInfo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn no_path_leads_out() {
    let place = Place::new("traversal");
    place.write("secret", b"outside");
    place.write("server/inside", b"inside");
    std::os::unix::fs::symlink("../secret", place.0.join("server/link")).unwrap();
    std::os::unix::fs::symlink("..", place.0.join("server/up")).unwrap();
    world(&place, ServerConfig::default(), async |world| {
        let mut raw = world.raw_user().await;
        raw.says("TYPE I").await;
        for name in ["../secret", "/../secret", "../../../../../../etc/passwd", "link/../../secret"] {
            assert_eq!(raw.says(&format!("SIZE {name}")).await, "550 No such file or directory.", "{name}");
        }
        for line in
            ["SIZE link", "MDTM up/secret", "CWD up", "DELE up/secret", "SITE CHMOD 777 link", "MKD up/new"]
        {
            let reply = raw.says(line).await;
            assert!(reply.starts_with("550 Permission denied"), "{line}: {reply}");
        }
        raw.says("RNFR inside").await;
        assert!(raw.says("RNTO up/inside").await.starts_with("553 "));
    });
    assert_eq!(place.read("secret").unwrap(), b"outside");
    assert!(!place.0.join("new").exists() && !place.0.join("inside").exists());
}

#[test]
fn bounces_downgrades_and_injections_are_refused() {
    let place = Place::new("strangers");
    let mut config = ServerConfig::default();
    config.tls = TlsPolicy::Required;
    world(&place, config, async |world| {
        let mut raw = world.raw().await;
        assert_eq!(
            raw.says("USER ada").await,
            "530 Say AUTH TLS first: passwords are not taken in clear text."
        );
        raw.stream.write_all(b"AUTH TLS\r\nUSER eve\r\n").await.unwrap();
        assert_eq!(raw.line().await, "421 Something was said behind AUTH and before TLS; closing.");
        assert_eq!(raw.line().await, "(end)");
    });
    world(&place, ServerConfig::default(), async |world| {
        let mut raw = world.raw_user().await;
        assert_eq!(
            raw.says("PORT 10,1,2,3,200,1").await,
            "504 Data connections go to your own address only."
        );
        assert_eq!(raw.says("AUTH TLS").await, "502 There is no certificate here, so no TLS.");
    });
}

/// Lines, names and numbers without end; data that nobody takes; commands that dribble in.
#[test]
fn everything_has_an_end() {
    let place = Place::new("oversized");
    let mut config = ServerConfig::default();
    config.line_time = Duration::from_millis(400);
    config.login_time = Duration::from_millis(1500);
    config.connect_time = Duration::from_millis(300);
    config.stall_time = Duration::from_millis(400);
    place.write("server/big", &vec![1; 50_000_000]);
    world(&place, config, async |world| {
        let mut raw = world.raw_user().await;
        raw.stream.write_all(&vec![b'A'; 1_000_000]).await.unwrap();
        assert_eq!(raw.says("").await, "500 The line is too long.");
        assert!(raw.says(&format!("MKD {}", "x".repeat(300))).await.starts_with("55"));
        assert_eq!(raw.says("REST 99999999999999999999999").await, "501 REST takes a number.");
        // Nobody comes for data.
        raw.says("EPSV").await;
        assert!(raw.says("RETR big").await.starts_with("150 "));
        assert_eq!(raw.line().await, "425 No data connection: nobody came in time.");
        // Somebody comes and takes nothing.
        let reply = raw.says("EPSV").await;
        let port: u16 = reply.split('|').nth(3).unwrap().parse().unwrap();
        let idle = world.host.connect(Endpoint::new(HERE, port)).await.unwrap();
        assert!(raw.says("RETR big").await.starts_with("150 "));
        assert_eq!(raw.line().await, "426 Nothing moved on the data connection for too long.");
        drop(idle);
        // A command that dribbles in.
        for octet in b"NOOP" {
            let _ = raw.stream.write_all(&[*octet]).await;
            world.host.sleep(Duration::from_millis(150)).await;
        }
        assert_eq!(raw.line().await, "421 A command took too long to come; closing.");
        // And nobody at all.
        let mut silent = world.raw().await;
        assert_eq!(silent.line().await, "421 Nobody logged in in time; closing.");
        assert_eq!(silent.line().await, "(end)");
    });
}

#[test]
fn a_thousand_idle_connections_hinder_nobody() {
    let place = Place::new("thousand");
    place.write("server/file", &[5; 100_000]);
    world(&place, ServerConfig::default(), async |world| {
        let mut idle = Vec::new();
        for _ in 0..1000 {
            idle.push(world.raw_user().await);
        }
        let mut raw = world.raw_user().await;
        raw.says("TYPE I").await;
        let reply = raw.says("EPSV").await;
        let port: u16 = reply.split('|').nth(3).unwrap().parse().unwrap();
        let mut data = world.host.connect(Endpoint::new(HERE, port)).await.unwrap();
        assert!(raw.says("RETR file").await.starts_with("150 "));
        let mut got = Vec::new();
        data.read_to_end(&mut got).await.unwrap();
        assert_eq!(got.len(), 100_000);
        for raw in &mut idle {
            assert!(raw.says("NOOP").await.starts_with("200 "));
        }
    });
}

/// Behind a gateway every caller has the gateway's address, and a data connection belongs to who came from the same
/// place outside.
#[test]
fn a_data_connection_is_for_its_own_outer_caller() {
    let place = Place::new("forwarded");
    place.write("server/file", b"for her alone");
    world(&place, ServerConfig::default(), async |world| {
        let outer = |last| Endpoint::new(Ipv4Addr::new(192, 0, 2, last), 40_000);
        let enter =
            |port, last| world.server.callers.enter(Transport::Tcp, Endpoint::new(HERE, port), outer(last));
        let call = async |port: u16, to: u16| {
            let local = Local { address: Some(HERE.into()), port };
            let mut options = ConnectOptions::default();
            options.local = local;
            world.host.connect_with(Endpoint::new(HERE, to), options).await.unwrap()
        };
        let (_hers, _his, _here) = (enter(50_001, 1), enter(50_002, 2), enter(50_003, 1));
        let mut raw = world.raw_of(call(50_001, crate::place::PORT).await).await;
        raw.says("USER ada").await;
        assert!(raw.says("PASS engine").await.starts_with("230 "));
        // Nothing leads back through the gateway, whose own machine would answer in her place.
        for line in ["PORT 127,0,0,1,200,1", "EPRT |1|127.0.0.1|51201|", "LPRT 4,4,127,0,0,1,2,200,1"] {
            assert!(raw.says(line).await.starts_with("504 You come through a forwarded port"), "{line}");
        }
        let refused = raw.says("RETR file").await;
        assert!(refused.starts_with("425 ") && refused.contains("EPSV or PASV"), "{refused}");
        let reply = raw.says("EPSV").await;
        let port: u16 = reply.split('|').nth(3).unwrap().parse().unwrap();
        raw.stream.write_all(b"RETR file\r\n").await.unwrap();
        assert!(raw.line().await.starts_with("150 "));
        // The first connection comes from elsewhere: forwarded, or not.
        let mut got = Vec::new();
        let mut his = call(50_002, port).await;
        let _ = his.read_to_end(&mut got).await;
        let mut direct = call(50_009, port).await;
        let _ = direct.read_to_end(&mut got).await;
        assert!(got.is_empty(), "somebody else got {got:?}");
        let mut hers = call(50_003, port).await;
        hers.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"for her alone");
        assert!(raw.line().await.starts_with("226 "));
        raw.says("QUIT").await;
        let log = world.server.log.borrow().join("\n");
        assert!(log.contains("LoggedIn { peer: 192.0.2.1") && !log.contains("peer: 127.0.0.1"), "{log}");
    });
}

/// The limit of wrong passwords is the address's, and not the connection's.
#[test]
fn wrong_passwords_at_once_share_one_limit() {
    let place = Place::new("parallel");
    let mut config = ServerConfig::default();
    config.denial = Duration::from_millis(50);
    world(&place, config, async |world| {
        let mut sessions = Vec::new();
        for _ in 0..48 {
            let mut raw = world.raw().await;
            raw.says("USER ada").await;
            sessions.push(raw);
        }
        for raw in &mut sessions {
            raw.stream.write_all(b"PASS wrong\r\n").await.unwrap();
        }
        let (mut denied, mut refused) = (0, 0);
        for raw in &mut sessions {
            let reply = raw.line().await;
            denied += u32::from(reply == "530 Wrong name or password.");
            refused += u32::from(reply == "421 Too many wrong passwords from your address; try later.");
        }
        assert_eq!((denied, refused, world.server.checked.get()), (12, 36, 12));
    });
}

#[test]
fn busy_is_no_denial() {
    let place = Place::new("busy");
    world(&place, ServerConfig::default(), async |world| {
        for _ in 0..20 {
            let mut raw = world.raw().await;
            raw.says("USER busy").await;
            assert_eq!(raw.says("PASS engine").await, "421 Busy, too many log in at once; try again.");
            assert_eq!(raw.line().await, "(end)");
        }
        world.raw_user().await;
    });
}

/// A client that waits for a reply acknowledges what came before it late: no reply may wait for that.
#[test]
fn no_reply_waits_for_an_acknowledgment() {
    let place = Place::new("prompt");
    place.write("server/file", b"small");
    world(&place, ServerConfig::default(), async |world| {
        let mut raw = world.raw_user().await;
        for _ in 0..40 {
            let reply = raw.says("EPSV").await;
            let port: u16 = reply.split('|').nth(3).unwrap().parse().unwrap();
            let mut data = world.host.connect(Endpoint::new(HERE, port)).await.unwrap();
            assert!(raw.says("RETR file").await.starts_with("150 "));
            let mut got = Vec::new();
            data.read_to_end(&mut got).await.unwrap();
            assert!(raw.line().await.starts_with("226 "));
        }
        let client = raw.stream.local();
        let held = world.host.with_stack(|stack, now| {
            let of_server =
                |info: &SocketInfo| info.local.port == crate::place::PORT && info.remote == Some(client);
            let info = stack.instruments().sockets(now).find(of_server).unwrap();
            info.tcp.unwrap().ledgers.send.of(SendCause::SmallData)
        });
        assert_eq!(held, Duration::ZERO);
    });
}
