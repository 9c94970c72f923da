//! The service and clients on one host under the real clock, with folders of the system.

use std::cell::RefCell;
use std::rc::Rc;

use inhost_base::Endpoint;
use inhost_common::Callers;
use inhost_common::service::{HostFiles, NoOperator, Service, ServiceContext};
use inhost_common::storage::{Storage, Store, VirtualPath};
use inhost_nfs::client::{CallSettings, ClientError, Remote, Rpc, exports, mount, port_of};
use inhost_nfs::codec::nfs::Status;
use inhost_nfs::codec::{mount as mount_protocol, nfs, portmap};
use inhost_nfs::driver::{carry_datagrams, carry_stream, drive};
use inhost_nfs::service::{ExportSection, Nfs, Section};
use inhost_runtime::Runtime;
use inhost_socket::{Either, Host, race};
use inhost_stack::{StackConfig, UdpOptions};

use super::host::{HostConnect, HostPeer};
use super::place::{HERE, Place, credentials, pattern};

/// Numbers that begin elsewhere for each client.
fn entropy() -> std::io::Result<[u8; 32]> {
    let mut octets = [0; 32];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut octets)?;
    Ok(octets)
}

struct World {
    host: Host,
    nfs: Nfs,
    section: RefCell<Section>,
}

fn section(place: &Place) -> Section {
    let mut export = ExportSection::default();
    export.path = "/files".into();
    export.root = place.0.join("server");
    export.clients = vec!["127.0.0.0/8".into()];
    export.rights = "write".into();
    export.squash = "none".into();
    let mut section = Section::default();
    section.enabled = true;
    section.state = Some(place.0.join("state"));
    section.export = vec![export];
    section
}

fn world<F: Future<Output = ()>>(place: &Place, test: impl FnOnce(Rc<World>) -> F) {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    let context = ServiceContext {
        host: host.clone(),
        reactor: runtime.handle().clone(),
        callers: Callers::default(),
        denials: Default::default(),
        sessions: Default::default(),
        files: HostFiles { are_users_named: false, users: None, hosts: "/dev/null".into() },
        resolvers: Default::default(),
        program: "inhost".into(),
        descriptor_limit: None,
        netstat: Rc::new(String::new),
        operator: Rc::new(NoOperator),
        unix_time: || std::time::UNIX_EPOCH.elapsed().unwrap(),
        entropy,
    };
    let section = section(place);
    Nfs::check(&section).unwrap();
    let prepared = Nfs::prepare(&section, &context.files).unwrap();
    let nfs = Nfs::start(&section, prepared, &context).unwrap();
    let world = Rc::new(World { host: host.clone(), nfs, section: RefCell::new(section) });
    let limit = host.sleep(inhost_interop::DEADLINE.into());
    let ended = runtime.run(race(test(world), limit)).unwrap();
    assert!(matches!(ended, Either::First(())), "the test takes too long");
    host.stop();
}

impl World {
    fn rpc(&self, settings: CallSettings) -> Rpc<Host> {
        let [a, b, c, d, ..] = entropy().unwrap();
        Rpc::new(self.host.clone(), credentials(), settings, u32::from_be_bytes([a, b, c, d]))
    }
    fn connect(&self, port: u16) -> HostConnect {
        HostConnect {
            host: self.host.clone(),
            server: Endpoint::new(HERE, port),
            from_reserved_port: port == nfs::PORT,
        }
    }
    fn peer(&self, port: u16) -> HostPeer {
        let socket = self.host.udp(Endpoint::new(HERE, 0), UdpOptions::default()).unwrap();
        HostPeer { socket, server: Endpoint::new(HERE, port) }
    }
    async fn mounted(&self, is_stream: bool, test: impl AsyncFnOnce(Remote<Host>)) {
        let settings = if is_stream { CallSettings::connection() } else { CallSettings::datagrams() };
        let rpc = self.rpc(settings);
        let work = async {
            let root = mount(&rpc, "/files").await.unwrap();
            test(Remote::open(rpc.clone(), root).await.unwrap()).await;
        };
        if is_stream {
            drive(carry_stream(&rpc, &self.connect(nfs::PORT)), work).await;
        } else {
            drive(carry_datagrams(&rpc, &self.peer(nfs::PORT)), work).await;
        }
    }
}

