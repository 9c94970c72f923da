//! A server and its clients on one host under the real clock.
#![allow(dead_code)] // Each test file uses its part.

mod server;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use inhost_base::{Endpoint, Ipv4Addr};
use inhost_common::service::Doors;
use inhost_common::storage::Folder;
use inhost_common::{Admission, AdmissionLimits, Callers};
use inhost_ftp::client::{ClientError, Operation};
use inhost_ftp::driver::{Connection, HostNetwork, TlsClient, TlsServer, Trust, serve_session};
use inhost_ftp::server::ServerConfig;
use inhost_runtime::Runtime;
use inhost_socket::{Host, Stream};
use inhost_stack::StackConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub use server::Server;

pub const PORT: u16 = 21;
pub const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Folders of its own: `server` is the users' root, `client` the other side.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str) -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("inhost-ftp-{name}-{}-{number}", std::process::id()));
        for folder in ["server", "client"] {
            std::fs::create_dir_all(path.join(folder)).unwrap();
        }
        Place(path)
    }
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(name)).ok()
    }
    pub fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }
    pub fn folder(&self, name: &str) -> Folder {
        Folder::open(&self.0.join(name)).unwrap()
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A certificate for 127.0.0.1 with its key, in PEM.
pub fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

pub struct World {
    pub host: Host,
    pub server: Rc<Server>,
    pub certificate: String,
}

/// Runs a test with a server on its own host.
pub fn world<F: Future<Output = ()>>(place: &Place, config: ServerConfig, test: impl FnOnce(World) -> F) {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    let (certificate, key) = certificate();
    let mut limits = AdmissionLimits::default();
    limits.sessions = 1100;
    limits.sessions_per_peer = 1100;
    limits.connections_per_window = 5000;
    let tls = TlsServer::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    let server = Rc::new(Server {
        tls: Some(tls),
        rate: Some(1_000_000),
        ..Server::new(&host, Rc::new(place.folder("server")), Admission::new(limits))
    });
    let (serving, config) = (server.clone(), Rc::new(config));
    let doors = Doors::new("ftp", &host, &Callers::default(), server.admission.clone(), |_| ());
    doors
        .listen_to_all(PORT, move |stream, _| {
            stream.set_nagle(false);
            let (local, peer) = (stream.local(), stream.remote());
            let served = serve_session(stream, local, peer, false, config.clone(), serving.clone());
            async { drop(served.await) }
        })
        .unwrap();
    let world = World { host: host.clone(), server, certificate };
    let limit = host.sleep(inhost_interop::DEADLINE.into());
    let test = test(world);
    let ended = runtime.run(inhost_socket::race(test, limit)).unwrap();
    assert!(matches!(ended, inhost_socket::Either::First(())), "the test takes too long");
    host.stop();
}

pub type Client = Connection<HostNetwork, Host>;

impl World {
    /// Our client, logged in.
    pub async fn client(&self, user: &str, tls: bool) -> Result<Client, ClientError> {
        self.client_with(user, tls.then(|| self.tls_client())).await
    }
    /// The client's end of TLS, with no session to resume yet.
    pub fn tls_client(&self) -> TlsClient {
        TlsClient::new("127.0.0.1", &Trust::from_pem(self.certificate.as_bytes())).unwrap()
    }
    /// Our client, logged in; in TLS it resumes all sessions that others with the same end of it have had.
    pub async fn client_with(&self, user: &str, tls: Option<TlsClient>) -> Result<Client, ClientError> {
        let network = Rc::new(HostNetwork::new(&self.host));
        let at = Endpoint::new(HERE, PORT);
        let stream = self.host.connect(at).await.unwrap();
        let mut client =
            Connection::open(network, self.host.clone(), stream, (HERE.into(), at), tls, false).await?;
        let login = Operation::LogIn { user: user.into(), password: "engine".into(), account: None };
        client.perform(login).await?;
        Ok(client)
    }
    /// A connection by hand.
    pub async fn raw(&self) -> Raw {
        self.raw_of(self.host.connect(Endpoint::new(HERE, PORT)).await.unwrap()).await
    }
    pub async fn raw_of(&self, stream: Stream) -> Raw {
        let mut raw = Raw { stream, received: Vec::new() };
        assert!(raw.line().await.starts_with("220 "));
        raw
    }
    pub async fn raw_user(&self) -> Raw {
        let mut raw = self.raw().await;
        raw.says("USER ada").await;
        assert!(raw.says("PASS engine").await.starts_with("230 "));
        raw
    }
}

pub struct Raw {
    pub stream: Stream,
    received: Vec<u8>,
}

impl Raw {
    pub async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.received.iter().position(|&octet| octet == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return String::from_utf8(line).unwrap().trim_end().to_owned();
            }
            let mut place = [0; 1024];
            let count = self.stream.read(&mut place).await.unwrap_or(0);
            if count == 0 {
                return "(end)".to_owned();
            }
            self.received.extend_from_slice(&place[..count]);
        }
    }
    /// Begins a transfer on a passive connection, which must come about.
    pub async fn transfer(&mut self, host: &Host, line: &str) -> Stream {
        let reply = self.says("EPSV").await;
        let port: u16 = reply.split('|').nth(3).unwrap().parse().unwrap();
        let data = host.connect(Endpoint::new(HERE, port)).await.unwrap();
        let reply = self.says(line).await;
        assert!(reply.starts_with("150 "), "{line}: {reply}");
        data
    }
    pub async fn says(&mut self, line: &str) -> String {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
        self.line().await
    }
}

/// Octets without a short period.
pub fn pattern(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}
