//! The mount protocol: handles of exports, and who has asked for them.

use std::collections::VecDeque;
use std::net::IpAddr;

use inhost_base::Instant;

use super::{Caller, MountEvent, Refused, Server, arguments, locked};
use crate::codec::mount::{self, MountError, MountReply, Mounted, Name, Path, procedure};
use crate::codec::nfs::{FileType, Handle, Status};
use crate::codec::rpc::CallHeader;
use crate::codec::xdr::{Decoder, Encoder};

/// Entries of the list of mounts; the oldest is forgotten. The list is for people, and nothing depends on it.
const MOUNTS_LIMIT: usize = 256;
/// Flavors of credentials: AUTH_SYS and AUTH_NONE.
const FLAVORS: [u32; 2] = [1, 0];

/// Who has mounted what.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    list: VecDeque<(IpAddr, Vec<u8>)>,
}

impl Mounts {
    fn add(&mut self, address: IpAddr, path: &[u8]) {
        self.remove(address, Some(path));
        if self.list.len() >= MOUNTS_LIMIT {
            self.list.pop_front();
        }
        self.list.push_back((address, path.to_vec()));
    }
    fn remove(&mut self, address: IpAddr, path: Option<&[u8]>) {
        self.list.retain(|(host, own)| *host != address || path.is_some_and(|path| path != own));
    }
    fn of(&self, asking: IpAddr) -> Vec<Mounted> {
        let mounted = |(host, path): &(IpAddr, Vec<u8>)| Mounted {
            host: Name(host.to_string().into_bytes()),
            path: Path(path.clone()),
        };
        // Other clients are not its business.
        self.list.iter().filter(|(host, _)| *host == asking).map(mounted).collect()
    }
}

impl Server {
    pub(super) fn mount_procedure(
        &self,
        call: &CallHeader,
        (caller, at): (Caller, Instant),
        from: &mut Decoder<'_>,
        to: &mut Encoder,
    ) -> Result<(), Refused> {
        match call.target.procedure {
            procedure::NULL => {}
            procedure::MNT => {
                let path: Path = arguments(from)?;
                let mounted = self.mount(&path.0, call, caller);
                let refusal = mounted.as_ref().err().copied();
                (self.observer)(MountEvent { caller, at, path: &path.0, refusal });
                if mounted.is_ok() {
                    locked(&self.mounts).add(caller.address, &path.0);
                }
                to.value(&MountReply(mounted.map(|handle| (handle, FLAVORS.to_vec()))));
            }
            procedure::DUMP => to.list(&locked(&self.mounts).of(caller.address)),
            procedure::UMNT => {
                let path: Path = arguments(from)?;
                locked(&self.mounts).remove(caller.address, Some(&path.0));
            }
            procedure::UMNTALL => locked(&self.mounts).remove(caller.address, None),
            procedure::EXPORT => {
                let exports = self.exports();
                let admitted = exports.iter().filter(|export| export.admits(caller.address, caller.port));
                let export = |export: &std::sync::Arc<super::Export>| mount::Export {
                    path: Path(export.rules.path.clone().into_bytes()),
                    groups: export.rules.networks.iter().map(|n| Name(n.to_string().into_bytes())).collect(),
                };
                to.list(&admitted.map(export).collect::<Vec<_>>());
            }
            _ => return Err(Refused::Procedure),
        }
        Ok(())
    }

    /// The handle of an export, or of a directory in it.
    fn mount(&self, path: &[u8], call: &CallHeader, caller: Caller) -> Result<Handle, MountError> {
        let exports = self.exports();
        let (export, names) = exports.of_path(path).ok_or(MountError::NO_ENTRY)?;
        if !export.admits(caller.address, caller.port) {
            return Err(MountError::ACCESS);
        }
        let failed = |status: Status| MountError(status.0);
        let identity = export.identity(&call.credentials);
        let mut at = export.tree.root().map_err(failed)?;
        for name in names {
            if !identity.may_look_up(&at.attributes) {
                return Err(MountError::ACCESS);
            }
            at = export.tree.lookup(&at.key, name).map_err(failed)?;
            if at.attributes.kind != FileType::Directory {
                return Err(failed(Status::NOTDIR));
            }
        }
        Ok(self.handles.seal(export.number, &at.key))
    }
}
