//! What procedures take (RFC 1813 §3.3).

use super::values::{
    Data, Device, FileType, Handle, Name, Place, SetAttributes, Stable, Target, Time, Verifier,
};
use crate::codec::xdr::{Decoder, Encoder, Malformed, Xdr, xdr_struct};

xdr_struct! {
    /// Arguments of SETATTR.
    SetAttributesArguments {
        /// The file.
        object: Handle,
        /// What to set.
        attributes: SetAttributes,
        /// Only if the file's attributes last changed then.
        guard: Option<Time>,
    }
}
xdr_struct! {
    /// Arguments of ACCESS.
    AccessArguments {
        /// The file.
        object: Handle,
        /// Bits that are asked for.
        access: u32,
    }
}
xdr_struct! {
    /// Arguments of READ.
    ReadArguments {
        /// The file.
        file: Handle,
        /// The first octet.
        offset: u64,
        /// How many.
        count: u32,
    }
}
xdr_struct! {
    /// Arguments of WRITE.
    WriteArguments {
        /// The file.
        file: Handle,
        /// Where the first octet goes.
        offset: u64,
        /// How many; the octets of `data`.
        count: u32,
        /// How soon they are on the disk.
        stable: Stable,
        /// The octets.
        data: Data,
    }
}

/// How CREATE makes a file (createhow3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// One that is there is taken.
    Unchecked(SetAttributes),
    /// None may be there.
    Guarded(SetAttributes),
    /// None may be there but one that the same verifier made.
    Exclusive(Verifier),
}

impl Default for How {
    fn default() -> How {
        How::Unchecked(SetAttributes::default())
    }
}

impl Xdr for How {
    fn encode(&self, to: &mut Encoder) {
        match self {
            How::Unchecked(attributes) => {
                to.u32(0);
                to.value(attributes);
            }
            How::Guarded(attributes) => {
                to.u32(1);
                to.value(attributes);
            }
            How::Exclusive(verifier) => {
                to.u32(2);
                to.value(verifier);
            }
        }
    }
    fn decode(from: &mut Decoder<'_>) -> Result<How, Malformed> {
        match from.u32()? {
            0 => from.value().map(How::Unchecked),
            1 => from.value().map(How::Guarded),
            2 => from.value().map(How::Exclusive),
            _ => Err(Malformed::Value),
        }
    }
}

xdr_struct! {
    /// Arguments of CREATE.
    CreateArguments {
        /// The name to be.
        place: Place,
        /// How.
        how: How,
    }
}
xdr_struct! {
    /// Arguments of MKDIR.
    MakeDirectoryArguments {
        /// The name to be.
        place: Place,
        /// Its attributes.
        attributes: SetAttributes,
    }
}
xdr_struct! {
    /// Arguments of SYMLINK.
    SymlinkArguments {
        /// The name to be.
        place: Place,
        /// Its attributes.
        attributes: SetAttributes,
        /// Where it leads.
        target: Target,
    }
}

/// What MKNOD makes (mknoddata3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Node {
    /// Its type; plain files, directories and links have procedures of their own.
    pub kind: FileType,
    /// Its attributes; none of those types.
    pub attributes: SetAttributes,
    /// Numbers of a device.
    pub device: Device,
}

impl Xdr for Node {
    fn encode(&self, to: &mut Encoder) {
        to.value(&self.kind);
        match self.kind {
            FileType::Block | FileType::Character => {
                to.value(&self.attributes);
                to.value(&self.device);
            }
            FileType::Socket | FileType::Fifo => to.value(&self.attributes),
            FileType::Regular | FileType::Directory | FileType::Link => {}
        }
    }
    fn decode(from: &mut Decoder<'_>) -> Result<Node, Malformed> {
        let mut node = Node { kind: from.value()?, ..Node::default() };
        match node.kind {
            FileType::Block | FileType::Character => {
                node.attributes = from.value()?;
                node.device = from.value()?;
            }
            FileType::Socket | FileType::Fifo => node.attributes = from.value()?,
            FileType::Regular | FileType::Directory | FileType::Link => {}
        }
        Ok(node)
    }
}

xdr_struct! {
    /// Arguments of MKNOD.
    MakeNodeArguments {
        /// The name to be.
        place: Place,
        /// What to make.
        node: Node,
    }
}
xdr_struct! {
    /// Arguments of RENAME.
    RenameArguments {
        /// The name that goes.
        from: Place,
        /// The name that it gets.
        to: Place,
    }
}
xdr_struct! {
    /// Arguments of LINK.
    LinkArguments {
        /// The file.
        file: Handle,
        /// Another name for it.
        link: Place,
    }
}
xdr_struct! {
    /// Arguments of READDIR.
    ReadDirArguments {
        /// The directory.
        directory: Handle,
        /// Behind which entry; zero for the first.
        cookie: u64,
        /// What came with the cookie.
        verifier: Verifier,
        /// Octets of the reply at most.
        count: u32,
    }
}
xdr_struct! {
    /// Arguments of READDIRPLUS.
    ReadDirPlusArguments {
        /// The directory.
        directory: Handle,
        /// Behind which entry; zero for the first.
        cookie: u64,
        /// What came with the cookie.
        verifier: Verifier,
        /// Octets of names and cookies at most.
        names_bytes: u32,
        /// Octets of the reply at most.
        count: u32,
    }
}
xdr_struct! {
    /// Arguments of COMMIT.
    CommitArguments {
        /// The file.
        file: Handle,
        /// The first octet.
        offset: u64,
        /// How many; zero for all to the end.
        count: u32,
    }
}
xdr_struct! {
    /// A file, for procedures that take nothing else.
    #[derive(PartialOrd, Ord)]
    Object {
        /// The file.
        handle: Handle,
    }
}
xdr_struct! {
    /// A name, for procedures that take nothing else.
    Named {
        /// The name.
        place: Place,
    }
}

impl From<&str> for Named {
    fn from(name: &str) -> Named {
        Named { place: Place { directory: Handle::default(), name: Name::from(name) } }
    }
}
