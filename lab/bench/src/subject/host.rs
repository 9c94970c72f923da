//! The configuration of our own hosts: as `inhost serve` ships it, but for the windows that a measurement prescribes.

use inhost_stack::{StackConfig, TcpConfig};

/// The window of every stack where a measurement says so, in bytes.
pub const WINDOW_BYTES: usize = 256 << 10;

/// What a line of settings begins with.
pub const SHIPPED: &str = "CUBIC, pacing, SACK, timestamps, RACK-TLP, both ledgers; no recorder yet";

/// A host whose connections have windows of 256 KiB, no less and no more.
pub fn with_window() -> StackConfig {
    let mut tcp = TcpConfig::default();
    tcp.send_buffer_initial_bytes = WINDOW_BYTES;
    tcp.send_buffer_limit_bytes = WINDOW_BYTES;
    // The window offered is half of it.
    tcp.receive_buffer_initial_bytes = 2 * WINDOW_BYTES;
    tcp.receive_buffer_limit_bytes = 2 * WINDOW_BYTES;
    let mut config = StackConfig::default();
    config.tcp = tcp;
    config
}
