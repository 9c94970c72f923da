//! The applications of both hosts, as machines that each control structure drives by the same calls.

use bytes::{Buf, Bytes, BytesMut};
use inhost_base::Instant;
use inhost_inett::statistics::Times;
use inhost_runtime::Clock;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Payload of a full segment: an MTU of 1500 bytes without TCP options.
pub const SEGMENT_BYTES: usize = 1460;
/// Bytes of one write of the bulk transfer: 16 full segments.
pub const WRITE_BYTES: usize = 16 * SEGMENT_BYTES;
/// What the sink answers when it has everything.
const CONFIRMATION: &[u8] = b"!";

/// What the two hosts do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// So many characters are typed. Each waits for the echo of the one before, as a user of Telnet does.
    Echo(u64),
    /// So many writes of [`WRITE_BYTES`] are sent as fast as they go; one byte comes back when all have arrived.
    Bulk(u64),
}

impl Load {
    /// The applications of the caller and of the called host.
    pub fn applications(self, clock: Clock) -> [Application; 2] {
        let roles = match self {
            Load::Echo(left) => {
                let typist = Role::Typist { left, waits_for: None, typed_at: Instant::ZERO };
                [typist, Role::Echo { answer: BytesMut::new() }]
            }
            Load::Bulk(left) => {
                let text: Bytes = (0..WRITE_BYTES).map(|i| (i % 251) as u8).collect();
                let source = Role::Source { text: text.clone(), left, is_confirmed: false };
                [source, Role::Sink { text, wanted: left * WRITE_BYTES as u64, is_confirmed: false }]
            }
        };
        roles.map(|role| Application { role, clock, delivered: 0, times: Times::default(), span: [None; 2] })
    }
    /// Echoes, or full segments: what figures are divided by.
    pub fn units(self) -> u64 {
        match self {
            Load::Echo(count) => count,
            Load::Bulk(writes) => writes * (WRITE_BYTES / SEGMENT_BYTES) as u64,
        }
    }
}

/// One end of the stream.
///
/// The caller asks [`next`](Application::next) until it gives nothing, then hands over what was received, and begins
/// again. It ends when [`is_done`](Application::is_done) holds.
pub struct Application {
    role: Role,
    clock: Clock,
    /// Bytes received, each of which was what it should be.
    pub delivered: u64,
    /// Round trips of the typist.
    pub times: Times,
    /// The first write and the end of the caller's work.
    span: [Option<Mark>; 2],
}

enum Role {
    Typist { left: u64, waits_for: Option<u8>, typed_at: Instant },
    Echo { answer: BytesMut },
    Source { text: Bytes, left: u64, is_confirmed: bool },
    Sink { text: Bytes, wanted: u64, is_confirmed: bool },
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    cpu_ns: u64,
    resident_bytes: u64,
}

/// How long the caller's work took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// On the wall.
    pub wall_ns: u64,
    /// Of all processors, by all threads of the process.
    pub cpu_ns: u64,
    /// Resident memory of the process at the end, while all of both hosts is alive.
    pub resident_bytes: u64,
}

