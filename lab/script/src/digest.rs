//! A script as one number: everything that our stack sent while it was played, and when. Two builds of the stack whose
//! digests are equal did the same.

use crate::differ::{draw, on_ours};
use crate::language::{Profile, Script, SocketCall};
use crate::ours::{Offloads, Ours};
use crate::run::play;
use crate::side::{Came, Figure, Side};
use inhost_base::{Duration, Instant};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;

/// The digest of `script` in `profile`, where the script can be played at all.
pub fn digest(script: &Script, profile: Profile) -> Result<u64, String> {
    let script = Script { profile, ..script.clone() };
    let mut side =
        Listened { side: Ours::new(&script, Offloads::default())?, hasher: SipHasher13::default() };
    // Whether it is as the script expects is another question.
    let verdict = play(&script, &mut side);
    side.hasher.write_u8(u8::from(verdict.is_ok()));
    Ok(side.hasher.finish())
}

/// The digest of what our `linux` profile does in the exchange that the differential judge draws from `seed`; nothing
/// where it draws none.
pub fn digest_of_exchange(seed: u64) -> Result<Option<u64>, String> {
    let Some(exchange) = draw(seed)? else { return Ok(None) };
    let mut hasher = SipHasher13::default();
    hasher.write(format!("{:?}", on_ours(&exchange)?).as_bytes());
    Ok(Some(hasher.finish()))
}

/// A side of which each packet is taken note of.
struct Listened<S> {
    side: S,
    hasher: SipHasher13,
}

impl<S: Side> Side for Listened<S> {
    fn now(&self) -> Instant {
        self.side.now()
    }
    fn slack(&self, due_in: Duration) -> Duration {
        self.side.slack(due_in)
    }
    fn inject(&mut self, packet: &[u8]) -> Result<(), String> {
        self.side.inject(packet)
    }
    fn next_packet(&mut self, until: Instant) -> Result<Option<(Instant, Vec<u8>)>, String> {
        let next = self.side.next_packet(until)?;
        if let Some((at, packet)) = &next {
            self.hasher.write(&at.as_nanos().to_le_bytes());
            self.hasher.write(&(packet.len() as u64).to_le_bytes());
            self.hasher.write(packet);
        }
        Ok(next)
    }
    fn call(&mut self, call: &SocketCall, data: &[u8]) -> Result<Came, String> {
        let came = self.side.call(call, data)?;
        self.hasher.write(format!("{came:?}").as_bytes());
        Ok(came)
    }
    fn figure(&mut self, on: &str, field: &str) -> Result<Option<Figure>, String> {
        self.side.figure(on, field)
    }
    fn is_ready(&mut self, on: &str, field: &str) -> Result<Option<bool>, String> {
        self.side.is_ready(on, field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::parse_text;

    #[test]
    fn a_digest_tells_what_was_sent() {
        let script = |segment: &str| {
            let text = format!("# p\ncall listen\nin {segment}\nskip\n");
            digest(&parse_text("t.script", &text).unwrap(), Profile::Rfc).unwrap()
        };
        assert_eq!(script("SYN win 1000"), script("SYN win 1000"));
        assert_ne!(script("SYN win 1000"), script("SYN win 1000 isn 77"));
        assert_ne!(script("SYN win 1000"), script("RST win 1000"));
    }
}
