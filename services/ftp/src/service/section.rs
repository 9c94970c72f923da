//! `[ftp]` of `host.toml`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use inhost_common::AdmissionLimits;
use inhost_common::service::{Limits, Problem, size_bytes};
use serde::{Deserialize, Serialize};

/// Less would hold a single large segment up.
const LEAST_UPLOAD_BYTES: usize = 64 << 10;

/// Callers that are taken where `limits` does not say.
const LIMITS: AdmissionLimits = AdmissionLimits::per_minute(256, 32, 240);

/// `[ftp]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether it runs. Default false: it shows files.
    pub enabled: bool,
    /// Its port. Default 21.
    pub port: u16,
    /// Folder that every user of `inhost user` without an entry in [`user`](Self::user) sees as the root; without it
    /// only those with an entry may log in.
    pub root: Option<PathBuf>,
    /// Access rights of those users: "read" or "write". Default "read".
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["read", "write"])))]
    pub rights: String,
    /// Users with a root, rights, quota and rate of their own.
    pub user: Vec<FtpUser>,
    /// Folder that anybody may read who logs in as `anonymous`. Default: nobody may.
    pub anonymous: Option<PathBuf>,
    /// Certificate chain and key, in PEM; with them AUTH TLS is offered.
    pub certificate: Option<PathBuf>,
    /// See `certificate`.
    pub key: Option<PathBuf>,
    /// "offered" or "required". Default "offered" where there is a certificate.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["offered", "required"])))]
    pub tls: String,
    /// Port at which TLS comes first, such as 990; 0 is none. Default 0.
    pub implicit_port: u16,
    /// Whether encrypted data connections have to resume their control connection's session, or another one of the same
    /// user. Default true; false for clients that cannot, such as aioftp and C-Kermit.
    pub resumption: bool,
    /// Ports of passive data connections, such as "50000-50099". Default: any.
    pub passive_ports: Option<String>,
    /// Address announced by PASV, if clients reach this host at another one, behind a NAT or a forward.
    pub passive_address: Option<std::net::Ipv4Addr>,
    /// Whether logged-in users may have data sent to other hosts. Default false.
    pub third_party: bool,
    /// How many callers it takes. Default: 256 sessions, 32 of one peer, 240 connections of one peer in a minute.
    pub limits: Limits,
    /// Minutes without a command after which a session ends. Default 5.
    pub idle_min: u64,
    /// Days that an unfinished upload is kept after the last octet of it came; 0 is for ever. Default 7.
    pub partial_days: u64,
    /// Receive buffer of one upload, such as "64M" for far clients with fast lines; the window is half of it. Default
    /// "16M".
    pub upload_memory: String,
}

/// One user of the FTP server.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FtpUser {
    /// The name, as in `inhost user`.
    pub name: String,
    /// The folder that is this user's root.
    pub root: PathBuf,
    /// "read" or "write". Default "write".
    #[serde(default = "write")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["read", "write"])))]
    pub rights: String,
    /// Quota of all files below the root, such as "10G". Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<String>,
    /// Data a second, such as "2M". Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Account that ACCT must give after the password. Default: none is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

fn write() -> String {
    "write".into()
}

impl Default for Section {
    fn default() -> Self {
        Section {
            enabled: false,
            port: 21,
            root: None,
            rights: "read".into(),
            user: Vec::new(),
            anonymous: None,
            certificate: None,
            key: None,
            tls: "offered".into(),
            implicit_port: 0,
            resumption: true,
            passive_ports: None,
            passive_address: None,
            third_party: false,
            limits: Limits::default(),
            idle_min: 5,
            partial_days: 7,
            upload_memory: "16M".into(),
        }
    }
}

impl Section {
    /// How many callers it takes.
    pub fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or("ftp", LIMITS)
    }
    /// The range of `passive_ports`.
    pub fn ports(&self) -> Result<Option<RangeInclusive<u16>>, Problem> {
        let Some(text) = &self.passive_ports else { return Ok(None) };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(Some(first..=last)),
            _ => Err(Problem::setting("ftp.passive_ports", text, "give two ports, such as \"50000-50099\"")),
        }
    }
    /// Whether TLS is required; a certificate needs its key.
    pub fn tls_required(&self) -> Result<bool, Problem> {
        if self.certificate.is_some() != self.key.is_some() {
            return Err(Problem::usage("ftp.certificate and ftp.key: give both or neither"));
        }
        match (&*self.tls, &self.certificate) {
            ("offered", None) if self.implicit_port == 0 => Ok(false),
            ("offered", Some(_)) => Ok(false),
            ("required", Some(_)) => Ok(true),
            ("offered" | "required", None) => {
                Err(Problem::setting("ftp.tls", &self.tls, "TLS needs ftp.certificate and ftp.key"))
            }
            (other, _) => Err(Problem::setting("ftp.tls", other, "give \"offered\" or \"required\"")),
        }
    }
    /// Receive buffer of one upload.
    pub fn upload_bytes(&self) -> Result<usize, Problem> {
        let text = &self.upload_memory;
        match size_bytes(text) {
            Some(bytes) if bytes >= LEAST_UPLOAD_BYTES => Ok(bytes),
            _ => Err(Problem::setting("ftp.upload_memory", text, "give 64K or more, such as \"16M\"")),
        }
    }
    /// Refuses what cannot be acted on.
    pub fn check(&self) -> Result<(), Problem> {
        self.limits()?;
        self.ports()?;
        self.upload_bytes()?;
        self.tls_required()?;
        may_write("ftp.rights", &self.rights)?;
        for user in &self.user {
            may_write("ftp.user.rights", &user.rights)?;
            user.quota_bytes()?;
            user.rate_bytes()?;
        }
        Ok(())
    }
}

impl FtpUser {
    /// The quota in bytes.
    pub fn quota_bytes(&self) -> Result<Option<u64>, Problem> {
        size("ftp.user.quota", self.quota.as_deref())
    }
    /// The rate in bytes a second.
    pub fn rate_bytes(&self) -> Result<Option<u64>, Problem> {
        size("ftp.user.rate", self.rate.as_deref())
    }
}

/// Whether the rights let somebody write.
pub fn may_write(key: &str, rights: &str) -> Result<bool, Problem> {
    match rights {
        "read" => Ok(false),
        "write" => Ok(true),
        _ => Err(Problem::setting(key, rights, "give \"read\" or \"write\"")),
    }
}

fn size(key: &str, text: Option<&str>) -> Result<Option<u64>, Problem> {
    let Some(text) = text else { return Ok(None) };
    match size_bytes(text) {
        Some(bytes) if bytes > 0 => Ok(Some(bytes as u64)),
        _ => Err(Problem::setting(key, text, "give a number with K, M or G, such as \"10G\"")),
    }
}
