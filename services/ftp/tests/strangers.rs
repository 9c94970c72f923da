//! What strangers try, and what they are told.

mod place;

use inhost_base::{Duration, Endpoint};
use inhost_ftp::server::{ServerConfig, TlsPolicy};
use place::{HERE, Place, world};
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
            let heard = raw.says(line).await;
            assert!(heard.starts_with("550 Permission denied"), "{line}: {heard}");
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
    let config = ServerConfig { tls: TlsPolicy::Required, ..ServerConfig::default() };
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
    let config = ServerConfig {
        line_time: Duration::from_millis(400),
        login_time: Duration::from_millis(1500),
        connect_time: Duration::from_millis(300),
        stall_time: Duration::from_millis(400),
        ..ServerConfig::default()
    };
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
