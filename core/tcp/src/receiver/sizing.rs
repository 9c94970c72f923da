//! How large the receive buffer is: as large as the path needs, between the limits of the configuration (VPI §4.2, dynamic
//! right-sizing).

use super::Receiver;
use crate::Environment;
use crate::common::Common;
use crate::flags::ConnectionFlags;
use inhost_base::{Duration, Instant};
use inhost_buf::{Pool, Pressure};

/// Added to what a round trip brought, in segments: so that a flow that begins is not held back.
const HEADWAY_SEGMENTS: usize = 16;
/// Maximum share of the host's memory that one connection may advertise: one part in this number.
const SHARE_OF_POOL: usize = 4;

/// What the receiver measures.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Sizing {
    /// Memory that received data may pin; 0 for what the configuration begins with.
    receive_bytes: usize,
    /// When the round trip began in which `read_bytes` were read.
    round_at: Instant,
    read_bytes: usize,
    /// What the round before brought.
    before_bytes: usize,
    /// The round trip as the receiver sees it; zero when not measured.
    round_trip: Duration,
    /// When it is measured next.
    measure_at: Instant,
}

impl Sizing {
    /// The receiver's estimate of the round trip.
    pub fn round_trip(&self) -> Option<Duration> {
        (self.round_trip > Duration::ZERO).then_some(self.round_trip)
    }
}

/// A longer one is not a measure but an echo from long ago.
const MOST_ROUND_TRIP_MS: u32 = 10_000;

impl Receiver {
    /// The application read `bytes`. The amount read in a round trip shows the rate of the path: the window is twice
    /// that, and more while it grows, so that it never limits the sender.
    #[inline]
    pub fn size_receive_buffer(&mut self, common: &Common, bytes: usize, env: &mut Environment<'_>) {
        let round_trip = common.round_trip().smoothed();
        let segment = usize::from(self.space.segment_bytes());
        let (initial, limit) =
            (common.config().receive_buffer_initial_bytes, common.config().receive_buffer_limit_bytes);
        let Some(buffers) = &mut self.buffers else { return };
        let sizing = &mut buffers.sizing;
        sizing.read_bytes += bytes;
        let Some(round_trip) = sizing.round_trip().or(round_trip) else { return };
        if env.now().since(sizing.round_at) < round_trip {
            return;
        }
        if sizing.round_at > Instant::ZERO && sizing.read_bytes > sizing.before_bytes {
            let growth = sizing.read_bytes - sizing.before_bytes;
            let window = 2 * (sizing.read_bytes + growth) + HEADWAY_SEGMENTS * segment;
            // Half of memory is window.
            let most = limit.min((env.pool().limit_bytes() / SHARE_OF_POOL).max(initial));
            let wanted = (2 * window).min(most);
            if wanted > sizing.receive_bytes.max(initial) && env.pool().pressure() == Pressure::Plenty {
                sizing.receive_bytes = wanted;
            }
            sizing.before_bytes = sizing.read_bytes;
        }
        sizing.read_bytes = 0;
        sizing.round_at = env.now();
    }
    /// What memory received data may pin now.
    #[inline]
    pub fn receive_buffer_bytes(&self, common: &Common) -> usize {
        let sized = self.buffers.as_ref().map_or(0, |buffers| buffers.sizing.receive_bytes);
        sized
            .max(common.config().receive_buffer_initial_bytes)
            .min(common.config().receive_buffer_limit_bytes)
    }
    /// A full segment of data arrived: once a round trip, samples the round trip by the echoed timestamp.
    pub fn measure_as_receiver(&mut self, common: &Common, timestamps: Option<(u32, u32)>, now: Instant) {
        let Some(buffers) = &self.buffers else { return };
        if now < buffers.sizing.measure_at || !common.has(ConnectionFlags::TIMESTAMPS) {
            return;
        }
        let Some((_, echo)) = timestamps else { return };
        let elapsed_ms = common.timestamp(now).wrapping_sub(echo);
        if elapsed_ms > MOST_ROUND_TRIP_MS {
            return;
        }
        let sample = Duration::from_millis(u64::from(elapsed_ms.max(1)));
        let Some(buffers) = &mut self.buffers else { return };
        let sizing = &mut buffers.sizing;
        sizing.round_trip = match sizing.round_trip() {
            Some(known) => known - known.divided_by(8) + sample.divided_by(8),
            None => sample,
        };
        sizing.measure_at = now + sizing.round_trip;
    }
    /// The round trip as the receiver measures it.
    pub fn measured_round_trip(&self) -> Option<Duration> {
        self.buffers.as_deref().and_then(|buffers| buffers.sizing.round_trip())
    }
    pub fn shrink_into(&mut self, pool: &mut Pool) {
        if let Some(buffers) = &mut self.buffers {
            buffers.reassembly.shrink(pool);
            buffers.sizing = Sizing::default();
        }
    }
}
