//! Configuration of a host's IP.

use crate::forward::Forwarding;
use crate::interface::DEFAULT_HOP_LIMIT;
use crate::output::limits::ErrorPace;
use inhost_base::Duration;

/// Configuration of a host's IP. Begin with [`IpConfig::default`] or [`IpConfig::linux`].
///
/// ```
/// use inhost_ip::{Forwarding, IpConfig};
/// let mut config = IpConfig::default();
/// config.forwarding = Some(Forwarding::default());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct IpConfig {
    /// The secret behind stable addresses (RFC 7217 §5). `None`, the default: drawn anew, so that the addresses are
    /// others after every start of the host, unless its seed is the same.
    pub stable_secret: Option<[u8; 16]>,
    /// Hops that packets may take where neither a transport nor a router says otherwise; at least 1. Default: 64.
    // spec: RFC1122 3.2.1.7-4
    pub hop_limit: u8,
    /// Whether source-routed datagrams are accepted, and answered along the reversed route (RFC 1122 §3.2.1.8).
    /// Default: no, as RFC 7126 §4.3 advises. Cost: any host named as a hop can answer for the source's address.
    pub accept_source_routes: bool,
    /// Whether our address and our time are written into options that record routes and times (RFC 791 §3.1), and an
    /// echo or timestamp reply repeats them. Default: no; they are ignored then.
    pub record_options: bool,
    /// Whether an ICMP timestamp request is answered (RFC 1122 §3.2.2.8); see [`crate::Ip::set_time_of_day`]. Default: yes.
    pub answer_timestamps: bool,
    /// Whether an ICMP echo request to a broadcast address or to an IPv4 group is answered, within the rate limit of
    /// ICMP errors (RFC 1122 §3.2.2.6). Default: no. Cost: a forged source address is flooded by every host that
    /// answers.
    pub answer_broadcast_echoes: bool,
    /// How many ICMP errors one destination gets, beside the limit of the whole host. `None`, the default: as many as
    /// that allows.
    pub errors_each: Option<ErrorPace>,
    /// Whether the ICMP errors of a host have the precedence of routers' over IPv4, as on Linux. Default: no (RFC 1122
    /// §3.2.2).
    pub errors_have_precedence: bool,
    /// Forwarding, which makes the host a router. Default: `None`, a host that forwards nothing (RFC 1122 §3.1 (a)).
    pub forwarding: Option<Forwarding>,
}

impl Default for IpConfig {
    fn default() -> Self {
        IpConfig {
            stable_secret: None,
            hop_limit: DEFAULT_HOP_LIMIT,
            accept_source_routes: false,
            record_options: false,
            answer_timestamps: true,
            answer_broadcast_echoes: false,
            errors_each: None,
            errors_have_precedence: false,
            forwarding: None,
        }
    }
}

impl IpConfig {
    /// As a current Linux with default settings.
    pub fn linux() -> Self {
        IpConfig {
            // XRLIM_BURST_FACTOR, net.ipv4.icmp_ratelimit and net.ipv6.icmp.ratelimit.
            errors_each: Some(ErrorPace {
                burst: 6,
                interval_v4: Duration::from_secs(1),
                interval_v6: Duration::from_millis(100),
            }),
            errors_have_precedence: true,
            ..IpConfig::default()
        }
    }
}
