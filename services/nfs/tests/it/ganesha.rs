//! NFS-Ganesha as server of our client, found by way of rpcbind.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use inhost_interop::{Running, own_network, until};
use inhost_nfs::client::{CallSettings, Remote, Rpc, exports, mount, port_of, unmount};
use inhost_nfs::codec::{mount as mount_protocol, nfs, portmap};
use inhost_nfs::driver::{carry_stream, drive};
use rustix::process::{Pid, Signal, kill_process};

use super::place::{Files, HERE, Place, credentials, get, pattern, put, put_watched};
use super::sockets::{KernelClock, KernelConnect};

const PORT: u16 = 20_049;
const MOUNT_PORT: u16 = 20_048;

/// Starts the server where it finds rpcbind.
fn start(place: &Place, rpcbind: &Running) -> Running {
    let (folder, recovery) = (place.0.join("server"), place.0.join("state"));
    let plugins = Path::new("/usr/lib").join(format!("{}-linux-gnu/ganesha", std::env::consts::ARCH));
    let configuration = format!(
        "NFS_CORE_PARAM {{ NFS_Port = {PORT}; MNT_Port = {MOUNT_PORT}; Protocols = 3; Enable_NLM = false; \
         Enable_RQUOTA = false; Enable_UDP = false; Plugins_Dir = \"{}\"; }}\n\
         NFSv4 {{ Graceless = true; RecoveryRoot = \"{}\"; }}\n\
         EXPORT {{ Export_Id = 1; Path = \"{}\"; Pseudo = \"/files\"; Protocols = 3; Transports = TCP; \
         Access_Type = RW; Squash = No_Root_Squash; SecType = sys; FSAL {{ Name = VFS; }} }}\n",
        plugins.display(),
        recovery.display(),
        folder.display(),
    );
    let file = place.0.join("ganesha.conf");
    std::fs::write(&file, configuration).unwrap();
    let log = place.0.join("ganesha.log");
    let mut command = Command::new("nsenter");
    command.args(["-m", "-t", &rpcbind.id().to_string(), "ganesha.nfsd"]);
    command.arg("-F").arg("-L").arg(&log).arg("-f").arg(&file).arg("-p").arg(place.0.join("ganesha.pid"));
    let running = Running::start(&mut command);
    let is_ready = || std::net::TcpStream::connect((HERE, PORT)).is_ok().then_some(());
    let shown = || std::fs::read_to_string(&log).unwrap_or_default();
    let ready = inhost_interop::within(std::time::Duration::from_secs(30), is_ready);
    assert!(ready.is_some(), "ganesha.nfsd does not listen: {}{}", running.printed(), shown());
    running
}

fn rpc() -> Rpc<KernelClock> {
    let xid =
        u32::from_be_bytes(std::fs::read("/proc/sys/kernel/random/uuid").unwrap()[..4].try_into().unwrap());
    Rpc::new(KernelClock::start(), credentials(), CallSettings::connection(), xid)
}

fn at(port: u16) -> KernelConnect {
    KernelConnect(SocketAddr::from((HERE, port)))
}

/// Runs a test of our client with the export mounted.
fn mounted(place: &Place, test: impl AsyncFnOnce(Files)) {
    let path = place.0.join("server").display().to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let portmapper = rpc();
        let ports = async {
            // It listens before it tells rpcbind.
            let of = async |program, version| {
                for _ in 0..100 {
                    if let Ok(port) = port_of(&portmapper, program, version, portmap::TCP).await {
                        return port;
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
                panic!("rpcbind knows no port of program {program}");
            };
            let mount = of(mount_protocol::PROGRAM, mount_protocol::VERSION).await;
            (mount, of(nfs::PROGRAM, nfs::VERSION).await)
        };
        let ports = drive(carry_stream(&portmapper, &at(portmap::PORT)), ports).await;
        assert_eq!(ports, (MOUNT_PORT, PORT), "rpcbind tells the ports");
        let mounter = rpc();
        let mounting = async {
            let listed = exports(&mounter).await.unwrap();
            assert!(listed.iter().any(|export| export.path.0 == path.as_bytes()), "{listed:?}");
            assert!(mount(&mounter, "/missing").await.is_err());
            mount(&mounter, &path).await.unwrap()
        };
        let root = drive(carry_stream(&mounter, &at(ports.0)), mounting).await;
        let files = rpc();
        let work = async { test(Remote::open(files.clone(), root).await.unwrap()).await };
        drive(carry_stream(&files, &at(ports.1)), work).await;
        drive(carry_stream(&mounter, &at(ports.0)), unmount(&mounter, &path)).await.unwrap();
    });
}