#[test]
fn the_service_moves_files_over_connections_and_datagrams() {
    let place = Place::new("service");
    world(&place, async |world| {
        for is_stream in [true, false] {
            world
                .mounted(is_stream, async |files| {
                    for bytes in [0, 1, 40_000, 2_000_001] {
                        place.write("client/own", &pattern(bytes));
                        let source = place.client().retrieve(&VirtualPath::root().join("own")).await.unwrap();
                        let moved = std::cell::Cell::new(0);
                        let progress = |bytes| moved.set(bytes);
                        let stored = files.put(&*source, "/stored", 0o640, &progress).await;
                        assert_eq!((stored, moved.get()), (Ok(bytes as u64), bytes as u64));
                        assert!(place.read("server/stored") == pattern(bytes));
                        let to = VirtualPath::root().join("fetched");
                        let storing = place.client().store(&to, Store::Replace, 0o022).await.unwrap();
                        assert_eq!(files.get("/stored", storing.sink, &progress).await, Ok(bytes as u64));
                        assert!(place.read("client/fetched") == pattern(bytes));
                    }
                    assert_eq!(world.nfs.sessions().len(), usize::from(is_stream));
                })
                .await;
        }
        assert!(world.nfs.describe().summary.contains("2049"));
    });
}

#[test]
fn the_portmapper_and_the_list_of_exports_answer() {
    let place = Place::new("portmapper");
    world(&place, async |world| {
        let ask = async |rpc: &Rpc<Host>| {
            let of = |program, protocol| port_of(rpc, program, 3, protocol);
            assert_eq!(of(nfs::PROGRAM, portmap::TCP).await, Ok(2049));
            assert_eq!(of(mount_protocol::PROGRAM, portmap::UDP).await, Ok(2049));
            assert_eq!(of(100_021, portmap::TCP).await, Err(ClientError::NoPort(100_021)));
        };
        let rpc = world.rpc(CallSettings::connection());
        drive(carry_stream(&rpc, &world.connect(portmap::PORT)), ask(&rpc)).await;
        let rpc = world.rpc(CallSettings::datagrams());
        drive(carry_datagrams(&rpc, &world.peer(portmap::PORT)), ask(&rpc)).await;
        let rpc = world.rpc(CallSettings::connection());
        let listed = drive(carry_stream(&rpc, &world.connect(nfs::PORT)), exports(&rpc)).await.unwrap();
        assert_eq!(listed[0].path, "/files".into());
    });
}

#[test]
fn exports_change_while_the_service_runs() {
    let place = Place::new("reload");
    place.write("server/file", b"octets");
    world(&place, async |world| {
        let files = HostFiles { are_users_named: false, users: None, hosts: "/dev/null".into() };
        world
            .mounted(true, async |remote| {
                assert!(remote.file("/file").await.is_ok());
                let mut section = world.section.borrow().clone();
                section.export[0].rights = "read".into();
                world.nfs.reload(&section, Nfs::prepare(&section, &files).unwrap()).unwrap();
                let refused = |status| Err(ClientError::Refused { procedure: "Remove", status });
                assert_eq!(remote.remove("/file").await, refused(Status::ROFS), "handles stay valid");
                section.export[0].clients.clear();
                world.nfs.reload(&section, Nfs::prepare(&section, &files).unwrap()).unwrap();
                assert!(remote.file("/file").await.is_err());
                section.limits.sessions = Some(0);
                let prepared = Nfs::prepare(&section, &files).unwrap();
                assert!(world.nfs.reload(&section, prepared).is_err());
            })
            .await;
        assert!(world.nfs.doors().close().await);
        let rpc = world.rpc(CallSettings::connection());
        let closed = drive(carry_stream(&rpc, &world.connect(portmap::PORT)), exports(&rpc)).await;
        assert!(matches!(closed, Err(ClientError::Call(_))), "{closed:?}");
    });
    let key = std::fs::metadata(place.0.join("state/handles.key")).unwrap();
    assert_eq!((key.len(), std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777), (32, 0o600));
}

#[test]
fn an_operator_can_end_a_session_and_the_client_goes_on() {
    let place = Place::new("ended");
    world(&place, async |world| {
        world
            .mounted(true, async |files| {
                let number = world.nfs.sessions()[0].number.unwrap();
                assert!(world.nfs.end_session(number));
                assert!(files.list("/").await.is_ok(), "over another connection");
                assert_ne!(world.nfs.sessions()[0].number, Some(number));
            })
            .await;
    });
}
