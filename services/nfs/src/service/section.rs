//! The section of the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use inhost_common::service::{Limits, Problem};
use inhost_common::{AdmissionLimits, state_folder};
use serde::{Deserialize, Serialize};

use crate::codec::{nfs, portmap};
use crate::server::access::{Network, Squash};
use crate::server::folder::{Durability, FolderTree};
use crate::server::tree::Tree;
use crate::server::{ExportRules, Exported, Ports};

/// Callers that are taken where `limits` does not say.
const LIMITS: AdmissionLimits = AdmissionLimits::per_minute(64, 16, 120);

/// `[nfs]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether it runs. Default false: an address is all that a client needs.
    pub enabled: bool,
    /// Port of NFS and MOUNT. Default 2049.
    pub port: u16,
    /// Port of the portmapper; 0 is none. Default 111.
    pub portmapper_port: u16,
    /// Whether it answers datagrams, too. Default true.
    pub udp: bool,
    /// Folder of the key that makes file handles. Default: $XDG_STATE_HOME/inhost/nfs, else ~/.local/state/inhost/nfs.
    pub state: Option<PathBuf>,
    /// How many callers it takes. Default: 64 sessions, 16 of one peer, 120 connections of one peer in a minute.
    pub limits: Limits,
    /// The folders.
    pub export: Vec<ExportSection>,
}

impl Default for Section {
    fn default() -> Self {
        Section {
            enabled: false,
            port: nfs::PORT,
            portmapper_port: portmap::PORT,
            udp: true,
            state: None,
            limits: Limits::default(),
            export: Vec::new(),
        }
    }
}

/// `[[nfs.export]]`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ExportSection {
    /// The path under which clients mount it, such as "/files".
    pub path: String,
    /// The folder.
    pub root: PathBuf,
    /// Addresses and networks that may mount it: "10.9.0.0/16", "fd00::1", or "*" for all. Default: none.
    pub clients: Vec<String>,
    /// Access rights: "read" or "write". Default "read".
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["read", "write"])))]
    pub rights: String,
    /// Which users of clients become the anonymous user: "all", "root" or "none". A host that is not the superuser has
    /// all files for itself, so all users become it. Default "all".
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["all", "root", "none"])))]
    pub squash: String,
    /// User number of the anonymous user. Default: that of the host, or 65534 for the superuser.
    pub user: Option<u32>,
    /// Group number of the anonymous user. Default: as for the user.
    pub group: Option<u32>,
    /// Whether clients must come from a port below 1024, as only a superuser can. Default false.
    pub reserved_port: bool,
    /// Whether changes are on the disk before they are answered, as RFC 1813 asks. Without, creating many files is
    /// faster, and a power failure may lose them. Default true.
    pub sync: bool,
}

impl Default for ExportSection {
    fn default() -> Self {
        ExportSection {
            path: String::new(),
            root: PathBuf::new(),
            clients: Vec::new(),
            rights: "read".into(),
            squash: "all".into(),
            user: None,
            group: None,
            reserved_port: false,
            sync: true,
        }
    }
}

/// User and group of callers who are nobody in particular, if only one of both is configured.
const NOBODY: u32 = 65_534;

impl ExportSection {
    fn rules(&self) -> Result<ExportRules, Problem> {
        let is_path =
            self.path.starts_with('/') && !self.path.contains(['\0', '\n']) && self.path.len() < 1024;
        if !is_path {
            return Err(Problem::setting("nfs.export.path", &self.path, "give a path such as \"/files\""));
        }
        let network = |text: &String| {
            text.parse::<Network>().map_err(|why| Problem::setting("nfs.export.clients", text, why))
        };
        let is_writable = match &*self.rights {
            "read" => false,
            "write" => true,
            other => {
                return Err(Problem::setting("nfs.export.rights", other, "give \"read\" or \"write\""));
            }
        };
        let squash = match &*self.squash {
            "all" => Squash::All,
            "root" => Squash::Root,
            "none" => Squash::None,
            other => {
                let expected = "give \"all\", \"root\" or \"none\"";
                return Err(Problem::setting("nfs.export.squash", other, expected));
            }
        };
        let anonymous = match (self.user, self.group) {
            (None, None) => None,
            (user, group) => Some((user.unwrap_or(NOBODY), group.unwrap_or(NOBODY))),
        };
        Ok(ExportRules {
            path: self.path.clone(),
            networks: self.clients.iter().map(network).collect::<Result<_, _>>()?,
            is_writable,
            squash,
            anonymous,
            needs_reserved_port: self.reserved_port,
        })
    }

