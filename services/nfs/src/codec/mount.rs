//! The mount protocol, version 3 (RFC 1813 appendix I).

use super::nfs::Handle;
use super::xdr::{Decoder, Encoder, Malformed, Xdr, xdr_octets, xdr_struct};

/// Program number.
pub const PROGRAM: u32 = 100_005;
/// Its version.
pub const VERSION: u32 = 3;
/// Octets of a path (MNTPATHLEN).
pub const PATH_BYTES: usize = 1024;
/// Octets of a name (MNTNAMLEN).
pub const NAME_BYTES: usize = 255;
/// Entries of a list that are read.
pub const LIST_LIMIT: usize = 4096;

/// Procedures.
pub mod procedure {
    /// Does nothing.
    pub const NULL: u32 = 0;
    /// Gives the handle of an export; [`super::Path`] to [`super::MountReply`].
    pub const MNT: u32 = 1;
    /// Who has mounted what; a list of [`super::Mounted`].
    pub const DUMP: u32 = 2;
    /// The caller has it mounted no more; [`super::Path`].
    pub const UMNT: u32 = 3;
    /// The caller has nothing mounted any more.
    pub const UMNTALL: u32 = 4;
    /// The exports; a list of [`super::Export`].
    pub const EXPORT: u32 = 5;
}

xdr_octets! {
    /// The path of an export.
    Path, PATH_BYTES
}
xdr_octets! {
    /// The name of a host or of a group of hosts.
    Name, NAME_BYTES
}
xdr_struct! {
    /// A client that has an export mounted.
    Mounted {
        /// The client.
        host: Name,
        /// The export.
        path: Path,
    }
}

/// An export and who may mount it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Export {
    /// The export.
    pub path: Path,
    /// Hosts or networks.
    pub groups: Vec<Name>,
}

impl Xdr for Export {
    fn encode(&self, to: &mut Encoder) {
        to.value(&self.path);
        to.list(&self.groups);
    }
    fn decode(from: &mut Decoder<'_>) -> Result<Export, Malformed> {
        Ok(Export { path: from.value()?, groups: from.list(LIST_LIMIT)? })
    }
}

/// Why an export is not given (mountstat3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MountError(pub u32);

impl MountError {
    /// There is no such export.
    pub const NO_ENTRY: MountError = MountError(2);
    /// The caller may not have it.
    pub const ACCESS: MountError = MountError(13);
    /// The server failed.
    pub const SERVER_FAULT: MountError = MountError(10_006);
}

impl core::fmt::Display for MountError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            MountError::NO_ENTRY => f.write_str("there is no such export"),
            MountError::ACCESS => f.write_str("the server does not allow it"),
            MountError(number) => write!(f, "error {number} of the mount protocol"),
        }
    }
}
impl std::error::Error for MountError {}

/// The handle of an export, and the flavors of credentials that it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountReply(pub Result<(Handle, Vec<u32>), MountError>);

/// Flavors that are read.
const FLAVORS_LIMIT: usize = 64;

impl Xdr for MountReply {
    fn encode(&self, to: &mut Encoder) {
        match &self.0 {
            Ok((handle, flavors)) => {
                to.u32(0);
                to.value(handle);
                to.u32(flavors.len() as u32);
                flavors.iter().for_each(|&flavor| to.u32(flavor));
            }
            Err(error) => to.u32(error.0),
        }
    }
    fn decode(from: &mut Decoder<'_>) -> Result<MountReply, Malformed> {
        Ok(MountReply(match from.u32()? {
            0 => {
                let handle = from.value()?;
                let count = from.u32()? as usize;
                if count > FLAVORS_LIMIT {
                    return Err(Malformed::Long);
                }
                Ok((handle, (0..count).map(|_| from.u32()).collect::<Result<_, _>>()?))
            }
            error => Err(MountError(error)),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::xdr::{from_octets, to_octets};
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for reply in
            [MountReply(Ok((Handle(vec![1, 2, 3]), vec![0, 1]))), MountReply(Err(MountError::ACCESS))]
        {
            assert_eq!(from_octets::<MountReply>(&to_octets(&reply)), Ok(reply));
        }
        let export = Export { path: "/files".into(), groups: vec!["10.0.0.0/8".into()] };
        assert_eq!(from_octets::<Export>(&to_octets(&export)), Ok(export));
    }
}
