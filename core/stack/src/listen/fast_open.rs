//! TCP Fast Open (RFC 7413): cookies granted, cookies received, and paths on which it does not work.

use crate::demux::Name;
use crate::options::FastOpenConfig;
use crate::tcp::TcpSocket;
use alloc::collections::BTreeMap;
use inhost_base::{Duration, Instant, IpAddr, Random, SipKey};
use inhost_tcp::{ConnectionError, FastOpenAnswer, FastOpenState, Open};
use inhost_wire::tcp::FastOpenCookie;

/// After so many SYNs with the option that had to be sent again a destination is called without it for a while.
const LOSSES_FOR_PAUSE: u8 = 2;
/// Most doublings of a pause.
const MOST_DOUBLINGS: u8 = 6;

/// The Fast Open state of the host.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct FastOpen {
    config: FastOpenConfig,
    key: SipKey,
    previous: Option<SipKey>,
    /// Never, with a key that was given.
    rotates_at: Instant,
    destinations: BTreeMap<IpAddr, Destination>,
    /// No SYN bears data before that.
    paused_until: Instant,
    pauses: u8,
}

/// The Fast Open state of one destination.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Destination {
    cookie: FastOpenCookie,
    experimental: bool,
    /// Asked in the form of the experiment, too, it gave no cookie.
    experiment_failed: bool,
    mss: u16,
    losses: u8,
    lost_at: Instant,
    used_at: Instant,
}

impl Destination {
    fn unknown(now: Instant) -> Destination {
        Destination { lost_at: now, used_at: now, ..Destination::default() }
    }
    /// A SYN with the option had to be sent again.
    fn lose(&mut self, now: Instant) {
        self.losses = self.losses.saturating_add(1);
        self.lost_at = now;
    }
}

/// The decision of a listener about a SYN.
#[derive(Default)]
pub(crate) struct Verdict {
    /// Its data is taken.
    pub(crate) accepts: bool,
    /// The SYN and ACK gives this cookie.
    pub(crate) grants: Option<(FastOpenCookie, bool)>,
}

impl FastOpen {
    /// Forgets every cookie that other hosts gave, and which of them do not take data with a SYN.
    pub(crate) fn forget_destinations(&mut self) {
        self.destinations.clear();
    }
    /// Changes the key of the cookies that are given away. Cookies of `previous` hold, too, and no others.
    pub(crate) fn set_keys(&mut self, key: [u8; 16], previous: Option<[u8; 16]>) {
        self.key = key_of(key);
        self.previous = previous.map(key_of);
        self.rotates_at = Instant::FAR_FUTURE;
    }
    pub(crate) fn new(config: &FastOpenConfig, random: &mut Random, now: Instant) -> FastOpen {
        let (key, rotates_at) = match config.key {
            Some(key) => (key_of(key), Instant::FAR_FUTURE),
            None => (random.private_key(), now + config.key_life),
        };
        FastOpen {
            config: config.clone(),
            key,
            previous: None,
            rotates_at,
            destinations: BTreeMap::new(),
            paused_until: now,
            pauses: 0,
        }
    }
    /// Gives a fork a key of its own, unless the key was given.
    #[cfg(feature = "freeze")]
    pub(crate) fn reseed(&mut self, random: &mut Random, now: Instant) {
        if self.rotates_at != Instant::FAR_FUTURE {
            (self.key, self.previous) = (random.private_key(), None);
            self.rotates_at = now + self.config.key_life;
        }
    }
    fn rotate(&mut self, random: &mut Random, now: Instant) {
        if self.rotates_at <= now {
            // Cookies older than two lives hold no more.
            let missed = self.rotates_at + self.config.key_life <= now;
            let old = core::mem::replace(&mut self.key, random.private_key());
            self.previous = (!missed).then_some(old);
            self.rotates_at = now + self.config.key_life;
        }
    }
    /// The entry of a destination; the one that was not used for longest makes room.
    fn destination(&mut self, remote: IpAddr, now: Instant) -> &mut Destination {
        let limit = self.config.destinations_limit.max(1);
        if !self.destinations.contains_key(&remote) && self.destinations.len() >= limit {
            let oldest = self.destinations.iter().min_by_key(|(_, known)| known.used_at);
            if let Some(oldest) = oldest.map(|(&remote, _)| remote) {
                self.destinations.remove(&oldest);
            }
        }
        self.destinations.entry(remote).or_insert(Destination::unknown(now))
    }

