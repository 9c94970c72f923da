//! Router solicitation: when a host asks for routers, and how often (RFC 4861 §6.3.7).

use inhost_base::{Duration, Instant, Random};

// RFC 4861 §10.
const SOLICITATION_DELAY_MS: u32 = 1000;
const SOLICITATION_INTERVAL: Duration = Duration::from_secs(4);
const SOLICITATION_LIMIT: u8 = 3;

/// Looking for routers on one link.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Discovery {
    sent: u8,
    next_at: Instant,
    dhcpv6: bool,
}

impl Default for Discovery {
    fn default() -> Self {
        Discovery { sent: 0, next_at: Instant::FAR_FUTURE, dhcpv6: false }
    }
}

impl Discovery {
    /// Begins, after a random delay.
    // spec: RFC4861 6.3.7
    pub fn begin(&mut self, now: Instant, random: &mut Random) {
        self.sent = 0;
        self.next_at = now + Duration::from_millis(u64::from(random.public_below(SOLICITATION_DELAY_MS)));
    }
    /// When the next solicitation is due.
    pub fn deadline(&self) -> Instant {
        self.next_at
    }
    /// Whether a solicitation is due; one that is counts as sent.
    pub fn is_due(&mut self, now: Instant) -> bool {
        if self.next_at > now {
            return false;
        }
        self.sent += 1;
        let is_last = self.sent >= SOLICITATION_LIMIT;
        self.next_at = if is_last { Instant::FAR_FUTURE } else { now + SOLICITATION_INTERVAL };
        true
    }
    /// Whether a router has last said that configuration comes by DHCPv6.
    pub fn dhcpv6(&self) -> bool {
        self.dhcpv6
    }
    /// A router says so, or that it does not; whether that is news.
    pub fn set_dhcpv6(&mut self, dhcpv6: bool) -> bool {
        core::mem::replace(&mut self.dhcpv6, dhcpv6) != dhcpv6
    }
    /// A router has answered.
    pub fn end(&mut self) {
        if self.sent > 0 {
            self.next_at = Instant::FAR_FUTURE;
        }
    }
}
