//! Who may do what: networks that may mount an export, users as the server has them, permission bits.

use std::net::IpAddr;
use std::str::FromStr;

use crate::codec::nfs::{Attributes, FileType, access};
use crate::codec::rpc::Credentials;

/// Addresses with a common beginning: `10.9.0.0/16`, `fd00::/8`, one address, or `*` for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
    is_all: bool,
}

impl Network {
    /// Whether an address is one of them. An IPv4 address in IPv6 form is an IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        if self.is_all {
            return true;
        }
        let shifted = |bits: u128, length: u8| bits.checked_shr(u32::from(length - self.prefix)).unwrap_or(0);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                shifted(u32::from(own).into(), 32) == shifted(u32::from(other).into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => shifted(own.into(), 128) == shifted(other.into(), 128),
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;
    fn from_str(text: &str) -> Result<Network, String> {
        let expected = || format!("{text:?} is not an address, a network such as 10.9.0.0/16, or *");
        if text == "*" {
            return Ok(Network { address: IpAddr::from([0; 4]), prefix: 0, is_all: true });
        }
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(most), str::parse).map_err(|_| expected())?;
        if prefix > most {
            return Err(expected());
        }
        Ok(Network { address, prefix, is_all: false })
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_all { f.write_str("*") } else { write!(f, "{}/{}", self.address, self.prefix) }
    }
}

/// Which callers become the anonymous user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Squash {
    /// All of them: nobody is believed.
    #[default]
    All,
    /// The superuser, and those who do not say who they are.
    Root,
    /// Only those who do not say who they are.
    None,
}

/// A user as the server has him.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Other groups.
    pub groups: Vec<u32>,
}

/// The superuser.
const ROOT: u32 = 0;

/// Read, in the permission bits of one class.
const READ: u32 = 4;
/// Write.
const WRITE: u32 = 2;
/// Execute, or look up.
const EXECUTE: u32 = 1;
/// In a directory with this bit, only owners remove names.
const STICKY: u32 = 0o1000;