    /// Whether the cookie of a caller holds, and the current one for it.
    pub(crate) fn judge(
        &mut self,
        cookie: &FastOpenCookie,
        name: &Name,
        now: Instant,
        random: &mut Random,
    ) -> (bool, FastOpenCookie) {
        self.rotate(random, now);
        let current = cookie_for(&self.key, name);
        let holds_old = self.previous.is_some_and(|key| *cookie == cookie_for(&key, name));
        (*cookie == current || holds_old, current)
    }
    /// Prepares a call to `remote`, so that its SYN may bear data: with a cookie, or `without_cookie` where both sides have
    /// agreed on that outside of TCP. Without a cookie yet it asks for one.
    pub(crate) fn prepare(&mut self, open: &mut Open, remote: IpAddr, without_cookie: bool, now: Instant) {
        if now < self.paused_until {
            return;
        }
        if let Some(known) = self.destinations.get_mut(&remote) {
            known.used_at = now;
        }
        let known = self.destinations.get(&remote).copied().unwrap_or(Destination::unknown(now));
        let pause = doubled(self.config.destination_pause, known.losses);
        if known.losses >= LOSSES_FOR_PAUSE && now < known.lost_at + pause {
            return;
        }
        let mss = match known.mss {
            0 if self.config.assumes_path_mss => u16::MAX,
            0 => open.default_mss,
            mss => mss,
        };
        open.fast_open = (!without_cookie).then_some((known.cookie, known.experimental));
        open.syn_data_mss = if without_cookie || !known.cookie.is_empty() { mss } else { 0 };
    }
    /// Learns from the answer to a call of ours.
    pub(crate) fn learn(&mut self, remote: IpAddr, answer: &FastOpenAnswer, now: Instant) {
        let known = self.destination(remote, now);
        (known.mss, known.used_at) = (answer.peer_mss, now);
        if let Some(cookie) = answer.cookie {
            (known.cookie, known.experimental) = (cookie, answer.experimental);
        }
        if answer.syn_repeated {
            return known.lose(now);
        }
        // Asked in the form of the standard it did not understand: it is asked once in that of the experiment.
        if answer.cookie.is_none() && known.cookie.is_empty() && answer.asked {
            known.experiment_failed |= answer.experimental;
            known.experimental = !known.experiment_failed;
        }
        known.losses = 0;
    }
    /// Checks the end of a connection for signs of a middlebox that drops packets after data in a SYN (RFC 7413
    /// §4.1.3.1, §7.3). True when SYNs carry no data for a while because of it.
    pub(crate) fn decide_experiment(&mut self, flow: &TcpSocket, now: Instant) -> bool {
        let (remote, error) = (flow.remote().address, flow.connection().error());
        let ended = [ConnectionError::TimedOut, ConnectionError::Reset];
        let silent = error.is_some_and(|error| ended.contains(&error));
        match flow.connection().sender().fast_open() {
            FastOpenState::Requested | FastOpenState::DataSent
                if error == Some(ConnectionError::TimedOut) =>
            {
                self.destination(remote, now).lose(now);
            }
            FastOpenState::DataAcknowledged
                if silent && flow.connection().receiver().received_bytes() == 0 =>
            {
                let pause = doubled(self.config.black_hole_pause, self.pauses);
                self.paused_until = now + pause;
                self.pauses = self.pauses.saturating_add(1);
                return true;
            }
            FastOpenState::DataAcknowledged if error.is_none() => self.pauses = 0,
            _ => {}
        }
        false
    }
}

fn doubled(pause: Duration, times: u8) -> Duration {
    pause.times(1 << times.min(MOST_DOUBLINGS))
}
fn key_of(bytes: [u8; 16]) -> SipKey {
    let bits = u128::from_le_bytes(bytes);
    SipKey::from_halves(bits as u64, (bits >> 64) as u64)
}
/// The cookie of a pair of addresses: a keyed hash of eight bytes (RFC 7413 §4.1.2).
fn cookie_for(key: &SipKey, name: &Name) -> FastOpenCookie {
    let mut bytes = [0; 32];
    let hash = match (name.remote.address, name.local.address) {
        (IpAddr::V4(remote), IpAddr::V4(local)) => {
            bytes[..4].copy_from_slice(&remote.octets());
            bytes[4..8].copy_from_slice(&local.octets());
            key.hash(&bytes[..8])
        }
        (IpAddr::V6(remote), IpAddr::V6(local)) => {
            bytes[..16].copy_from_slice(&remote.octets());
            bytes[16..].copy_from_slice(&local.octets());
            key.hash(&bytes)
        }
        // Two ends of one connection are of one family.
        _ => 0,
    };
    FastOpenCookie::from_slice(&hash.to_le_bytes()).unwrap_or_default()
}
