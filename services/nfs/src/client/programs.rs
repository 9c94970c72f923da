//! The portmapper and the mount protocol, as a client uses them.

use inhost_common::Clock;
use inhost_common::storage::name_octets;

use super::{ClientError, Rpc};
use crate::codec::mount::{self, Export, LIST_LIMIT, MountReply, Path};
use crate::codec::nfs::Handle;
use crate::codec::portmap::{self, Mapping};
use crate::codec::rpc::Target;
use crate::codec::xdr::{Decoder, Encoder, Malformed, Xdr};

/// The port of a program, which a portmapper tells. `protocol` is [`portmap::TCP`] or [`portmap::UDP`].
pub async fn port_of<C: Clock>(
    portmapper: &Rpc<C>,
    program: u32,
    version: u32,
    protocol: u32,
) -> Result<u16, ClientError> {
    let procedure = portmap::procedure::GETPORT;
    let target = Target { program: portmap::PROGRAM, version: portmap::VERSION, procedure };
    let asked = Mapping { program, version, protocol, port: 0 };
    let port: u32 = portmapper.call(target, &asked).await?;
    u16::try_from(port).ok().filter(|&port| port != 0).ok_or(ClientError::NoPort(program))
}

fn target(procedure: u32) -> Target {
    Target { program: mount::PROGRAM, version: mount::VERSION, procedure }
}

/// Whether the server has the mount protocol at the port of these calls: the procedure that does nothing is called.
pub async fn ping_mount<C: Clock>(server: &Rpc<C>) -> Result<(), ClientError> {
    server.call(target(mount::procedure::NULL), &()).await
}

/// The handle of an export, whose path is text as [`name_octets`] understands it.
pub async fn mount<C: Clock>(server: &Rpc<C>, path: &str) -> Result<Handle, ClientError> {
    let reply: MountReply =
        server.call(target(mount::procedure::MNT), &Path(name_octets(path).into_owned())).await?;
    reply.0.map(|(handle, _)| handle).map_err(ClientError::Mount)
}

/// The export is not used any more.
pub async fn unmount<C: Clock>(server: &Rpc<C>, path: &str) -> Result<(), ClientError> {
    server.call(target(mount::procedure::UMNT), &Path(name_octets(path).into_owned())).await
}

/// A list as a whole reply.
struct List(Vec<Export>);

impl Xdr for List {
    fn encode(&self, to: &mut Encoder) {
        to.list(&self.0);
    }
    fn decode(from: &mut Decoder<'_>) -> Result<List, Malformed> {
        from.list(LIST_LIMIT).map(List)
    }
}

/// The exports, as far as the server tells them.
pub async fn exports<C: Clock>(server: &Rpc<C>) -> Result<Vec<Export>, ClientError> {
    let list: List = server.call(target(mount::procedure::EXPORT), &()).await?;
    Ok(list.0)
}
