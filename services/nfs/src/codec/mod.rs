//! The formats: XDR, RPC messages, record marks, and the values of the portmapper, of MOUNT and of NFS.

pub mod mount;
pub mod nfs;
pub mod portmap;
pub mod record;
pub mod rpc;
pub mod xdr;
