//! The TFTP server as a service of a host: its section, its folder, its log.

use std::path::PathBuf;
use std::rc::Rc;

use inhost_base::Duration;
use inhost_common::service::{
    Description, Doors, HostFiles, Problem, Reach, Service, ServiceContext, ServiceSession, size_bytes,
};
use inhost_common::storage::{Folder, UnixTime};
use inhost_common::{Cleaner, Transport};
use serde::{Deserialize, Serialize};
use tracing::info;

use crate::driver::{Server, ServerConfig, ServerEvent, serve};
use crate::{BLOCK_BYTES_LIMITS, Limits, Rights, Rollover, Settings, TransferLimits, WINDOW_LIMIT};

/// How long an unfinished upload stays untouched before a start of the server removes it: nobody else may be writing it.
const UNFINISHED_TIME: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// `[tftp]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether it runs. Default false: it shows files to anybody.
    pub enabled: bool,
    /// Its port. Default 69.
    pub port: u16,
    /// The folder that is served, and all that is reached.
    pub root: Option<PathBuf>,
    /// Access rights of anonymous clients: "read", "create" new files, or "write" over others too. Default "read".
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["read", "create", "write"])))]
    pub rights: String,
    /// Transfers at a time. Default 64.
    pub transfers: usize,
    /// Transfers of one address at a time. Default 8.
    pub transfers_per_client: usize,
    /// The largest block that is granted. Default 65464; 1468 keeps blocks whole on an Ethernet.
    pub block_size: u16,
    /// The largest window that is granted, in blocks. Default 64.
    pub window: u16,
    /// Largest upload. Default "1G".
    pub upload: String,
    /// Seconds without a word after which a transfer is given up. Default 30.
    pub give_up_after_s: u64,
    /// Block number after 65535 if not negotiated: 0 or 1. Default 0.
    #[cfg_attr(feature = "schema", schemars(range(max = 1)))]
    pub rollover: u8,
}

impl Default for Section {
    fn default() -> Self {
        Section {
            enabled: false,
            port: 69,
            root: None,
            rights: "read".into(),
            transfers: 64,
            transfers_per_client: 8,
            block_size: BLOCK_BYTES_LIMITS.1,
            window: 64,
            upload: "1G".into(),
            give_up_after_s: 30,
            rollover: 0,
        }
    }
}

impl Section {
    /// Configuration of the server. Fails on invalid values.
    pub fn server(&self) -> Result<ServerConfig, Problem> {
        let rights = match &*self.rights {
            "read" => Rights::Read,
            "create" => Rights::Create,
            "write" => Rights::Write,
            other => {
                let choice = "give \"read\", \"create\" or \"write\"";
                return Err(Problem::setting("tftp.rights", other, choice));
            }
        };
        let between = |key: &str, value: u16, (least, most): (u16, u16)| match (least..=most).contains(&value)
        {
            true => Ok(value),
            false => {
                Err(Problem::setting(&format!("tftp.{key}"), value, format_args!("give {least} to {most}")))
            }
        };
        let Some(size_limit_bytes) = size_bytes(&self.upload) else {
            return Err(Problem::setting("tftp.upload", &self.upload, "give a number with K, M or G"));
        };
        // Zero is what every sender counts on to; a receiver only needs the unusual value.
        let rollover = match self.rollover {
            0 => None,
            1 => Some(Rollover::ToOne),
            other => return Err(Problem::setting("tftp.rollover", other, "give 0 or 1")),
        };
        if self.enabled && self.root.is_none() {
            return Err(Problem::usage("tftp.root: name the folder that is served"));
        }
        let give_up_after = Duration::from_secs(self.give_up_after_s.max(1));
        Ok(ServerConfig {
            transfers: TransferLimits {
                transfers: self.transfers,
                transfers_per_client: self.transfers_per_client,
            },
            rights,
            limits: Limits {
                block_size: between("block_size", self.block_size, BLOCK_BYTES_LIMITS)?,
                window: between("window", self.window, (1, WINDOW_LIMIT))?,
            },
            settings: Settings {
                give_up_after,
                rollover,
                size_limit_bytes: size_limit_bytes as u64,
                ..Settings::default()
            },
        })
    }
}

/// The running server.
pub struct Tftp {
    server: Server,
    port: u16,
}

impl Service for Tftp {
    const NAME: &'static str = "tftp";
    type Section = Section;
    type Prepared = Folder;

    fn check(section: &Section) -> Result<(), Problem> {
        section.server().map(drop)
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(section: &Section, _: &HostFiles) -> Result<Folder, Problem> {
        let root = section.root.as_deref().ok_or_else(|| Problem::usage("tftp.root: name a folder"))?;
        Folder::open(root)
            .map_err(|e| Problem::operation(format!("tftp: cannot open the folder {}: {e}", root.display())))
    }
    fn start(section: &Section, folder: Folder, context: &ServiceContext) -> Result<Tftp, Problem> {
        let port = section.port;
        let (host, callers) = (&context.host, context.callers.clone());
        if section.rights != "read" {
            // What a host that was killed left there; nobody can go on with it.
            let written_before = UnixTime::since_1970((context.unix_time)().saturating_sub(UNFINISHED_TIME));
            host.spawn(folder.expire(written_before)).detach();
        }
        let server = serve(host, port, Rc::new(folder), section.server()?, callers, log)?;
        Ok(Tftp { server, port })
    }
    fn reload(&self, section: &Section, folder: Folder) -> Result<(), Problem> {
        self.server.change(Rc::new(folder), section.server()?);
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        (!matches!(key, "enabled" | "port")).then_some("for new transfers")
    }
    fn describe(&self) -> Description {
        let curl = |at| format!("curl tftp://{at}/FILE");
        Description {
            summary: format!("port {} (UDP)", self.port),
            reach: vec![Reach::new(Transport::Udp, self.port, "fetch a file", curl)],
            notice: None,
        }
    }
    fn doors(&self) -> &Doors {
        self.server.doors()
    }
    fn sessions(&self) -> Vec<ServiceSession> {
        let session =
            |(peer, since)| ServiceSession { service: Self::NAME, number: None, peer, user: None, since };
        self.server.callers().into_iter().map(session).collect()
    }
}

/// One line of the log for each event.
fn log(event: ServerEvent<'_>) {
    match event {
        ServerEvent::Refused { peer, why } => info!(target: "tftp", %peer, "refused: {why}"),
        ServerEvent::Ended { peer, request, outcome } => {
            let what = if request.is_write { "write" } else { "read" };
            let name = Cleaner::line(request.name.as_bytes());
            match outcome {
                Ok(summary) => {
                    info!(target: "tftp", %peer, name, bytes = summary.file_bytes, "{what}")
                }
                Err(why) => info!(target: "tftp", %peer, name, "{what} failed: {why}"),
            }
        }
    }
}
