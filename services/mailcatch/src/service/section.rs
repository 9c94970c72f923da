//! `[mail-catcher]` of `host.toml`.

use std::path::PathBuf;

use inhost_common::AdmissionLimits;
use inhost_common::service::{Limits, Problem, size_bytes};
use inhost_mail::server::{ServerConfig, TlsOffer};
use serde::{Deserialize, Serialize};

use crate::rules::{Rule, Rulebook, Script};
use crate::store::StoreLimits;

/// Callers that are taken where `limits` does not say.
const LIMITS: AdmissionLimits = AdmissionLimits::per_minute(64, 32, 6000);

/// `[mail-catcher]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether it runs. Default false: it takes every message and delivers none.
    pub enabled: bool,
    /// The port of SMTP. Default 25.
    pub port: u16,
    /// The port of the page. Default 80.
    pub web_port: u16,
    /// The name that the SMTP server gives itself. Default `localhost`.
    pub host_name: String,
    /// The most messages. Default 500.
    pub messages: usize,
    /// The most bytes of messages, such as "64M". Default "64M".
    pub bytes: String,
    /// The largest message. Default "25M".
    pub message_bytes: String,
    /// A folder that keeps messages, so that they survive. Default: they are kept in memory alone.
    pub folder: Option<PathBuf>,
    /// Ended sessions whose dialogues are kept. Default 100.
    pub sessions: usize,
    /// Rules at the start. Default none.
    pub rules: Vec<String>,
    /// A script of rules at the start, in the place of `rules`. Default none.
    pub script: Option<PathBuf>,
    /// Seed of what rules leave to chance. Default 0.
    pub seed: u64,
    /// A token that the page asks for. Default none.
    pub token: Option<String>,
    /// Names of the page, besides addresses and `localhost`. Default none.
    pub hosts: Vec<String>,
    /// A certificate for STARTTLS, PEM. Default: there is no STARTTLS.
    pub certificate: Option<PathBuf>,
    /// Its key, PEM.
    pub key: Option<PathBuf>,
    /// How many callers of SMTP it takes. Default: 64 sessions, 32 of one peer, 6000 connections of one peer in a minute.
    pub limits: Limits,
}

impl Default for Section {
    fn default() -> Self {
        Section {
            enabled: false,
            port: 25,
            web_port: 80,
            host_name: "localhost".into(),
            messages: 500,
            bytes: "64M".into(),
            message_bytes: "25M".into(),
            folder: None,
            sessions: 100,
            rules: Vec::new(),
            script: None,
            seed: 0,
            token: None,
            hosts: Vec::new(),
            certificate: None,
            key: None,
            limits: Limits::default(),
        }
    }
}

fn size(key: &str, text: &str) -> Result<usize, Problem> {
    let expected = "give a size such as 64M";
    size_bytes(text).ok_or_else(|| Problem::setting(&format!("mail-catcher.{key}"), text, expected))
}

impl Section {
    pub(super) fn check(&self) -> Result<(), Problem> {
        self.limits()?;
        let (store, message) = (self.store()?.bytes, self.message_bytes()?);
        if message > store {
            let expected = "give no more than mail-catcher.bytes";
            return Err(Problem::setting("mail-catcher.message_bytes", &self.message_bytes, expected));
        }
        if let Some(token) = &self.token
            && (token.is_empty()
                || !token.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-._~".contains(&octet)))
        {
            return Err(Problem::setting("mail-catcher.token", "(hidden)", "give letters, digits and -._~"));
        }
        if self.certificate.is_some() != self.key.is_some() {
            return Err(Problem::usage("[mail-catcher]: certificate and key are given together"));
        }
        self.rulebook(None).map(drop)
    }
    pub(super) fn store(&self) -> Result<StoreLimits, Problem> {
        Ok(StoreLimits { messages: self.messages, bytes: size("bytes", &self.bytes)? })
    }
    pub(super) fn message_bytes(&self) -> Result<usize, Problem> {
        size("message_bytes", &self.message_bytes)
    }
    pub(super) fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or("mail-catcher", LIMITS)
    }
    /// The rules at the start; `script` is what the file says.
    pub(super) fn rulebook(&self, script: Option<Script>) -> Result<Rulebook, Problem> {
        let mut book = Rulebook::new(self.seed);
        for text in &self.rules {
            let rule: Rule =
                text.parse().map_err(|error| Problem::setting("mail-catcher.rules", text, error))?;
            book.add(rule).ok_or_else(|| Problem::usage("mail-catcher.rules: there are too many"))?;
        }
        if let Some(script) = script {
            book.play(script);
        }
        Ok(book)
    }
    pub(super) fn server(&self) -> Result<ServerConfig, Problem> {
        let mut config = ServerConfig::default();
        config.host_name.clone_from(&self.host_name);
        config.message_bytes = self.message_bytes()? as u64;
        config.auth = true;
        config.auth_in_clear = true;
        if self.certificate.is_some() {
            config.tls = TlsOffer::Offered;
        }
        Ok(config)
    }
}
