//! TCP's options: RFC 9293 §3.1 (end, no-operation, MSS), RFC 7323 (window scale, timestamps),
//! RFC 2018 (selective acknowledgments), RFC 7413 (fast open).

use crate::Bounded;
use crate::cursor::{Reader, Writer};
use inhost_base::Sequence;

/// Most bytes of options in one segment.
pub const MAX_OPTIONS_BYTES: usize = 40;
/// Most blocks that one SACK option can hold.
pub const MAX_SACK_BLOCKS: usize = 4;
/// Longest fast-open cookie (RFC 7413 §4.1.1).
const MAX_COOKIE_BYTES: usize = 16;
/// Shortest fast-open cookie, other than the empty one that asks for a cookie.
const MIN_COOKIE_BYTES: usize = 4;

/// Bytes of timestamps alone, with two no-operations before them.
pub(crate) const TIMESTAMPS_BYTES: usize = 12;
/// The first bytes of the timestamps option (RFC 7323 appendix A).
const TIMESTAMPS_BEGIN: [u8; 4] = [NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10];
/// Bytes of the four options of most SYNs: MSS, SACK permitted, timestamps and window scale.
const USUAL_SYN_BYTES: usize = 20;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const FAST_OPEN: u8 = 34;
/// Options of experiments (RFC 6994).
const EXPERIMENT: u8 = 254;
/// The experiment that fast open was before it had a kind of its own (RFC 7413 §4.1.1, appendix).
const FAST_OPEN_EXPERIMENT: [u8; 2] = [0xf9, 0x89];

/// Whether a fast-open option's bytes can be a cookie, or the wish for one (RFC 7413 §4.1.1).
fn is_cookie(bytes: &[u8]) -> bool {
    matches!(bytes.len(), 0 | MIN_COOKIE_BYTES..=MAX_COOKIE_BYTES) && bytes.len().is_multiple_of(2)
}

/// The timestamps, where `list` is nothing but these in their usual place (RFC 7323 appendix A).
#[inline]
pub(crate) fn timestamps_alone(list: &[u8]) -> Option<(u32, u32)> {
    let list: &[u8; TIMESTAMPS_BYTES] = list.try_into().ok()?;
    let [begin, value, echo] = *list.as_chunks::<4>().0 else { return None };
    (begin == TIMESTAMPS_BEGIN).then(|| (u32::from_be_bytes(value), u32::from_be_bytes(echo)))
}
/// Writes what [`timestamps_alone`] reads; its words, added.
#[inline]
pub(crate) fn emit_timestamps_alone((value, echo): (u32, u32), place: &mut [u8; TIMESTAMPS_BYTES]) -> u64 {
    place[..4].copy_from_slice(&TIMESTAMPS_BEGIN);
    place[4..8].copy_from_slice(&value.to_be_bytes());
    place[8..].copy_from_slice(&echo.to_be_bytes());
    u64::from(u32::from_be_bytes(TIMESTAMPS_BEGIN)) + u64::from(value) + u64::from(echo)
}

/// Blocks received beyond the acknowledgment, each from its first byte to after its last: as numbers, or as other positions.
pub type SackBlocks<At = Sequence> = Bounded<(At, At), MAX_SACK_BLOCKS>;

/// A fast-open cookie: 4 to 16 bytes, an even number, or none, which asks for one.
pub type FastOpenCookie = Bounded<u8, MAX_COOKIE_BYTES>;

/// The options of a segment that mean something to this host.
///
/// ```
/// use inhost_wire::tcp::TcpOptions;
/// let options = TcpOptions { mss: Some(1460), sack_permitted: true, ..TcpOptions::NONE };
/// let mut bytes = [0; 40];
/// let length = options.emit(&mut bytes);
/// assert_eq!(TcpOptions::parse(&bytes[..length]), options);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct TcpOptions {
    /// Largest segment the sender takes, in bytes of payload. On a SYN only.
    pub mss: Option<u16>,
    /// Bits by which the sender's windows are shifted. On a SYN only. As received: RFC 7323 §2.3 reads
    /// more than 14 as 14.
    pub window_scale: Option<u8>,
    /// The sender understands SACK. On a SYN only.
    pub sack_permitted: bool,
    /// The sender's timestamp and its echo of the receiver's (TSval, TSecr).
    pub timestamps: Option<(u32, u32)>,
    /// Blocks received beyond the acknowledgment.
    pub sack: SackBlocks,
    /// A fast-open cookie, or the wish for one. On a SYN only.
    pub fast_open: Option<FastOpenCookie>,
    /// `fast_open` has the form of an experiment: kind 254 with the number 0xf989. False without `fast_open`.
    pub fast_open_experimental: bool,
}

impl TcpOptions {
    /// No options.
    pub const NONE: TcpOptions = TcpOptions {
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: SackBlocks::filled_with((Sequence(0), Sequence(0))),
        fast_open: None,
        fast_open_experimental: false,
    };

