//! Values that several procedures share (RFC 1813 §2.5, §2.6).

use crate::codec::xdr::{Decoder, Encoder, Malformed, Xdr, xdr_enum, xdr_octets, xdr_struct};

/// Octets of a file handle (NFS3_FHSIZE).
pub const HANDLE_BYTES: usize = 64;
/// Octets of a name that are read. File systems take 255; a longer one is answered with NAMETOOLONG.
pub const NAME_BYTES: usize = 1024;
/// Octets of a symbolic link's target.
pub const TARGET_BYTES: usize = 4096;
/// Octets of one READ or WRITE.
pub const DATA_BYTES: usize = 1 << 20;

xdr_octets! {
    /// A file handle: octets that only its server understands.
    Handle, HANDLE_BYTES
}
xdr_octets! {
    /// A name in a directory.
    Name, NAME_BYTES
}
xdr_octets! {
    /// The target of a symbolic link.
    Target, TARGET_BYTES
}
xdr_octets! {
    /// A file's octets.
    Data, DATA_BYTES
}

/// The verifier of writes, of a directory's cookies or of an exclusive CREATE.
pub type Verifier = [u8; 8];

xdr_enum! {
    /// Type of a file (ftype3).
    FileType {
        /// A plain file.
        #[default]
        Regular = 1,
        /// A directory.
        Directory = 2,
        /// A block device.
        Block = 3,
        /// A character device.
        Character = 4,
        /// A symbolic link.
        Link = 5,
        /// A socket.
        Socket = 6,
        /// A named pipe.
        Fifo = 7,
    }
}

xdr_struct! {
    /// Seconds and nanoseconds since the start of 1970 (nfstime3). It ends in 2106.
    #[derive(Copy, PartialOrd, Ord)]
    Time {
        /// Whole seconds.
        seconds: u32,
        /// Nanoseconds beyond them.
        nanoseconds: u32,
    }
}
xdr_struct! {
    /// Numbers of a device (specdata3).
    #[derive(Copy)]
    Device {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    }
}
xdr_struct! {
    /// Attributes of a file (fattr3).
    #[derive(Copy)]
    Attributes {
        /// Type.
        kind: FileType,
        /// Permission bits.
        mode: u32,
        /// Names that it has.
        links: u32,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Octets.
        size_bytes: u64,
        /// Octets on the disk.
        used_bytes: u64,
        /// Numbers of a device.
        device: Device,
        /// Identity of the file system.
        fsid: u64,
        /// Number of the file in it.
        fileid: u64,
        /// When it was last read.
        accessed: Time,
        /// When its octets last changed.
        modified: Time,
        /// When its attributes last changed.
        changed: Time,
    }
}
xdr_struct! {
    /// Attributes by which a change is known (wcc_attr).
    #[derive(Copy)]
    WccAttributes {
        /// Octets.
        size_bytes: u64,
        /// When its octets last changed.
        modified: Time,
        /// When its attributes last changed.
        changed: Time,
    }
}

impl From<Attributes> for WccAttributes {
    fn from(all: Attributes) -> WccAttributes {
        WccAttributes { size_bytes: all.size_bytes, modified: all.modified, changed: all.changed }
    }
}

/// Attributes after an operation, where the server has them.
pub type PostOp = Option<Attributes>;

xdr_struct! {
    /// Weak cache consistency: attributes before and after an operation, with no other change between them (wcc_data).
    #[derive(Copy)]
    Wcc {
        /// Before.
        before: Option<WccAttributes>,
        /// After.
        after: PostOp,
    }
}

/// How a time is set (set_atime, set_mtime).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SetTime {
    /// It stays.
    #[default]
    Keep,
    /// To the server's time.
    Now,
    /// To this time.
    To(Time),
}

impl Xdr for SetTime {
    fn encode(&self, to: &mut Encoder) {
        match self {
            SetTime::Keep => to.u32(0),
            SetTime::Now => to.u32(1),
            SetTime::To(time) => {
                to.u32(2);
                to.value(time);
            }
        }
    }
    fn decode(from: &mut Decoder<'_>) -> Result<SetTime, Malformed> {
        match from.u32()? {
            0 => Ok(SetTime::Keep),
            1 => Ok(SetTime::Now),
            2 => from.value().map(SetTime::To),
            _ => Err(Malformed::Value),
        }
    }
}

xdr_struct! {
    /// Attributes to be set (sattr3); those that are `None` stay.
    #[derive(Copy)]
    SetAttributes {
        /// Permission bits.
        mode: Option<u32>,
        /// Owner.
        uid: Option<u32>,
        /// Group.
        gid: Option<u32>,
        /// Octets.
        size_bytes: Option<u64>,
        /// When it was last read.
        accessed: SetTime,
        /// When its octets last changed.
        modified: SetTime,
    }
}

xdr_enum! {
    /// How soon written octets are on the disk (stable_how).
    Stable {
        /// Once they are committed.
        #[default]
        Unstable = 0,
        /// The octets, when the reply is there.
        Data = 1,
        /// The octets and all attributes, when the reply is there.
        File = 2,
    }
}

xdr_struct! {
    /// A name in a directory (diropargs3).
    Place {
        /// The directory.
        directory: Handle,
        /// The name.
        name: Name,
    }
}

/// Bits of ACCESS (RFC 1813 §3.3.4).
pub mod access {
    /// Read a file or list a directory.
    pub const READ: u32 = 0x01;
    /// Look a name up.
    pub const LOOKUP: u32 = 0x02;
    /// Change octets that are there, or names in a directory.
    pub const MODIFY: u32 = 0x04;
    /// Add octets, or names to a directory.
    pub const EXTEND: u32 = 0x08;
    /// Remove names from a directory.
    pub const DELETE: u32 = 0x10;
    /// Execute a file.
    pub const EXECUTE: u32 = 0x20;
}

/// Properties of a file system, as FSINFO tells them (RFC 1813 §3.3.19).
pub mod properties {
    /// Hard links.
    pub const LINK: u32 = 0x01;
    /// Symbolic links.
    pub const SYMLINK: u32 = 0x02;
    /// PATHCONF is the same for all files.
    pub const HOMOGENEOUS: u32 = 0x08;
    /// SETATTR can set times.
    pub const CAN_SET_TIME: u32 = 0x10;
}