    fn tree(&self) -> Result<FolderTree, Problem> {
        let durability = if self.sync { Durability::Answered } else { Durability::Later };
        let root = &self.root;
        FolderTree::open(root, durability)
            .map_err(|e| Problem::operation(format!("nfs: cannot open the folder {}: {e}", root.display())))
    }
}

impl Section {
    /// Refuses a section that cannot be acted on.
    pub fn check(&self) -> Result<(), Problem> {
        self.limits()?;
        let mut paths: Vec<_> = self.export.iter().map(|export| export.path.trim_end_matches('/')).collect();
        paths.sort_unstable();
        if let Some(twice) = paths.windows(2).find(|two| two[0] == two[1]) {
            return Err(Problem::setting("nfs.export.path", twice[0], "two exports have this path"));
        }
        if self.port == 0 || self.port == self.portmapper_port {
            return Err(Problem::setting("nfs.port", self.port, "give a port of its own"));
        }
        if self.enabled && self.export.is_empty() {
            return Err(Problem::usage("nfs.export: name a folder that is exported"));
        }
        self.export.iter().try_for_each(|export| export.rules().map(drop))
    }
    /// The exports, opened.
    pub(super) fn exports(&self) -> Result<Vec<Exported>, Problem> {
        let open = |export: &ExportSection| {
            let tree: Arc<dyn Tree> = Arc::new(export.tree()?);
            Ok((export.rules()?, tree))
        };
        self.export.iter().map(open).collect()
    }
    /// The file of the key that makes handles.
    pub(super) fn key_file(&self) -> PathBuf {
        self.state.clone().unwrap_or_else(|| state_folder("nfs")).join("handles.key")
    }
    pub(super) fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or("nfs", LIMITS)
    }
    pub(super) fn ports(&self) -> Ports {
        Ports { files: self.port, portmapper: self.portmapper_port, has_datagrams: self.udp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_is_right() {
        #[derive(Deserialize)]
        struct File {
            nfs: Section,
        }
        let page = include_str!("../../README.md");
        let example = page.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
        let section = |text: &str| toml::from_str::<File>(text).unwrap().nfs;
        let shown = section(example);
        let [export] = shown.export.as_slice() else { panic!("one export is shown") };
        let own = ExportSection {
            path: export.path.clone(),
            root: export.root.clone(),
            clients: export.clients.clone(),
            ..ExportSection::default()
        };
        assert_eq!(*export, own, "what stands there is the default");
        assert_eq!(Section { export: Vec::new(), ..shown.clone() }, Section::default());
        let all: String =
            example.lines().map(|line| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n").collect();
        let all = section(&all);
        assert!(all.limits != Limits::default() && all.limits().unwrap() == LIMITS);
        assert!(all.state.is_some() && all.export[0].user.is_some() && all.check().is_ok());
    }

    #[test]
    fn a_section_that_cannot_be_acted_on_is_refused() {
        let export = ExportSection { path: "/files".into(), root: "/tmp".into(), ..ExportSection::default() };
        let with =
            |export: ExportSection| Section { enabled: true, export: vec![export], ..Section::default() };
        assert!(Section::default().check().is_ok() && with(export.clone()).check().is_ok());
        let why = |section: Section| section.check().unwrap_err().to_string();
        assert!(why(Section { enabled: true, ..Section::default() }).contains("nfs.export"));
        let of = |change: &dyn Fn(&mut ExportSection)| {
            let mut changed = export.clone();
            change(&mut changed);
            why(with(changed))
        };
        assert!(of(&|e| e.path = "files".into()).contains("nfs.export.path"));
        assert!(of(&|e| e.rights = "all".into()).contains("nfs.export.rights"));
        assert!(of(&|e| e.squash = "some".into()).contains("nfs.export.squash"));
        assert!(of(&|e| e.clients = vec!["host".into()]).contains("nfs.export.clients"));
        assert!(why(Section { port: 111, ..Section::default() }).contains("nfs.port"));
        let twice = Section { export: vec![export.clone(), export.clone()], ..Section::default() };
        assert!(why(twice).contains("two exports"));
        let one = ExportSection { user: Some(7), ..export };
        assert_eq!(one.rules().unwrap().anonymous, Some((7, NOBODY)));
    }
}
