//! The server on the kernel's sockets, beside other people's programs.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use inhost_base::{Instant, IpAddr};
use inhost_common::{Admission, AdmissionLimits, Clock, LocalFuture};
use inhost_tn3270::client::script::Script;
use inhost_tn3270::client::{Terminal, TerminalConfig};
use inhost_tn3270::driver::{Connection, ScriptFiles, Server, TlsServer, run_script, serve};
use inhost_tn3270::screen::Snapshot;
use inhost_tn3270::server::{Devices, Origin, SessionConfig};
use tokio::net::TcpListener;

use crate::place::Place;

/// The kernel's clock, from the start of the test.
#[derive(Clone)]
pub struct RealClock(tokio::time::Instant);

impl RealClock {
    pub fn new() -> RealClock {
        RealClock(tokio::time::Instant::now())
    }
}

impl Clock for RealClock {
    fn now(&self) -> Instant {
        let elapsed = self.0.elapsed();
        Instant::from_millis(u64::try_from(elapsed.as_millis()).unwrap())
    }
    fn sleep_until(&self, at: Instant) -> LocalFuture<()> {
        let until = self.0 + std::time::Duration::from_nanos(at.since(Instant::ZERO).as_nanos());
        Box::pin(tokio::time::sleep_until(until))
    }
}

/// A server on a thread of its own, which ends with the test.
pub struct Served {
    pub address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// The panels of [`Place`] with the files of a folder; with TLS from a certificate and its key in PEM.
    pub fn start(folder: Option<&Path>, tls: Option<(String, String)>) -> Served {
        let (send, receive) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let folder = folder.map(Path::to_owned);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let tasks = tokio::task::LocalSet::new();
            let serving = async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                send.send(listener.local_addr().unwrap()).unwrap();
                accept(listener, folder, tls).await;
            };
            tasks.block_on(&runtime, async {
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            });
        });
        let address = inhost_interop::receive(&receive);
        Served { address, stop: Some(stop), thread: Some(thread) }
    }
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            inhost_interop::join(thread);
        }
    }
}

async fn accept(listener: TcpListener, folder: Option<PathBuf>, tls: Option<(String, String)>) {
    let tls = tls.map(|(chain, key)| TlsServer::from_pem(chain.as_bytes(), key.as_bytes()).unwrap());
    let (place, devices, clock) =
        (Rc::new(Place::new(folder.as_deref())), Devices::new(16), RealClock::new());
    let admission = Admission::new(AdmissionLimits::default());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (place, devices, clock) = (place.clone(), devices.clone(), clock.clone());
        let permit = admission.admit(IpAddr::from([127, 0, 0, 1]), clock.now()).unwrap();
        let tls = tls.clone();
        tokio::task::spawn_local(async move {
            let log = |_: inhost_tn3270::driver::DeviceEvent<'_>| {};
            let server = Server {
                config: SessionConfig::default(),
                devices,
                panels: &*place,
                clock: &clock,
                log: &log,
            };
            // How a session ends is what the other program sees.
            let origin = Origin::clear(IpAddr::from([127, 0, 0, 1]));
            let _ = match tls {
                Some(tls) => {
                    let Ok(stream) = tls.accept(stream, &clock).await else { return };
                    let origin = Origin { is_tls: true, ..origin };
                    serve(stream, origin, &server, &permit).await
                }
                None => serve(stream, origin, &server, &permit).await,
            };
        });
    }
}

/// What a script showed, and how it ended.
pub struct Shown {
    pub text: String,
    pub outcome: Result<(), String>,
}

/// Files of the file system, and what is shown.
#[derive(Default)]
pub struct Local(pub String);

impl ScriptFiles for Local {
    fn read(&mut self, path: &str) -> std::io::Result<Vec<u8>> {
        std::fs::read(path)
    }
    fn write(&mut self, path: &str, data: &[u8]) -> std::io::Result<()> {
        std::fs::write(path, data)
    }
    fn show(&mut self, text: &str) -> std::io::Result<()> {
        self.0 += text;
        Ok(())
    }
    fn show_screen(&mut self, screen: &Snapshot) -> std::io::Result<()> {
        self.0 += &serde_json::to_string(screen).unwrap();
        self.0.push('\n');
        Ok(())
    }
}

/// Runs a script of our client on a connection of the kernel.
pub fn script(at: SocketAddr, config: TerminalConfig, text: &str) -> Shown {
    let script = Script::parse(text).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (clock, mut local) = (RealClock::new(), Local::default());
        let stream = tokio::net::TcpStream::connect(at).await.unwrap();
        let mut connection = Connection::new(stream, Terminal::new(config), &clock);
        let outcome = run_script(&mut connection, script, &mut local).await;
        if let Err(error) = &outcome {
            local.0 += &format!("{error}\n{}", connection.terminal.screen().lines().join("\n"));
        }
        Shown { text: local.0, outcome: outcome.map_err(|error| error.to_string()) }
    })
}