impl Identity {
    /// A user of one group.
    pub fn new(uid: u32, gid: u32) -> Identity {
        Identity { uid, gid, groups: Vec::new() }
    }
    /// Who the caller is here. The anonymous user is `anonymous`.
    pub fn of(credentials: &Credentials, squash: Squash, anonymous: (u32, u32)) -> Identity {
        match credentials {
            Credentials::Sys(sys)
                if squash == Squash::None || (squash == Squash::Root && sys.uid != ROOT) =>
            {
                let own =
                    |group: u32| if squash == Squash::Root && group == ROOT { anonymous.1 } else { group };
                let groups = sys.groups.iter().copied().map(own).collect();
                Identity { uid: sys.uid, gid: own(sys.gid), groups }
            }
            _ => Identity::new(anonymous.0, anonymous.1),
        }
    }
    /// Whether he has a group.
    pub fn is_in(&self, group: u32) -> bool {
        self.gid == group || self.groups.contains(&group)
    }
    /// Whether he owns a file, or is the superuser.
    pub fn owns(&self, file: &Attributes) -> bool {
        self.uid == ROOT || self.uid == file.uid
    }
    /// Whether the permission bits let him do all of `wanted`.
    fn has(&self, file: &Attributes, wanted: u32) -> bool {
        if self.uid == ROOT {
            let is_executable = file.kind == FileType::Directory || file.mode & 0o111 != 0;
            return wanted & EXECUTE == 0 || is_executable;
        }
        let class = match () {
            () if self.uid == file.uid => file.mode >> 6,
            () if self.is_in(file.gid) => file.mode >> 3,
            () => file.mode,
        };
        class & wanted == wanted
    }
    /// Whether he may look names up in a directory.
    pub fn may_look_up(&self, directory: &Attributes) -> bool {
        self.has(directory, EXECUTE)
    }
    /// Whether he may list a directory.
    pub fn may_list(&self, directory: &Attributes) -> bool {
        self.has(directory, READ)
    }
    /// Whether he may add names to a directory.
    pub fn may_add(&self, directory: &Attributes) -> bool {
        self.has(directory, WRITE | EXECUTE)
    }
    /// Whether he may remove the name of `file` from a directory.
    pub fn may_remove(&self, directory: &Attributes, file: &Attributes) -> bool {
        let is_kept = directory.mode & STICKY != 0 && !self.owns(directory) && !self.owns(file);
        self.may_add(directory) && !is_kept
    }
    /// Whether he may read a file. An owner may, whatever the bits say: he has opened it before they were changed. So
    /// may those who execute it.
    pub fn may_read(&self, file: &Attributes) -> bool {
        self.owns(file) || self.has(file, READ) || self.has(file, EXECUTE)
    }
    /// Whether he may write a file. An owner may, as for reading.
    pub fn may_write(&self, file: &Attributes) -> bool {
        self.owns(file) || self.has(file, WRITE)
    }
    /// Those of `asked` bits of ACCESS that he has.
    pub fn access(&self, file: &Attributes, asked: u32, is_read_only: bool) -> u32 {
        let (mut allowed, is_directory) = (0, file.kind == FileType::Directory);
        if self.has(file, READ) {
            allowed |= access::READ;
        }
        if self.has(file, EXECUTE) {
            allowed |= if is_directory { access::LOOKUP } else { access::EXECUTE };
        }
        if !is_read_only && self.has(file, WRITE) {
            allowed |= access::MODIFY | access::EXTEND;
            if is_directory {
                allowed |= access::DELETE;
            }
        }
        allowed & asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::rpc::AuthSys;

    #[test]
    fn networks_hold_their_addresses() {
        let holds = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(holds("10.9.0.0/16", "10.9.255.1") && !holds("10.9.0.0/16", "10.10.0.1"));
        assert!(holds("10.9.0.0/16", "::ffff:10.9.0.1") && !holds("0.0.0.0/0", "fd00::1"));
        assert!(holds("fd00::/8", "fdff::1") && !holds("fd00::/8", "fe80::1") && holds("::/0", "::1"));
        assert!(holds("127.0.0.1", "127.0.0.1") && !holds("127.0.0.1", "127.0.0.2") && holds("*", "::1"));
        for wrong in ["", "10.9.0.0/33", "host", "10.9.0.0/x", "::/129", "/"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_is_believed_depends_on_the_squashing() {
        let sys = |uid| Credentials::Sys(AuthSys { uid, gid: 0, groups: vec![0, 5], ..AuthSys::default() });
        let of = |credentials: &Credentials, squash| {
            let identity = Identity::of(credentials, squash, (65_534, 65_533));
            (identity.uid, identity.gid, identity.groups.len())
        };
        for squash in [Squash::All, Squash::Root, Squash::None] {
            assert_eq!(of(&Credentials::None, squash), (65_534, 65_533, 0));
        }
        assert_eq!([of(&sys(7), Squash::All), of(&sys(0), Squash::Root)], [(65_534, 65_533, 0); 2]);
        assert_eq!(of(&sys(7), Squash::Root), (7, 65_533, 2), "nobody has the superuser's group");
        assert_eq!([of(&sys(7), Squash::None), of(&sys(0), Squash::None)], [(7, 0, 2), (0, 0, 2)]);
    }

    #[test]
    fn the_bits_of_the_first_class_that_fits_count() {
        let file = Attributes { mode: 0o640, uid: 1, gid: 2, ..Attributes::default() };
        let [owner, member, other] = [Identity::new(1, 9), Identity::new(3, 2), Identity::new(3, 9)];
        assert!(owner.may_write(&file) && member.may_read(&file) && !member.may_write(&file));
        assert!(!other.may_read(&file) && Identity::new(0, 0).may_write(&file));
        let shut = Attributes { mode: 0o007, ..file };
        assert_eq!(owner.access(&shut, 0x3f, false), 0, "an owner's bits are his own");
        assert!(owner.may_read(&shut), "but he may go on with what he has opened");
        assert_eq!(other.access(&shut, 0x3f, true), access::READ | access::EXECUTE);
        let sticky = Attributes { kind: FileType::Directory, mode: 0o1777, ..file };
        let theirs = Attributes { uid: 8, ..file };
        assert!(owner.may_remove(&sticky, &theirs) && !other.may_remove(&sticky, &theirs));
        assert!(other.may_remove(&sticky, &Attributes { uid: 3, ..file }));
    }
}