impl Application {
    /// The bytes to write next; `None` when the application waits for bytes, or is done.
    pub fn next(&mut self) -> Option<Bytes> {
        let bytes = match &mut self.role {
            Role::Typist { left, waits_for, typed_at } => {
                if *left == 0 || waits_for.is_some() {
                    return None;
                }
                let key = b' ' + (*left % 95) as u8;
                *left -= 1;
                *waits_for = Some(key);
                *typed_at = self.clock.now();
                Bytes::copy_from_slice(&[key])
            }
            Role::Echo { answer } if answer.is_empty() => return None,
            Role::Echo { answer } => return Some(answer.split().freeze()),
            Role::Source { left: 0, .. } => return None,
            Role::Source { text, left, .. } => {
                *left -= 1;
                text.clone()
            }
            Role::Sink { wanted, is_confirmed, .. } => {
                if *is_confirmed || self.delivered < *wanted {
                    return None;
                }
                *is_confirmed = true;
                return Some(Bytes::from_static(CONFIRMATION));
            }
        };
        self.span[0].get_or_insert_with(|| Mark::now(&self.clock));
        Some(bytes)
    }
    /// Takes bytes of the stream.
    ///
    /// # Errors
    /// When they are not those that the other end has sent.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), String> {
        match &mut self.role {
            Role::Typist { waits_for, typed_at, .. } => match (waits_for.take(), bytes) {
                (Some(key), [echo]) if key == *echo => {
                    self.times.take(self.clock.now().since(*typed_at).as_nanos());
                }
                (key, _) => return Err(format!("{key:?} was typed and {bytes:?} came back")),
            },
            Role::Echo { answer } => answer.extend_from_slice(bytes),
            Role::Source { is_confirmed, .. } => match bytes {
                CONFIRMATION => *is_confirmed = true,
                _ => return Err(format!("{bytes:?} came in place of the confirmation")),
            },
            Role::Sink { text, .. } => compare(text, self.delivered, bytes)?,
        }
        self.delivered += bytes.len() as u64;
        if self.is_done() {
            self.span[1].get_or_insert_with(|| Mark::now(&self.clock));
        }
        Ok(())
    }
    /// Whether the caller's work is over. The called host's never is: it ends with the stream.
    pub fn is_done(&self) -> bool {
        match self.role {
            Role::Typist { left, waits_for, .. } => left == 0 && waits_for.is_none(),
            Role::Source { is_confirmed, .. } => is_confirmed,
            Role::Echo { .. } | Role::Sink { .. } => false,
        }
    }
    /// How long it took; `None` before the end.
    pub fn span(&self) -> Option<Span> {
        let [Some(began), Some(ended)] = self.span else { return None };
        Some(Span {
            wall_ns: ended.at.since(began.at).as_nanos(),
            cpu_ns: ended.cpu_ns - began.cpu_ns,
            resident_bytes: ended.resident_bytes,
        })
    }
}

/// Whether `bytes` continue the repeated `text` at `offset`.
fn compare(text: &Bytes, offset: u64, mut bytes: &[u8]) -> Result<(), String> {
    let mut at = (offset % text.len() as u64) as usize;
    while !bytes.is_empty() {
        let count = bytes.len().min(text.len() - at);
        if bytes[..count] != text[at..at + count] {
            return Err(format!("the stream is wrong within {count} bytes after {offset}"));
        }
        bytes.advance(count);
        at = 0;
    }
    Ok(())
}

impl Mark {
    fn now(clock: &Clock) -> Mark {
        let at = clock.now();
        let cpu_ns = cpu_ns();
        Mark { at, cpu_ns, resident_bytes: resident_bytes() }
    }
}

/// Time that processors have spent on all threads of this process, in nanoseconds; the system counts microseconds.
pub fn cpu_ns() -> u64 {
    let spent = getrusage(UsageWho::RUSAGE_SELF).map(|usage| usage.user_time() + usage.system_time());
    // It cannot fail for the process itself, and is never negative.
    spent.map_or(0, |time| time.num_microseconds().unsigned_abs() * 1_000)
}

/// Resident memory of this process in bytes; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0);
    kib << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_bytes_are_refused() {
        let [mut typist, mut echo] = Load::Echo(2).applications(Clock::start());
        let key = typist.next().unwrap();
        assert_eq!(typist.next(), None);
        echo.receive(&key).unwrap();
        assert_eq!(echo.next().unwrap(), key);
        typist.receive(&key).unwrap();
        assert!(!typist.is_done() && typist.span().is_none());
        typist.next().unwrap();
        assert!(typist.receive(b"\n").is_err());

        let [mut source, mut sink] = Load::Bulk(2).applications(Clock::start());
        let (first, second) = (source.next().unwrap(), source.next().unwrap());
        sink.receive(&first[..1000]).unwrap();
        assert!(sink.receive(&first).is_err());
        sink.receive(&first[1000..]).unwrap();
        assert_eq!(sink.next(), None);
        sink.receive(&second).unwrap();
        let confirmation = sink.next().unwrap();
        assert_eq!(sink.next(), None);
        assert!(source.receive(b"?").is_err());
        source.receive(&confirmation).unwrap();
        assert!(source.is_done() && source.span().is_some());
        assert_eq!(sink.delivered, 2 * WRITE_BYTES as u64);
    }
}
