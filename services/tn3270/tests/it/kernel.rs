//! The server on the kernel's sockets, beside other people's programs.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use inhost_base::{Instant, IpAddr};
use inhost_common::{Admission, AdmissionLimits, Clock, LocalFuture};
use inhost_tn3270::driver::{Server, TlsServer, serve};
use inhost_tn3270::server::{Devices, SessionConfig};
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
    let (place, devices, clock) = (Rc::new(Place::new(folder.as_deref())), Devices::new(16), RealClock::new());
    let admission = Admission::new(AdmissionLimits::default());
    loop {
        let (stream, peer) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (place, devices, clock) = (place.clone(), devices.clone(), clock.clone());
        let permit = admission.admit(IpAddr::from([127, 0, 0, 1]), clock.now()).unwrap();
        let tls = tls.clone();
        tokio::task::spawn_local(async move {
            let log = |_: inhost_tn3270::driver::SessionEvent<'_>| {};
            let server = Server {
                config: SessionConfig::default(),
                devices,
                panels: &*place,
                clock: &clock,
                log: &log,
            };
            let _ = peer;
            match tls {
                Some(tls) => {
                    let stream = tls.accept(stream, &clock).await.unwrap();
                    serve(stream, IpAddr::from([127, 0, 0, 1]), &server, &permit).await
                }
                None => serve(stream, IpAddr::from([127, 0, 0, 1]), &server, &permit).await,
            }
        });
    }
}