/// Whether rpcbind runs in a network of the test's own; the test keeps what it gets.
fn rpcbind() -> Option<Running> {
    if !own_network() {
        return None;
    }
    // Its socket and lock in /run are the same for all networks, so it gets a /run of its own.
    let script = "mount -t tmpfs none /run && mkdir -p /run/rpcbind && exec rpcbind -f -w";
    let running = Running::start(Command::new("unshare").args(["-m", "sh", "-c", script]));
    until("rpcbind", || std::net::TcpStream::connect((HERE, portmap::PORT)).is_ok().then_some(()));
    Some(running)
}

#[test]
fn our_client_does_everything_with_it() {
    let Some(rpcbind) = rpcbind() else { return };
    let place = Place::new("ganesha");
    let _server = start(&place, &rpcbind);
    mounted(&place, async |files| {
        for bytes in [0, 1, 100_000, 10_000_001] {
            place.write("client/own", &pattern(bytes));
            assert_eq!(put(&files, &place, "own", "/stored").await, Ok(bytes as u64));
            assert!(place.read("server/stored") == pattern(bytes), "{bytes} octets stored");
            assert_eq!(get(&files, &place, "/stored", "fetched").await, Ok(bytes as u64));
            assert!(place.read("client/fetched") == pattern(bytes), "{bytes} octets fetched");
        }
        files.make_directory("/folder", 0o755).await.unwrap();
        files.rename("/stored", "/folder/moved").await.unwrap();
        for number in 0..300 {
            std::fs::write(place.0.join(format!("server/folder/f{number}")), b"x").unwrap();
        }
        let listed = files.list("/folder").await.unwrap();
        assert_eq!(listed.len(), 301);
        assert!(listed.iter().all(|listed| listed.attributes.is_some()));
        assert!(files.remove_directory("/folder").await.is_err());
        for listed in listed {
            files.remove(&format!("/folder/{}", String::from_utf8_lossy(&listed.name))).await.unwrap();
        }
        files.remove_directory("/folder").await.unwrap();
        assert_eq!(files.list("/").await.unwrap(), []);
    });
}

/// Its verifier changes when it starts again, and our client sends again what was not committed.
#[test]
fn our_client_goes_on_when_it_was_killed() {
    let Some(rpcbind) = rpcbind() else { return };
    let place = Place::new("ganesha-killed");
    let server = Cell::new(Some(start(&place, &rpcbind)));
    let octets = pattern(40_000_000);
    place.write("client/own", &octets);
    mounted(&place, async |files| {
        let is_killed = Cell::new(false);
        let progress = |moved: u64| {
            if is_killed.get() || moved < 20_000_000 {
                return;
            }
            is_killed.set(true);
            let Some(mut running) = server.take() else { return };
            kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), Signal::KILL).unwrap();
            running.wait();
            let file = std::fs::OpenOptions::new().write(true).open(place.0.join("server/stored")).unwrap();
            // What was not committed is lost with the power.
            file.set_len(0).unwrap();
            // Its verifier is the second of its start: within the same one nobody could know that it was another.
            inhost_interop::pause(std::time::Duration::from_millis(1100));
            server.set(Some(start(&place, &rpcbind)));
        };
        let stored = put_watched(&files, &place, "own", "/stored", &progress).await;
        assert_eq!(stored, Ok(octets.len() as u64));
        assert!(is_killed.get());
    });
    assert!(place.read("server/stored") == octets);
}
