//! The `[tcp]` section: how every connection of the host behaves.

use crate::failure::Failure;
use inhost_stack::{CongestionChoice, EcnMode, KeepAlive, PathMtuProbing, TcpConfig as Config};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Absent keys take the profile's values.
#[derive(Deserialize, Serialize, JsonSchema, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Tcp {
    /// Profile where the RFCs and practice differ. Default "rfc".
    pub profile: Profile,
    /// Congestion control: "cubic" or "newreno".
    pub congestion: Option<Congestion>,
    /// Explicit congestion notification: "off", "accept" or "request".
    pub ecn: Option<Ecn>,
    /// Whether segments are spaced over the round trip.
    pub pacing: Option<bool>,
    /// Search for the path's MTU by probes: "off", "black-holes" or "always".
    #[serde(rename = "path_mtu_probing")]
    pub path_mtu_probing: Option<Probing>,
    /// The most that a connection's send buffer grows to, such as "4M".
    #[serde(rename = "send_buffer")]
    pub send_buffer: Option<String>,
    /// The most memory that a connection's received data may pin, such as "8M".
    #[serde(rename = "receive_buffer")]
    pub receive_buffer: Option<String>,
    /// Seconds after which an idle peer is probed; 0 is never.
    #[serde(rename = "keep_alive_s")]
    pub keep_alive_s: Option<u64>,
}

/// A named set of choices.
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The RFCs.
    #[default]
    Rfc,
    /// As a current Linux with default settings.
    Linux,
}

/// Congestion control.
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// RFC 9438.
    Cubic,
    /// RFC 5681 and 6582.
    NewReno,
}

/// Explicit congestion notification (RFC 3168).
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Ecn {
    /// Never.
    Off,
    /// When the peer asks.
    Accept,
    /// Our calls ask.
    Request,
}

/// Probing for the path's MTU (RFC 4821).
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Probing {
    /// Never.
    Off,
    /// When full segments keep getting lost.
    BlackHoles,
    /// From the beginning.
    Always,
}

impl Tcp {
    /// What connections begin with.
    pub fn connections(&self) -> Result<Config, Failure> {
        // A new key must be decided on here.
        let Tcp {
            profile,
            congestion,
            ecn,
            pacing,
            path_mtu_probing,
            send_buffer,
            receive_buffer,
            keep_alive_s,
        } = self;
        let mut config = match profile {
            Profile::Rfc => Config::rfc(),
            Profile::Linux => Config::linux(),
        };
        match congestion {
            Some(Congestion::Cubic) => config.congestion = CongestionChoice::Cubic,
            Some(Congestion::NewReno) => config.congestion = CongestionChoice::NewReno,
            None => {}
        }
        config.ecn = match ecn {
            Some(Ecn::Off) => EcnMode::Off,
            Some(Ecn::Accept) => EcnMode::Accept,
            Some(Ecn::Request) => EcnMode::Request,
            None => config.ecn,
        };
        config.path_mtu_probing = match path_mtu_probing {
            Some(Probing::Off) => PathMtuProbing::Off,
            Some(Probing::BlackHoles) => PathMtuProbing::BlackHoles,
            Some(Probing::Always) => PathMtuProbing::Always,
            None => config.path_mtu_probing,
        };
        config.pacing = pacing.unwrap_or(config.pacing);
        if let Some(text) = send_buffer {
            config.send_buffer_limit_bytes = buffer("tcp.send_buffer", text)?;
            config.send_buffer_initial_bytes =
                config.send_buffer_initial_bytes.min(config.send_buffer_limit_bytes);
        }
        if let Some(text) = receive_buffer {
            config.receive_buffer_limit_bytes = buffer("tcp.receive_buffer", text)?;
            config.receive_buffer_initial_bytes =
                config.receive_buffer_initial_bytes.min(config.receive_buffer_limit_bytes);
        }
        match keep_alive_s {
            Some(0) => config.keep_alive = None,
            Some(seconds) => {
                let idle = inhost_base::Duration::from_secs(*seconds);
                config.keep_alive = Some(KeepAlive { idle, ..KeepAlive::default() });
            }
            None => {}
        }
        Ok(config)
    }
}

/// Less than a few segments each way makes no connection.
const LEAST_BUFFER_BYTES: usize = 4 << 10;

fn buffer(key: &str, text: &str) -> Result<usize, Failure> {
    match super::size_bytes(text) {
        Some(bytes) if bytes >= LEAST_BUFFER_BYTES => Ok(bytes),
        _ => Err(Failure::setting(key, text, "give a number with K, M or G, at least 4K, such as 4M")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Tcp {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_section_changes_what_it_names() {
        let section = "profile = \"linux\"\ncongestion = \"newreno\"\necn = \"request\"\npacing = true\n\
                       path_mtu_probing = \"always\"\nsend_buffer = \"8K\"\nreceive_buffer = \"1M\"\n\
                       keep_alive_s = 30\n";
        let config = parsed(section).connections().unwrap();
        assert!(matches!(config.congestion, CongestionChoice::NewReno) && config.pacing);
        assert_eq!((config.ecn, config.path_mtu_probing), (EcnMode::Request, PathMtuProbing::Always));
        assert_eq!((config.send_buffer_limit_bytes, config.send_buffer_initial_bytes), (8 << 10, 8 << 10));
        assert_eq!(config.receive_buffer_limit_bytes, 1 << 20);
        assert_eq!(config.keep_alive.unwrap().idle, inhost_base::Duration::from_secs(30));
        assert_eq!(config.syn_retries, Config::linux().syn_retries);
        let plain = Tcp::default().connections().unwrap();
        assert_eq!(format!("{plain:?}"), format!("{:?}", Config::rfc()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let wrong = parsed("send_buffer = \"1\"").connections().unwrap_err();
        assert!(wrong.to_string().contains("tcp.send_buffer"), "{wrong}");
        assert!(toml::from_str::<Tcp>("profile = \"bsd\"").unwrap_err().to_string().contains("linux"));
    }
}