    /// Reads an option list. Unknown options are stepped over, options whose length does not suit their kind
    /// are left out, and after a length that makes no sense (below 2, or beyond the header) the rest is
    /// ignored. Of several of a kind the last counts.
    // spec: RFC9293 MUST-4 (end, no-operation and maximum segment size are understood)
    // spec: RFC9293 MUST-5 (whatever the segment's flags)
    // spec: RFC9293 MUST-64 (options may begin at any byte)
    #[inline]
    pub fn parse(list: &[u8]) -> Self {
        // The options of most segments.
        if let Some(timestamps) = timestamps_alone(list) {
            return TcpOptions { timestamps: Some(timestamps), ..TcpOptions::NONE };
        }
        let mut options = TcpOptions::default();
        // The options of most SYNs.
        if let [2, 4, m, s, 4, 2, 8, 10, a, b, c, d, e, f, g, h, 1, 3, 3, shift] = *list {
            let value = u32::from_be_bytes([a, b, c, d]);
            options.mss = Some(u16::from_be_bytes([m, s]));
            options.window_scale = Some(shift);
            options.sack_permitted = true;
            options.timestamps = Some((value, u32::from_be_bytes([e, f, g, h])));
            return options;
        }
        TcpOptions::parse_list(list)
    }
    fn parse_list(list: &[u8]) -> Self {
        let (mut options, mut r) = (TcpOptions::default(), Reader::new(list));
        while let Some(kind) = r.u8() {
            match kind {
                END => break,
                NO_OPERATION => continue,
                _ => {}
            }
            // spec: RFC9293 MUST-68 (every other option has a length)
            // spec: RFC9293 MUST-7 (a length that is illegal ends the list)
            let Some(length) = r.u8().and_then(|length| usize::from(length).checked_sub(2)) else { break };
            let Some(body) = r.bytes(length) else { break };
            match (kind, body) {
                (MSS, [a, b]) => options.mss = Some(u16::from_be_bytes([*a, *b])),
                (WINDOW_SCALE, [shift]) => options.window_scale = Some(*shift),
                (SACK_PERMITTED, []) => options.sack_permitted = true,
                (TIMESTAMPS, [a, b, c, d, e, f, g, h]) => {
                    let value = u32::from_be_bytes([*a, *b, *c, *d]);
                    options.timestamps = Some((value, u32::from_be_bytes([*e, *f, *g, *h])));
                }
                (SACK, blocks) => {
                    let (blocks, odd_rest) = blocks.as_chunks::<8>();
                    if odd_rest.is_empty() && !blocks.is_empty() {
                        options.sack = SackBlocks::new();
                        for [a, b, c, d, e, f, g, h] in blocks {
                            let start = Sequence(u32::from_be_bytes([*a, *b, *c, *d]));
                            options.sack.push((start, Sequence(u32::from_be_bytes([*e, *f, *g, *h]))));
                        }
                    }
                }
                (FAST_OPEN, cookie) if is_cookie(cookie) => {
                    options.fast_open = FastOpenCookie::from_slice(cookie);
                    options.fast_open_experimental = false;
                }
                (EXPERIMENT, [a, b, cookie @ ..])
                    if [*a, *b] == FAST_OPEN_EXPERIMENT && is_cookie(cookie) =>
                {
                    options.fast_open = FastOpenCookie::from_slice(cookie);
                    options.fast_open_experimental = true;
                }
                // spec: RFC9293 MUST-6 (options that are not understood are ignored)
                _ => {}
            }
        }
        options
    }

