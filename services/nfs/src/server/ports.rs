//! The portmapper: tells the ports of this server, and takes none of others.

use std::net::IpAddr;
use std::sync::PoisonError;

use super::{Caller, Refused, Server, arguments};
use crate::codec::portmap::{self, Mapping, RpcBinding, TCP, Text, UDP, procedure, universal};
use crate::codec::rpc::CallHeader;
use crate::codec::xdr::{Decoder, Encoder};
use crate::codec::{mount, nfs};

/// Ports of the server; the same for TCP and UDP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ports {
    /// NFS and MOUNT.
    pub files: u16,
    /// The portmapper itself.
    pub portmapper: u16,
    /// Whether there is UDP.
    pub has_datagrams: bool,
}

impl Ports {
    fn mappings(&self) -> impl Iterator<Item = Mapping> {
        let protocols: &[u32] = if self.has_datagrams { &[TCP, UDP] } else { &[TCP] };
        let Ports { files, portmapper, .. } = *self;
        let programs = [
            (portmap::PROGRAM, portmap::VERSION, portmapper),
            (portmap::PROGRAM, 3, portmapper),
            (portmap::PROGRAM, portmap::VERSION_4, portmapper),
            (nfs::PROGRAM, nfs::VERSION, files),
            (mount::PROGRAM, mount::VERSION, files),
        ];
        programs.into_iter().flat_map(move |(program, version, port)| {
            let mapping = move |&protocol| Mapping { program, version, protocol, port: port.into() };
            protocols.iter().map(mapping)
        })
    }
}

impl Server {
    pub(super) fn ports_procedure(
        &self,
        call: &CallHeader,
        caller: Caller,
        from: &mut Decoder<'_>,
        to: &mut Encoder,
    ) -> Result<(), Refused> {
        let ports = *self.ports.read().unwrap_or_else(PoisonError::into_inner);
        let is_old = call.target.version == portmap::VERSION;
        match call.target.procedure {
            procedure::NULL => {}
            // Only the programs of this host are told, and those are known.
            procedure::SET | procedure::UNSET => to.value(&false),
            procedure::GETPORT if is_old => {
                let asked: Mapping = arguments(from)?;
                let found = ports.mappings().find(|known| {
                    (known.program, known.version, known.protocol)
                        == (asked.program, asked.version, asked.protocol)
                });
                to.u32(found.map_or(0, |found| found.port));
            }
            procedure::DUMP if is_old => to.list(&ports.mappings().collect::<Vec<_>>()),
            procedure::GETADDR => {
                let asked: RpcBinding = arguments(from)?;
                let protocol = match asked.network.0.as_slice() {
                    b"udp" | b"udp6" => UDP,
                    b"tcp" | b"tcp6" => TCP,
                    // The transport of the question (RFC 1833 §2.2.1).
                    _ if caller.is_datagram => UDP,
                    _ => TCP,
                };
                // Like rpcbind, another version is told as well: then the program says which versions there are.
                let found = ports
                    .mappings()
                    .find(|known| (known.program, known.protocol) == (asked.program, protocol));
                let address = found.map(|found| address_of(caller.local, &found)).unwrap_or_default();
                to.value(&Text(address.into_bytes()));
            }
            procedure::RPCB_DUMP => {
                let binding = |mapping: Mapping| RpcBinding {
                    program: mapping.program,
                    version: mapping.version,
                    network: network(caller.local, mapping.protocol).into(),
                    address: Text(address_of(caller.local, &mapping).into_bytes()),
                    owner: "superuser".into(),
                };
                to.list(&ports.mappings().map(binding).collect::<Vec<_>>());
            }
            _ => return Err(Refused::Procedure),
        }
        Ok(())
    }
}

fn address_of(local: IpAddr, mapping: &Mapping) -> String {
    universal(local, u16::try_from(mapping.port).unwrap_or(0))
}

fn network(local: IpAddr, protocol: u32) -> &'static str {
    match (local.is_ipv6(), protocol) {
        (false, TCP) => "tcp",
        (false, _) => "udp",
        (true, TCP) => "tcp6",
        (true, _) => "udp6",
    }
}
