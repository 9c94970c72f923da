//! `[tn3270]` of `host.toml`.

use std::path::PathBuf;

use inhost_base::Duration;
use inhost_common::AdmissionLimits;
use inhost_common::service::{Limits, Problem, size_bytes};
use serde::{Deserialize, Serialize};

use crate::codec::CodePage;
use crate::server::SessionConfig;

/// The port. 23 is Telnet's, which this host may have as well.
pub const PORT: u16 = 3270;

/// Callers that are taken where `limits` does not say.
const LIMITS: AdmissionLimits = AdmissionLimits::per_minute(32, 8, 60);

/// `[tn3270]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether it runs. Default false.
    pub enabled: bool,
    /// Its port; 0 is none. Default 3270.
    pub port: u16,
    /// Port at which TLS comes first, such as 992; 0 is none. Default 0.
    pub tls_port: u16,
    /// Certificate chain and key, in PEM, for that port.
    pub certificate: Option<PathBuf>,
    /// See `certificate`.
    pub key: Option<PathBuf>,
    /// The title of the menu. Default "INHOST".
    pub title: String,
    /// Text of NEWS.
    pub news: Option<PathBuf>,
    /// EBCDIC code page of the panels, such as "273" or "1047". Default "037".
    pub code_page: String,
    /// Whether TN3270E is offered. Default true; false for clients that do not understand a refusal.
    pub tn3270e: bool,
    /// Folder of the files that logged-on users see and transfer by IND$FILE. Default: there are no files.
    pub root: Option<PathBuf>,
    /// Access rights of those users: "read" or "write". Default "read".
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["read", "write"])))]
    pub rights: String,
    /// The largest file that is taken, such as "64M". Default "64M".
    pub upload: String,
    /// How many callers it takes, printers among them. Default: 32 sessions, 8 of one peer, 60 connections of one peer in a minute.
    pub limits: Limits,
    /// Minutes without a key after which a session ends; 0 is never. Default 30.
    pub idle_min: u64,
    /// Password attempts in one session. Default 3.
    pub attempts: u32,
}

impl Default for Section {
    fn default() -> Self {
        Section {
            enabled: false,
            port: PORT,
            tls_port: 0,
            certificate: None,
            key: None,
            title: "INHOST".to_owned(),
            news: None,
            code_page: "037".to_owned(),
            tn3270e: true,
            root: None,
            rights: "read".to_owned(),
            upload: "64M".to_owned(),
            limits: Limits::default(),
            idle_min: 30,
            attempts: 3,
        }
    }
}

impl Section {
    /// Refuses what cannot be acted on.
    pub(super) fn check(&self) -> Result<(), Problem> {
        self.limits()?;
        self.may_write()?;
        self.session()?;
        if self.port == 0 && self.tls_port == 0 {
            return Err(Problem::usage("tn3270: port and tls_port are both 0; give one of them"));
        }
        if self.tls_port != 0 && (self.certificate.is_none() || self.key.is_none()) {
            return Err(Problem::usage("tn3270.tls_port needs tn3270.certificate and tn3270.key"));
        }
        Ok(())
    }
    pub(super) fn may_write(&self) -> Result<bool, Problem> {
        match &*self.rights {
            "read" => Ok(false),
            "write" => Ok(true),
            other => Err(Problem::setting("tn3270.rights", other, "give \"read\" or \"write\"")),
        }
    }
    pub(super) fn session(&self) -> Result<SessionConfig, Problem> {
        let code_page: CodePage = self
            .code_page
            .parse()
            .map_err(|_| Problem::setting("tn3270.code_page", &self.code_page, "give \"037\" or \"1047\""))?;
        let upload_bytes = size_bytes(&self.upload)
            .ok_or_else(|| Problem::setting("tn3270.upload", &self.upload, "give a size such as \"64M\""))?;
        let mut config = SessionConfig::default();
        config.machine.has_tn3270e = self.tn3270e;
        config.code_page = code_page;
        config.upload_bytes = u64::try_from(upload_bytes).unwrap_or(u64::MAX);
        let idle_s = self.idle_min.saturating_mul(60);
        config.idle_time = (idle_s > 0).then(|| Duration::from_secs(idle_s));
        Ok(config)
    }
    pub(super) fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or("tn3270", LIMITS)
    }
}
