//! MSG_ERRQUEUE: completions of zero-copy sends, and timestamps of sent and acknowledged bytes.
//!
//! The stack always copies, so a zero-copy send is completed as Linux completes one that it had to copy: when its bytes
//! are acknowledged, with the code that says so.

use crate::address::Family;
use crate::ancillary::Control;
use inhost_base::Instant;
use std::collections::VecDeque;

const SO_EE_ORIGIN_TIMESTAMPING: u8 = 4;
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;
const SCM_TIMESTAMPING: i32 = libc::SO_TIMESTAMPING;
const IPV6_RECVERR: i32 = 25;
const IP_RECVERR: i32 = 11;

/// When the bytes of a write were given to the device.
pub(crate) const TSTAMP_SND: u32 = 0;
/// When they were queued for it.
pub(crate) const TSTAMP_SCHED: u32 = 1;
/// When they were acknowledged.
pub(crate) const TSTAMP_ACK: u32 = 2;

pub(crate) const SOF_TX_SOFTWARE: u32 = 1 << 1;
pub(crate) const SOF_OPT_ID: u32 = 1 << 7;
pub(crate) const SOF_TX_SCHED: u32 = 1 << 8;
pub(crate) const SOF_TX_ACK: u32 = 1 << 9;
/// That the software's time is told, which is the only one that there is.
const SOF_SOFTWARE: u32 = 1 << 4;
/// What can be asked for; hardware has no time here, and what is received is not stamped.
pub(crate) const SOF_KNOWN: u32 = SOF_TX_SOFTWARE | SOF_OPT_ID | SOF_TX_SCHED | SOF_TX_ACK | SOF_SOFTWARE;

/// The sends of one socket that are to be told of.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    /// Bytes written since the connection was opened.
    written: u64,
    zero_copy: VecDeque<(u32, u64)>,
    next_zero_copy: u32,
    stamps: VecDeque<Stamp>,
    /// Where the counting of bytes for timestamps begins.
    stamp_base: u64,
    /// What waits to be told, the oldest first.
    notices: VecDeque<Notice>,
}

/// Notices that wait; what comes beyond is lost.
const NOTICE_LIMIT: usize = 1024;

#[derive(Clone, Copy, Debug)]
enum Notice {
    /// Zero-copy sends from one number to another.
    ZeroCopy {
        first: u32,
        last: u32,
    },
    Stamp {
        kind: u32,
        data: u32,
        at: Instant,
    },
}

#[derive(Clone, Copy, Debug)]
struct Stamp {
    end: u64,
    kind: u32,
}

impl Completions {
    /// Whether somebody waits.
    pub fn is_waiting(&self) -> bool {
        !self.zero_copy.is_empty() || !self.stamps.is_empty()
    }
    /// Counts bytes that were written.
    pub fn wrote(&mut self, bytes: u64) {
        self.written += bytes;
    }
    /// Bytes written since the connection was opened.
    pub fn written(&self) -> u64 {
        self.written
    }
    /// The timestamps' count of bytes begins after those that are written.
    pub fn count_stamps_from_here(&mut self) {
        self.stamp_base = self.written;
    }
    /// A zero-copy send that ends with the last byte written.
    pub fn zero_copy_sent(&mut self) {
        self.zero_copy.push_back((self.next_zero_copy, self.written));
        self.next_zero_copy = self.next_zero_copy.wrapping_add(1);
    }
    /// A write whose last byte is to be stamped as `flags` of SO_TIMESTAMPING ask.
    pub fn stamp(&mut self, flags: u32) {
        let kinds = [(SOF_TX_SCHED, TSTAMP_SCHED), (SOF_TX_SOFTWARE, TSTAMP_SND), (SOF_TX_ACK, TSTAMP_ACK)];
        for (flag, kind) in kinds {
            if flags & flag != 0 {
                self.stamps.push_back(Stamp { end: self.written, kind });
            }
        }
    }
    /// Takes in that `sent` bytes were sent and `acknowledged` bytes acknowledged; whether that completed something.
    pub fn progress(&mut self, sent: u64, acknowledged: u64, now: Instant) -> bool {
        let before = (self.zero_copy.len(), self.stamps.len());
        while let Some((id, _)) = self.zero_copy.pop_front_if(|&mut (_, end)| end <= acknowledged) {
            match self.notices.back_mut() {
                // Neighbours are told in one.
                Some(Notice::ZeroCopy { last, .. }) if last.wrapping_add(1) == id => *last = id,
                _ => self.tell(Notice::ZeroCopy { first: id, last: id }),
            }
        }
        for stamp in std::mem::take(&mut self.stamps) {
            let reached = if stamp.kind == TSTAMP_ACK { acknowledged } else { sent };
            if stamp.end > reached {
                self.stamps.push_back(stamp);
            } else {
                let data = stamp.end.wrapping_sub(self.stamp_base).wrapping_sub(1) as u32;
                self.tell(Notice::Stamp { kind: stamp.kind, data, at: now });
            }
        }
        before != (self.zero_copy.len(), self.stamps.len())
    }
    fn tell(&mut self, notice: Notice) {
        if self.notices.len() < NOTICE_LIMIT {
            self.notices.push_back(notice);
        }
    }
    /// Whether something waits to be told.
    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }
    /// The oldest notice as control messages, and whether it is of a kind whose data was cut off.
    pub fn take(&mut self, family: Family) -> Option<(Vec<Control>, bool)> {
        Some(match self.notices.pop_front()? {
            Notice::ZeroCopy { first, last } => {
                let error = Error { origin: SO_EE_ORIGIN_ZEROCOPY, number: 0, info: first, data: last };
                (vec![error.control(family)], false)
            }
            Notice::Stamp { kind, data, at } => {
                let error =
                    Error { origin: SO_EE_ORIGIN_TIMESTAMPING, number: libc::ENOMSG, info: kind, data };
                (vec![time(at), error.control(family)], true)
            }
        })
    }
}

/// `struct sock_extended_err`, which an address follows that is not known.
struct Error {
    origin: u8,
    number: i32,
    info: u32,
    data: u32,
}

impl Error {
    fn control(&self, family: Family) -> Control {
        let mut bytes = self.number.to_ne_bytes().to_vec();
        let code = if self.origin == SO_EE_ORIGIN_ZEROCOPY { SO_EE_CODE_ZEROCOPY_COPIED } else { 0 };
        bytes.extend([self.origin, 0, code, 0]);
        bytes.extend(self.info.to_ne_bytes());
        bytes.extend(self.data.to_ne_bytes());
        let (level, kind, address_bytes) = match family {
            Family::V4 => (libc::SOL_IP, IP_RECVERR, size_of::<libc::sockaddr_in>()),
            Family::V6 => (libc::SOL_IPV6, IPV6_RECVERR, size_of::<libc::sockaddr_in6>()),
        };
        bytes.resize(bytes.len() + address_bytes, 0);
        Control { level, kind, data: bytes }
    }
}

/// `struct scm_timestamping` with the software's time.
fn time(now: Instant) -> Control {
    let nanos = now.as_nanos();
    let mut data = (nanos / 1_000_000_000).to_ne_bytes().to_vec();
    data.extend((nanos % 1_000_000_000).to_ne_bytes());
    data.resize(48, 0);
    Control { level: libc::SOL_SOCKET, kind: SCM_TIMESTAMPING, data }
}
