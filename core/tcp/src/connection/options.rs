//! What the application can ask of a connection while it lives.

use crate::config::KeepAlive;
use crate::flags::SenderFlags;
use crate::{Config, CongestionChoice, Connection, Environment};
use inhost_base::{Duration, Instant};
use inhost_event::TcpState;
use std::sync::Arc;

impl Connection {
    /// The connection's configuration.
    pub fn config(&self) -> &Config {
        &self.common.config
    }
    /// The same, as it is shared among connections that were not asked for anything of their own.
    pub fn shared_config(&self) -> &Arc<Config> {
        &self.common.config
    }
    /// Whether small segments are held back by the application's wish.
    pub fn is_corked(&self) -> bool {
        self.sender.flags.has(SenderFlags::CORKED)
    }
    /// Nagle's algorithm on or off. What it holds back goes with the next [`Connection::transmit`].
    // spec: RFC9293 MUST-17
    pub fn set_nagle(&mut self, on: bool, env: &mut Environment<'_>) {
        if !on
            && self.sender.space.next.precedes(self.sender.stream_end())
            && self.common.config.policy.push == crate::PushPlacement::WritesAndHalfWindows
        {
            // Linux lets go of whatever is held back.
            self.sender.flags.set(SenderFlags::OVERRIDE);
        }
        self.change(env, |config| config.nagle = on);
    }
    /// Keep-alive probes: when, or none.
    // spec: RFC9293 MUST-24
    pub fn set_keep_alive(&mut self, keep_alive: Option<KeepAlive>, env: &mut Environment<'_>) {
        self.sender.keep_alive_probes = 0;
        self.change(env, |config| config.keep_alive = keep_alive);
    }
    /// How long data may stay unacknowledged.
    // spec: RFC9293 MUST-21
    pub fn set_user_timeout(&mut self, user_timeout: Duration, env: &mut Environment<'_>) {
        self.change(env, |config| config.user_timeout = user_timeout);
        // Where the user time-out counts from a retransmission, the timer that runs is left alone.
        if !self.common.config.policy.user_timeout_from_retransmission
            && self.sender.retransmit_at != Instant::FAR_FUTURE
        {
            self.sender.arm_retransmission(&self.common, env.now);
        }
    }
    /// How long FIN-WAIT-2 lasts once nobody reads any more. Where that runs already, it begins anew.
    pub fn set_fin_wait_2(&mut self, fin_wait_2: Duration, env: &mut Environment<'_>) {
        if self.common.state == TcpState::FinWait2 && self.linger_at != Instant::FAR_FUTURE {
            self.linger_at = env.now + fin_wait_2;
        }
        self.change(env, |config| config.fin_wait_2 = fin_wait_2);
    }
    /// The send buffer's size, from now on fixed. What is queued stays.
    pub fn set_send_buffer_limit(&mut self, bytes: usize, env: &mut Environment<'_>) {
        self.change(env, |config| {
            (config.send_buffer_limit_bytes, config.send_buffer_initial_bytes) = (bytes, bytes);
        });
    }
    /// The receive buffer's size, from now on fixed. What was offered stays offered; the window scale was chosen with the SYN.
    pub fn set_receive_buffer_limit(&mut self, bytes: usize, env: &mut Environment<'_>) {
        self.change(env, |config| {
            (config.receive_buffer_limit_bytes, config.receive_buffer_initial_bytes) = (bytes, bytes);
        });
        self.receiver.consider_window_update(&self.common);
        self.settle(env);
    }
    /// Longest wait before data is acknowledged.
    pub fn set_acknowledgment_delay(&mut self, delay: Duration, env: &mut Environment<'_>) {
        self.change(env, |config| config.acknowledgment_delay = delay);
    }
    /// Another congestion control, from where the window stands.
    pub fn set_congestion(&mut self, choice: CongestionChoice, env: &mut Environment<'_>) {
        self.sender.congestion.choose(choice);
        self.change(env, |config| config.congestion = choice);
    }
    /// No segment leaves faster than this many bytes a second; `None` for no limit.
    pub fn set_max_pacing_rate(&mut self, bytes_per_second: Option<u64>, env: &mut Environment<'_>) {
        self.change(env, |config| config.max_pacing_rate_bytes_per_second = bytes_per_second);
    }
    /// WRITABLE only while fewer bytes than this are queued and not sent; `None` for no limit.
    pub fn set_not_sent_low_water(&mut self, bytes: Option<usize>, env: &mut Environment<'_>) {
        self.change(env, |config| config.not_sent_low_water_bytes = bytes.unwrap_or(usize::MAX));
    }
    /// The next acknowledgments leave at once, or wait for company again.
    pub fn set_quick_acknowledgment(&mut self, on: bool, env: &mut Environment<'_>) {
        self.receiver.set_ack_timing(&self.common, on);
        self.settle(env);
    }
    /// Holds segments that are not full back until `on` is false again, or for [`Config::aggregation_delay`].
    pub fn set_cork(&mut self, on: bool, env: &mut Environment<'_>) {
        self.sender.flags.put(SenderFlags::CORKED, on);
        if on { self.settle(env) } else { self.push(env) }
    }
    /// The largest payload that we send in a segment, and before the handshake the largest that we ask for.
    pub fn set_mss_limit(&mut self, bytes: u16, env: &mut Environment<'_>) {
        self.change(env, |config| config.mss_limit_bytes = bytes);
        let least = self.common.path_mss.min(bytes);
        self.set_path_mtu_mss(least, env);
    }
    /// Retransmissions of our SYN before the call is given up.
    pub fn set_syn_retries(&mut self, retries: u8, env: &mut Environment<'_>) {
        self.change(env, |config| config.syn_retries = retries);
    }
    fn change(&mut self, env: &mut Environment<'_>, change: impl FnOnce(&mut Config)) {
        change(Arc::make_mut(&mut self.common.config));
        self.settle(env);
    }
}
