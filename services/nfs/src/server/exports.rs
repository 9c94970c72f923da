//! The folders that are exported, and under which rules.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::access::{Identity, Network, Squash};
use super::tree::Tree;
use crate::codec::rpc::Credentials;

/// The user and group of callers who are nobody in particular, where the server is the superuser.
const NOBODY: (u32, u32) = (65_534, 65_534);
/// Ports that only the superuser of a Unix host gets.
const RESERVED_PORTS_BELOW: u16 = 1024;

/// Rules of an export.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ExportRules {
    /// The path under which it is mounted, such as `/files`.
    pub path: String,
    /// Who may mount it. Default: nobody.
    pub networks: Vec<Network>,
    /// Whether it can be written. Default false.
    pub is_writable: bool,
    /// Which callers become the anonymous user. Default: all.
    pub squash: Squash,
    /// User and group of the anonymous user. Default: those of the server, or 65534 if it is the superuser.
    pub anonymous: Option<(u32, u32)>,
    /// Whether callers must come from a port below 1024. Default false.
    pub needs_reserved_port: bool,
}

/// An export.
pub struct Export {
    /// Its number in handles.
    pub(super) number: u32,
    /// Its rules.
    pub(super) rules: ExportRules,
    /// Its files.
    pub(super) tree: Arc<dyn Tree>,
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Export {
    /// Whether a caller may use it.
    pub(super) fn admits(&self, address: IpAddr, port: u16) -> bool {
        let is_port_good = !self.rules.needs_reserved_port || port < RESERVED_PORTS_BELOW;
        is_port_good && self.rules.networks.iter().any(|network| network.contains(address))
    }
    /// Who a caller is. A server that is not the superuser has all files for itself, so all callers are it.
    pub(super) fn identity(&self, credentials: &Credentials) -> Identity {
        let owner = self.tree.owner();
        if !self.tree.gives_away() {
            return Identity::new(owner.0, owner.1);
        }
        let anonymous = self.rules.anonymous.unwrap_or(NOBODY);
        Identity::of(credentials, self.rules.squash, anonymous)
    }
    /// What is behind the export's path in `path`, as names.
    pub(super) fn names_below<'a>(&self, path: &'a [u8]) -> Option<Vec<&'a [u8]>> {
        let own = self.rules.path.trim_end_matches('/').as_bytes();
        let rest = path.strip_prefix(own)?;
        if !rest.is_empty() && !rest.starts_with(b"/") {
            return None;
        }
        Some(rest.split(|&octet| octet == b'/').filter(|name| !name.is_empty()).collect())
    }
}

/// All exports of a server.
#[derive(Clone, Debug, Default)]
pub struct Exports {
    list: Arc<[Arc<Export>]>,
}

impl Exports {
    /// These, each with its number.
    pub(super) fn new(list: Vec<Export>) -> Exports {
        Exports { list: list.into_iter().map(Arc::new).collect() }
    }
    pub(super) fn numbered(&self, number: u32) -> Option<&Arc<Export>> {
        self.list.iter().find(|export| export.number == number)
    }
    /// The export of a path, the one with the longest path of its own; with the names below.
    pub(super) fn of_path<'a>(&self, path: &'a [u8]) -> Option<(&Arc<Export>, Vec<&'a [u8]>)> {
        let fits = self.list.iter().filter_map(|export| Some((export, export.names_below(path)?)));
        fits.max_by_key(|(export, _)| export.rules.path.len())
    }
    /// All.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Export>> {
        self.list.iter()
    }
}
