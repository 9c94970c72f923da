//! Folders of a test, the server as a process of its own, and our client on the kernel's sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use inhost_common::storage::{Folder, Storage, Store, VirtualPath};
use inhost_interop::Running;
use inhost_nfs::client::{CallSettings, ClientError, Remote, Rpc, mount};
use inhost_nfs::codec::rpc::{AuthSys, Credentials};
use inhost_nfs::driver::{carry_datagrams, carry_stream, drive};
use tokio::net::UdpSocket;

use super::sockets::{KernelClock, KernelConnect, KernelDatagrams};

pub const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// `server` is what is exported, `client` the other side, `state` where the server keeps its key.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str) -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("inhost-nfs-{name}-{}-{number}", std::process::id()));
        for folder in ["server", "client", "state"] {
            std::fs::create_dir_all(path.join(folder)).unwrap();
        }
        Place(path)
    }
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
    pub fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }
    /// The client's folder.
    pub fn client(&self) -> Folder {
        Folder::open(&self.0.join("client")).unwrap()
    }
    /// The server as a process: at `port`, or at any if it is 0, with the further words of its command.
    pub fn server(&self, port: u16, words: &[&str]) -> (Running, u16) {
        let mut command = Command::new(example());
        let at = SocketAddr::from((HERE, port)).to_string();
        command.arg(self.0.join("server")).arg(self.0.join("state")).arg(at).args(words);
        let mut running = Running::start(&mut command);
        let printed = running.wait_for("ready ");
        let port = printed.split("ready ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let port = port.and_then(|port| port.parse().ok());
        (running, port.unwrap_or_else(|| panic!("{printed}")))
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program of `examples/nfs_kernel`, which cargo builds with the tests.
fn example() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().and_then(|deps| deps.parent()).unwrap();
    let path = folder.join("examples/nfs_kernel");
    assert!(
        path.exists(),
        "{} is missing: build it with `cargo build -p inhost-nfs --examples`",
        path.display()
    );
    path
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

pub fn credentials() -> Credentials {
    let ids = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Credentials::Sys(AuthSys { machine: "client".into(), uid: ids.0, gid: ids.1, ..AuthSys::default() })
}

pub type Files = Remote<KernelClock>;

/// Runs a test of our client on the kernel's sockets; `is_stream` is TCP, else UDP.
pub fn client<T>(port: u16, is_stream: bool, path: &str, test: impl AsyncFnOnce(Files) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let settings = if is_stream { CallSettings::connection() } else { CallSettings::datagrams() };
        let clock = KernelClock::start();
        // Numbers of another client at this address would be taken for repetitions.
        let xid = u32::from_be_bytes(
            std::fs::read("/proc/sys/kernel/random/uuid").unwrap()[..4].try_into().unwrap(),
        );
        let rpc = Rpc::new(clock, credentials(), settings, xid);
        let work = async {
            let root = mount(&rpc, path).await.unwrap();
            test(Remote::open(rpc.clone(), root).await.unwrap()).await
        };
        let at = SocketAddr::from((HERE, port));
        if is_stream {
            return drive(carry_stream(&rpc, &KernelConnect(at)), work).await;
        }
        let socket = UdpSocket::bind((HERE, 0)).await.unwrap();
        socket.connect(at).await.unwrap();
        drive(carry_datagrams(&rpc, &KernelDatagrams(socket)), work).await
    })
}

/// Stores a file of the client's folder.
pub async fn put(files: &Files, place: &Place, from: &str, to: &str) -> Result<u64, ClientError> {
    put_watched(files, place, from, to, &|_| {}).await
}

pub async fn put_watched(
    files: &Files,
    place: &Place,
    from: &str,
    to: &str,
    progress: &dyn Fn(u64),
) -> Result<u64, ClientError> {
    let source = place.client().retrieve(&VirtualPath::root().join(from)).await?;
    files.put(&*source, to, 0o644, progress).await
}

/// Fetches a file into the client's folder.
pub async fn get(files: &Files, place: &Place, from: &str, to: &str) -> Result<u64, ClientError> {
    let storing = place.client().store(&VirtualPath::root().join(to), Store::Replace, 0o022).await?;
    files.get(from, storing.sink, &|_| {}).await
}
