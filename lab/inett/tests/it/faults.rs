//! A system that refuses: the listener has no descriptors, the queue of datagrams is full.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use inhost_base::{Endpoint, Instant, Ipv4Addr};
use inhost_inett::driver::{ServeOptions, Served, Stop, run, serve};
use inhost_inett::face::{Face, Kernel, Processor, SocketOptions, StreamFigures};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::kernel::{block_on, plan};

/// The system's sockets, with faults.
#[derive(Clone)]
struct Faulty {
    kernel: Kernel,
    faults: Rc<Faults>,
}

#[derive(Default)]
struct Faults {
    accept_fails: Cell<bool>,
    accepts: Cell<u32>,
    /// Whether every second datagram is refused.
    send_fails: bool,
    sends: Cell<u32>,
}

impl Faulty {
    fn new(faults: Faults) -> Faulty {
        Faulty { kernel: Kernel::new(), faults: Rc::new(faults) }
    }
}

impl Face for Faulty {
    type Stream = TcpStream;
    type Listener = TcpListener;
    type Datagrams = UdpSocket;

    fn now(&self) -> Instant {
        self.kernel.now()
    }
    async fn sleep_until(&self, at: Instant) {
        self.kernel.sleep_until(at).await;
    }
    fn entropy(&self) -> u64 {
        self.kernel.entropy()
    }
    fn processor(&self) -> Option<Processor> {
        self.kernel.processor()
    }
    async fn connect(&self, to: Endpoint, options: &SocketOptions) -> io::Result<TcpStream> {
        self.kernel.connect(to, options).await
    }
    async fn listen(&self, at: Endpoint) -> io::Result<TcpListener> {
        self.kernel.listen(at).await
    }
    fn local(&self, listener: &TcpListener) -> io::Result<Endpoint> {
        self.kernel.local(listener)
    }
    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, Endpoint)> {
        self.faults.accepts.set(self.faults.accepts.get() + 1);
        match self.faults.accept_fails.get() {
            true => Err(io::Error::from_raw_os_error(nix::libc::EMFILE)),
            false => self.kernel.accept(listener).await,
        }
    }
    async fn prepare(&self, stream: &TcpStream, options: &SocketOptions) -> io::Result<()> {
        self.kernel.prepare(stream, options).await
    }
    async fn datagrams(
        &self,
        local: Endpoint,
        remote: Option<Endpoint>,
        options: &SocketOptions,
    ) -> io::Result<UdpSocket> {
        self.kernel.datagrams(local, remote, options).await
    }
    async fn send_to(&self, socket: &UdpSocket, bytes: &[u8], to: Option<Endpoint>) -> io::Result<()> {
        self.faults.sends.set(self.faults.sends.get() + 1);
        match self.faults.send_fails && self.faults.sends.get().is_multiple_of(2) {
            true => Err(io::Error::from_raw_os_error(nix::libc::ENOBUFS)),
            false => self.kernel.send_to(socket, bytes, to).await,
        }
    }
    async fn receive_from(&self, socket: &UdpSocket, into: &mut [u8]) -> io::Result<(usize, Endpoint)> {
        self.kernel.receive_from(socket, into).await
    }
    async fn figures(&self, stream: &TcpStream) -> StreamFigures {
        self.kernel.figures(stream).await
    }
}

/// A client up to the answer to its parameters.
async fn begin(server: SocketAddr, parameters: &str) -> TcpStream {
    let mut control = TcpStream::connect(server).await.unwrap();
    control.write_all(&[b'a'; 37]).await.unwrap();
    assert_eq!(control.read_u8().await.unwrap(), 9);
    control.write_u32(parameters.len() as u32).await.unwrap();
    control.write_all(parameters.as_bytes()).await.unwrap();
    control.read_u8().await.unwrap();
    control
}

#[test]
fn a_listener_without_descriptors_is_not_asked_without_a_pause() {
    let echo = r#"{"inett":{"version":1,"kind":"echo","request_bytes":{"constant":1},
        "response_bytes":{"constant":1},"seed":1}}"#;
    // While transactions run, while streams are opened, and while nothing runs.
    for parameters in [Some(echo), Some(r#"{"tcp":true,"time":5,"parallel":1}"#), None] {
        let face = Faulty::new(Faults::default());
        let (stopper, stop) = Stop::new();
        let (tell, told) = async_channel::bounded(9);
        let options = ServeOptions::default();
        let mut tell = |served| {
            if let Served::Listening(at) = served {
                tell.try_send(SocketAddr::from(at)).unwrap();
            }
        };
        let at = Endpoint::new(Ipv4Addr::LOCALHOST, 0);
        let served = serve(&face, at, &options, &stop, &mut tell);
        let client = async {
            let server = told.recv().await.unwrap();
            let control = match parameters {
                Some(parameters) => Some(begin(server, parameters).await),
                None => None,
            };
            face.faults.accept_fails.set(true);
            // It is accepted by the call that waits, and the next ones fail.
            drop(TcpStream::connect(server).await.unwrap());
            let before = face.faults.accepts.get();
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            let accepts = face.faults.accepts.get() - before;
            assert!((1..20).contains(&accepts), "{parameters:?}: {accepts}");
            drop(control);
            stopper.stop();
        };
        let (served, ()) = block_on(async { tokio::join!(served, client) });
        served.unwrap();
    }
}

#[test]
fn datagrams_that_the_system_refuses_are_not_counted() {
    let server = super::kernel::OurServer::start();
    let face = Faulty::new(Faults { send_fails: true, ..Faults::default() });
    let (_stopper, stop) = Stop::new();
    for (end, sent) in [("count = 200", 200..201), ("time_ms = 500", 400..700)] {
        // 1,000 datagrams a second.
        let text = format!("protocol = 'udp'\nwrite_bytes = 1000\nrate_bits_per_second = 8000000\n{end}");
        let outcome = block_on(run(&face, server.at, &plan(&text), &stop, &mut |_| {})).unwrap();
        let transfer = outcome.repetitions[0].sent.unwrap();
        let datagrams = transfer.datagrams.unwrap();
        assert!(sent.contains(&datagrams.sent), "{end}: {datagrams:?}");
        assert!(matches!(server.end(), Served::Ended { .. }));
    }
}