    /// Whether there is nothing but, perhaps, timestamps.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.mss.is_none()
            && self.window_scale.is_none()
            && !self.sack_permitted
            && self.sack.is_empty()
            && self.fast_open.is_none()
    }
    /// Bytes that the options take in a header, padding included: a multiple of 4, at most 40.
    #[inline]
    pub fn length(&self) -> usize {
        match self.is_plain() {
            true if self.timestamps.is_some() => TIMESTAMPS_BYTES,
            true => 0,
            false if self.is_usual_syn() => USUAL_SYN_BYTES,
            false => self.plan().padded_length(self),
        }
    }

    /// Whether all that is set fits; when not, [`TcpOptions::emit`] leaves SACK blocks out, from the last.
    pub fn fits(&self) -> bool {
        self.plan().sack_blocks == self.sack.len()
    }

    /// Writes [`TcpOptions::length`] bytes; returns their number, or 0 when `buffer` is shorter.
    ///
    /// On a SYN: MSS, SACK permitted, timestamps, no-operation, window scale. Timestamps alone: two
    /// no-operations before them (RFC 7323 appendix A). A fast-open cookie comes last, and no-operations fill its last
    /// word. All are aligned to 4 bytes where they fit so.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        if self.is_plain() {
            return self.emit_timestamps(buffer);
        }
        if self.is_usual_syn() {
            return self.emit_usual_syn(buffer);
        }
        let mut w = Writer::new(buffer);
        self.write(self.plan(), &mut w);
        // spec: RFC9293 MUST-69 (padding is zeros)
        w.pad_to(4).finish()
    }

    /// Whether these are the four of most SYNs, and no more.
    #[inline]
    fn is_usual_syn(&self) -> bool {
        self.mss.is_some()
            && self.window_scale.is_some()
            && self.sack_permitted
            && self.timestamps.is_some()
            && self.sack.is_empty()
            && self.fast_open.is_none()
    }
    /// Those, in their usual order.
    #[inline]
    fn emit_usual_syn(&self, buffer: &mut [u8]) -> usize {
        let Some(place) = buffer.first_chunk_mut::<USUAL_SYN_BYTES>() else { return 0 };
        let [m, s] = self.mss.unwrap_or_default().to_be_bytes();
        let (value, echo) = self.timestamps.unwrap_or_default();
        place[..8].copy_from_slice(&[MSS, 4, m, s, SACK_PERMITTED, 2, TIMESTAMPS, 10]);
        place[8..12].copy_from_slice(&value.to_be_bytes());
        place[12..16].copy_from_slice(&echo.to_be_bytes());
        let shift = self.window_scale.unwrap_or_default();
        place[16..].copy_from_slice(&[NO_OPERATION, WINDOW_SCALE, 3, shift]);
        USUAL_SYN_BYTES
    }
    /// Nothing, or timestamps behind two no-operations (RFC 7323 appendix A).
    #[inline]
    fn emit_timestamps(&self, buffer: &mut [u8]) -> usize {
        let Some(timestamps) = self.timestamps else { return 0 };
        let Some(place) = buffer.first_chunk_mut::<TIMESTAMPS_BYTES>() else { return 0 };
        emit_timestamps_alone(timestamps, place);
        TIMESTAMPS_BYTES
    }
    /// Aligned when everything fits so, else packed when everything fits so, else aligned with fewer blocks.
    fn plan(&self) -> Plan {
        for aligned in [true, false] {
            let plan = Plan { aligned, sack_blocks: self.sack.len() };
            if plan.padded_length(self) <= MAX_OPTIONS_BYTES {
                return plan;
            }
        }
        let mut plan = Plan { aligned: true, sack_blocks: self.sack.len() };
        while plan.sack_blocks > 0 && plan.padded_length(self) > MAX_OPTIONS_BYTES {
            plan.sack_blocks -= 1;
        }
        plan
    }

    fn write(&self, plan: Plan, w: &mut Writer<'_>) {
        if let Some(mss) = self.mss {
            w.u8(MSS).u8(4).u16(mss);
        }
        if plan.aligned && self.sack_permitted != self.timestamps.is_some() {
            w.u8(NO_OPERATION).u8(NO_OPERATION);
        }
        if self.sack_permitted {
            w.u8(SACK_PERMITTED).u8(2);
        }
        if let Some((value, echo)) = self.timestamps {
            w.u8(TIMESTAMPS).u8(10).u32(value).u32(echo);
        }
        if let Some(shift) = self.window_scale {
            if plan.aligned {
                w.u8(NO_OPERATION);
            }
            w.u8(WINDOW_SCALE).u8(3).u8(shift);
        }
        if plan.sack_blocks > 0 {
            if plan.aligned {
                w.u8(NO_OPERATION).u8(NO_OPERATION);
            }
            w.u8(SACK).u8((2 + 8 * plan.sack_blocks) as u8);
            for (start, end) in self.sack.iter().take(plan.sack_blocks) {
                w.u32(start.0).u32(end.0);
            }
        }
        if let Some(cookie) = self.fast_open {
            if self.fast_open_experimental {
                w.u8(EXPERIMENT).u8((4 + cookie.len()) as u8).bytes(&FAST_OPEN_EXPERIMENT);
            } else {
                w.u8(FAST_OPEN).u8((2 + cookie.len()) as u8);
            }
            w.bytes(&cookie);
            for _ in 0..plan.fast_open_fill(self) {
                w.u8(NO_OPERATION);
            }
        }
    }
}

/// How the options are laid out.
#[derive(Clone, Copy)]
struct Plan {
    aligned: bool,
    sack_blocks: usize,
}

impl Plan {
    fn padded_length(self, options: &TcpOptions) -> usize {
        let TcpOptions { mss, window_scale, sack_permitted, timestamps, .. } = options;
        let aligned = usize::from(self.aligned);
        let mut length = 4 * usize::from(mss.is_some());
        length += 2 * usize::from(*sack_permitted) + 10 * usize::from(timestamps.is_some());
        length += 2 * aligned * usize::from(*sack_permitted != timestamps.is_some());
        length += (3 + aligned) * usize::from(window_scale.is_some());
        if self.sack_blocks > 0 {
            length += 2 + 2 * aligned + 8 * self.sack_blocks;
        }
        length += fast_open_length(options) + self.fast_open_fill(options);
        length.next_multiple_of(4)
    }
    /// No-operations behind a fast-open cookie.
    fn fast_open_fill(self, options: &TcpOptions) -> usize {
        let length = fast_open_length(options);
        if self.aligned { length.next_multiple_of(4) - length } else { 0 }
    }
}

/// Bytes of the fast-open option, unpadded.
fn fast_open_length(options: &TcpOptions) -> usize {
    let head = if options.fast_open_experimental { 4 } else { 2 };
    options.fast_open.map_or(0, |cookie| head + cookie.len())
}
