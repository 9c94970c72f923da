//! Options that the application can change while a connection lives.

use crate::config::KeepAlive;
use crate::{Config, CongestionChoice, Connection, Environment};
use inhost_base::Duration;
use inhost_event::TcpState;

/// An option of a connection, with its new value: [`Connection::set`] takes it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConnectionOption {
    /// Nagle's algorithm. When it is disabled, held data is sent by the next [`Connection::transmit`].
    // spec: RFC9293 MUST-17
    Nagle(bool),
    /// TCP_CORK: holds segments that are not full back until it is disabled, or for
    /// [`Config::aggregation_delay`](crate::Config::aggregation_delay).
    Cork(bool),
    /// TCP_QUICKACK: the next acknowledgments are sent at once, or delayed again.
    QuickAcknowledgment(bool),
    /// Keep-alive probes: when, or none.
    // spec: RFC9293 MUST-24
    KeepAlive(Option<KeepAlive>),
    /// How long data may stay unacknowledged.
    // spec: RFC9293 MUST-21
    UserTimeout(Duration),
    /// Duration of FIN-WAIT-2 after the application has closed the socket. A timer that runs is restarted.
    FinWait2(Duration),
    /// Size of the send buffer in bytes, fixed from now on. Queued data stays.
    SendBufferLimit(usize),
    /// Size of the receive buffer in bytes, fixed from now on. The advertised window is not reduced; the window scale was
    /// chosen with the SYN.
    ReceiveBufferLimit(usize),
    /// WRITABLE only while fewer bytes than this are queued and not sent; `None` for no limit.
    NotSentLowWater(Option<usize>),
    /// Longest delay of an acknowledgment.
    AcknowledgmentDelay(Duration),
    /// Another congestion control, which begins with the present window.
    Congestion(CongestionChoice),
    /// Maximum sending rate in bytes per second; `None` for no limit.
    MaxPacingRate(Option<u64>),
    /// The largest payload of a segment that we send, and before the handshake the largest that we ask for.
    MaxSegment(u16),
    /// Retransmissions of our SYN before the attempt to connect ends.
    SynRetries(u8),
}

impl ConnectionOption {
    /// Changes the setting that it is about; false where it is of one connection alone, and has none.
    pub fn configure(&self, config: &mut Config) -> bool {
        match self {
            ConnectionOption::Nagle(on) => config.nagle = *on,
            ConnectionOption::Cork(_) | ConnectionOption::QuickAcknowledgment(_) => return false,
            ConnectionOption::KeepAlive(when) => config.keep_alive = *when,
            ConnectionOption::UserTimeout(timeout) => config.user_timeout = *timeout,
            ConnectionOption::FinWait2(wait) => config.fin_wait_2 = *wait,
            ConnectionOption::SendBufferLimit(bytes) => {
                (config.send_buffer_limit_bytes, config.send_buffer_initial_bytes) = (*bytes, *bytes);
            }
            ConnectionOption::ReceiveBufferLimit(bytes) => {
                (config.receive_buffer_limit_bytes, config.receive_buffer_initial_bytes) = (*bytes, *bytes);
            }
            ConnectionOption::NotSentLowWater(bytes) => {
                config.not_sent_low_water_bytes = bytes.unwrap_or(usize::MAX);
            }
            ConnectionOption::AcknowledgmentDelay(delay) => config.acknowledgment_delay = *delay,
            ConnectionOption::Congestion(choice) => config.congestion = choice.clone(),
            ConnectionOption::MaxPacingRate(rate) => config.max_pacing_rate_bytes_per_second = *rate,
            ConnectionOption::MaxSegment(bytes) => config.mss_limit_bytes = *bytes,
            ConnectionOption::SynRetries(retries) => config.syn_retries = *retries,
        }
        true
    }
}

impl Connection {
    /// Changes an option.
    pub fn set(&mut self, option: ConnectionOption, env: &mut Environment<'_>) {
        match option {
            ConnectionOption::Cork(on) => self.sender.cork(on),
            ConnectionOption::QuickAcknowledgment(on) => self.receiver.set_ack_timing(&self.common, on),
            _ => {
                option.configure(self.common.config_mut());
            }
        }
        match option {
            ConnectionOption::Nagle(false) => self.sender.override_nagle(),
            ConnectionOption::Cork(false) => return self.push(env),
            ConnectionOption::KeepAlive(_) => self.sender.probe_anew(),
            ConnectionOption::UserTimeout(_) if self.sender.timer().is_set() => {
                self.sender.arm_timer(&self.common, env.now());
            }
            ConnectionOption::FinWait2(fin_wait_2)
                if self.common.state() == TcpState::FinWait2 && self.common.linger_at().is_set() =>
            {
                self.common.linger_until(env.now() + fin_wait_2);
            }
            ConnectionOption::ReceiveBufferLimit(_) => self.receiver.consider_window_update(&self.common),
            ConnectionOption::Congestion(choice) => self.sender.choose_congestion(&choice),
            ConnectionOption::MaxSegment(bytes) => {
                let least = self.common.path_mss().min(bytes);
                return self.set_path_mtu_mss(least, env);
            }
            _ => {}
        }
        self.update(env);
    }
}
