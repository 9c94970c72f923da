//! Clients that never end their test, or whose streams fall silent, in virtual time.

use std::cell::RefCell;
use std::rc::Rc;

use inhost_base::{Endpoint, Ipv4Addr};
use inhost_inett::driver::{ServeOptions, Stop, run, serve};
use inhost_inett::face::{Face, LocalFace, SocketOptions};
use inhost_sim::{Duration, Simulation};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const COOKIE: [u8; 37] = [b'a'; 37];

/// What a client does that speaks the protocol byte by byte.
#[derive(Clone, Copy)]
struct Client {
    parameters: &'static str,
    /// Whether its connections are of transactions.
    are_transactions: bool,
    /// Connections, and how many of them send a byte a minute; the others are silent.
    connections: usize,
    talking: usize,
}

impl Client {
    /// Runs until the server gives the test up: its error, and the seconds that it took.
    async fn run(self, face: &LocalFace, server: Endpoint) -> std::io::Result<(i32, u64)> {
        let options = SocketOptions::default();
        let mut control = face.connect(server, &options).await?;
        control.write_all(&COOKIE).await?;
        assert_eq!(control.read_u8().await?, 9);
        control.write_u32(self.parameters.len() as u32).await?;
        control.write_all(self.parameters.as_bytes()).await?;
        assert_eq!(control.read_u8().await?, if self.are_transactions { 64 } else { 10 });
        let mut connections = Vec::new();
        for number in 0..self.connections {
            let mut connection = face.connect(server, &options).await?;
            connection.write_all(&COOKIE).await?;
            if self.are_transactions {
                connection.write_all(&[b'T', 0, number as u8]).await?;
                assert_eq!(connection.read_u8().await?, 6);
            }
            connections.push(connection);
        }
        if !self.are_transactions {
            assert_eq!([control.read_u8().await?, control.read_u8().await?], [1, 2]);
        }
        let began = face.now();
        loop {
            let minute = face.sleep_until(face.now() + Duration::from_secs(60));
            let state = tokio::select! {
                state = control.read_u8() => state?,
                () = minute => {
                    for connection in connections.iter_mut().take(self.talking) {
                        connection.write_all(b"x").await?;
                    }
                    continue;
                }
            };
            assert_eq!(state, 0xfe);
            let code = control.read_i32().await?;
            return Ok((code, face.now().since(began).as_secs()));
        }
    }
    /// Against a server with tests of an hour at most.
    fn against_our_server(self) -> (i32, u64) {
        let mut simulation = Simulation::new(1);
        simulation.set_time_limit(Duration::from_secs(2 * 3600));
        let (_stopper, stop) = Stop::new();
        simulation.host("server", async move |node| {
            let face = LocalFace::new(node.host().clone());
            let mut options = ServeOptions::default();
            options.time_max = Duration::from_secs(3600);
            let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, 5201);
            serve(&face, at, &options, &stop, &mut |_| {}).await?;
            Ok(())
        });
        let found = Rc::new(RefCell::new(None));
        let into = found.clone();
        simulation.client("client", async move |node| {
            let face = LocalFace::new(node.host().clone());
            let server = Endpoint::new(node.lookup("server").unwrap(), 5201);
            *into.borrow_mut() = Some(self.run(&face, server).await?);
            Ok(())
        });
        simulation.run().unwrap();
        found.take().unwrap()
    }
}

const STREAM: Client = Client {
    parameters: r#"{"tcp":true,"num":1e15,"parallel":1,"len":1000}"#,
    are_transactions: false,
    connections: 1,
    talking: 1,
};
const ECHO: Client = Client {
    parameters: r#"{"tcp":true,"inett":{"version":1,"kind":"echo","request_bytes":{"constant":1},
        "response_bytes":{"constant":1},"seed":1}}"#,
    are_transactions: true,
    connections: 1,
    talking: 1,
};

#[test]
fn a_test_without_a_duration_ends_at_the_limit_of_the_server() {
    for client in [
        STREAM,
        Client { parameters: r#"{"tcp":true,"blockcount":1e15,"parallel":1,"len":1000}"#, ..STREAM },
        Client { parameters: r#"{"tcp":true,"parallel":1,"len":1000}"#, ..STREAM },
        ECHO,
    ] {
        let (code, seconds) = client.against_our_server();
        assert_eq!(code, 160, "{}", client.parameters);
        assert!((3600..3700).contains(&seconds), "{}: {seconds} s", client.parameters);
    }
    // One that names a duration is cut by it.
    let parameters = r#"{"tcp":true,"time":600,"parallel":1,"len":1000}"#;
    let (code, seconds) = Client { parameters, ..STREAM }.against_our_server();
    assert!(code == 160 && (600..700).contains(&seconds), "{code} after {seconds} s");
}

#[test]
fn one_silent_stream_or_connection_ends_the_test() {
    for client in [
        Client { parameters: r#"{"tcp":true,"num":1e15,"parallel":2,"len":1000}"#, connections: 2, ..STREAM },
        Client { connections: 2, ..ECHO },
        // The server sends, and the client does not read.
        Client {
            parameters: r#"{"tcp":true,"num":1e15,"parallel":1,"len":1000,"reverse":true}"#,
            talking: 0,
            ..STREAM
        },
    ] {
        let (code, seconds) = client.against_our_server();
        assert_eq!(code, 144, "{}", client.parameters);
        assert!((120..160).contains(&seconds), "{}: {seconds} s", client.parameters);
    }
}

#[test]
fn a_long_test_by_count_is_not_cut() {
    let mut simulation = Simulation::new(1);
    simulation.set_time_limit(Duration::from_secs(3600));
    let (_stopper, stop) = Stop::new();
    let stopped = stop.clone();
    simulation.host("server", async move |node| {
        let face = LocalFace::new(node.host().clone());
        let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, 5201);
        serve(&face, at, &ServeOptions::default(), &stopped, &mut |_| {}).await?;
        Ok(())
    });
    simulation.client("client", async move |node| {
        let face = LocalFace::new(node.host().clone());
        let server = Endpoint::new(node.lookup("server").unwrap(), 5201);
        let plan = toml::from_str("kind = 'echo'\ncount = 10\nthink_us = { constant = 50000000 }").unwrap();
        let outcome = run(&face, server, &plan, &stop, &mut |_| {}).await?;
        assert_eq!(outcome.repetitions[0].transactions.unwrap().count, 10);
        Ok(())
    });
    simulation.run().unwrap();
}
