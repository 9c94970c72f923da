//! The NFS server on the kernel's sockets, for tests beside other people's programs.
//!
//! ```text
//! nfs_kernel ROOT STATE ADDRESS:PORT [PORTMAPPER-PORT] [later]
//! ```
//!
//! It exports the folder ROOT as `/files` to everybody, keeps its key in the folder STATE, and prints `ready PORT`. With
//! `later` changes reach the disk after they were answered.

mod sockets;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use inhost_common::{Guard, Rate};
use inhost_nfs::driver::{DatagramLimits, SessionLimits, serve_datagrams, serve_stream};
use inhost_nfs::server::access::Squash;
use inhost_nfs::server::folder::{Durability, FolderTree};
use inhost_nfs::server::handles::secret_in;
use inhost_nfs::server::{Caller, ExportRules, Ports, Programs, Server};
use sockets::{KernelClock, KernelDatagrams};
use tokio::net::{TcpListener, UdpSocket};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, state, at, rest @ ..] = arguments.as_slice() else {
        return Err("give ROOT STATE ADDRESS:PORT".into());
    };
    let durability =
        if rest.iter().any(|word| word == "later") { Durability::Later } else { Durability::Answered };
    let portmapper = rest.iter().find_map(|word| word.parse().ok()).unwrap_or(0);
    let server = server(Path::new(root), Path::new(state), durability)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, serve(server, at.parse()?, portmapper))
}

/// Octets that nobody else knows.
fn entropy() -> std::io::Result<[u8; 32]> {
    let mut octets = [0; 32];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut octets)?;
    Ok(octets)
}

fn server(root: &Path, state: &Path, durability: Durability) -> Result<Server, Failure> {
    let secret = secret_in(&state.join("handles.key"), entropy()?)?;
    let [a, b, c, d, e, f, g, h, ..] = entropy()?;
    let server = Server::new(&secret, u64::from_be_bytes([a, b, c, d, e, f, g, h]));
    let mut rules = ExportRules::default();
    rules.path = "/files".into();
    rules.networks = vec!["*".parse()?];
    rules.is_writable = true;
    rules.squash = Squash::None;
    server.set_exports(vec![(rules, Arc::new(FolderTree::open(root, durability)?))]);
    Ok(server)
}

async fn serve(server: Server, at: SocketAddr, portmapper: u16) -> Result<(), Failure> {
    let clock = KernelClock::start();
    let listener = TcpListener::bind(at).await?;
    let at = listener.local_addr()?;
    server.set_ports(Ports { files: at.port(), portmapper, has_datagrams: true });
    let server = Arc::new(server);
    if portmapper != 0 {
        let at = SocketAddr::new(at.ip(), portmapper);
        let listener = TcpListener::bind(at).await?;
        datagrams(&server, clock, UdpSocket::bind(at).await?, Programs::Ports);
        tokio::task::spawn_local(accept(server.clone(), clock, listener, Programs::Ports));
    }
    datagrams(&server, clock, UdpSocket::bind(at).await?, Programs::Files);
    println!("ready {}", at.port());
    accept(server, clock, listener, Programs::Files).await;
    Ok(())
}

fn datagrams(server: &Arc<Server>, clock: KernelClock, socket: UdpSocket, programs: Programs) {
    let (server, rate) = (server.clone(), Rate { burst: 10_000, per_second: 100_000 });
    tokio::task::spawn_local(async move {
        let (socket, guard) = (KernelDatagrams(socket), Guard::new(rate, rate));
        let limits = DatagramLimits::default();
        serve_datagrams(&socket, &clock, (&server, programs), limits, guard, |from| from).await;
    });
}

async fn accept(server: Arc<Server>, clock: KernelClock, listener: TcpListener, programs: Programs) {
    while let Ok((mut stream, peer)) = listener.accept().await {
        let server = server.clone();
        tokio::task::spawn_local(async move {
            let (Ok(local), Ok(())) = (stream.local_addr(), stream.set_nodelay(true)) else { return };
            let caller =
                Caller { address: peer.ip(), port: peer.port(), local: local.ip(), is_datagram: false };
            serve_stream(&mut stream, &clock, &server, caller, programs, SessionLimits::default()).await;
        });
    }
}
