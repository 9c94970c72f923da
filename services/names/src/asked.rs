//! One question on its way to a server, and whether what comes back answers it.
//!
//! An off-path forger has to guess 16 bits of its identifier, its port (which the stack draws), and the case of each
//! letter of its name (draft-vixie-dnsext-dns0x20): RFC 5452.

use crate::codec::{self, HEADER_BYTES};
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RecordType};
use inhost_base::Random;
use std::fmt;

/// The longest answer that servers are asked to send over UDP: it crosses every path in one piece (DNS flag day 2020).
pub const UDP_ANSWER_BYTES: u16 = 1232;

/// A DNS question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Of this name.
    pub name: Name,
    /// Records of this type.
    pub kind: RecordType,
    /// With signatures (RFC 3225).
    pub signed: bool,
    /// Also what a server that verifies signatures takes for forged (RFC 4035 §3.2.2).
    pub unchecked: bool,
}

impl Question {
    /// The records of one type. The name counts from the root.
    pub fn new(mut name: Name, kind: RecordType) -> Question {
        name.set_fqdn(true);
        Question { name, kind, signed: false, unchecked: false }
    }
}

/// Why a message is not the answer to a question: somebody else's, late, or forged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mismatch {
    /// It comes from another address or port than the question went to.
    OtherSource,
    /// It is shorter than a header, or a question itself.
    NotAnAnswer,
    /// It has another identifier.
    OtherIdentifier,
    /// It answers another question.
    OtherQuestion,
    /// It answers the question, with its letters in another case. A few servers do that, and forgers who guess.
    OtherCase,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mismatch::OtherSource => "from another address",
            Mismatch::NotAnAnswer => "no answer",
            Mismatch::OtherIdentifier => "with another identifier",
            Mismatch::OtherQuestion => "to another question",
            Mismatch::OtherCase => "with its letters in another case",
        })
    }
}

/// A question as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct SentQuery {
    bytes: Vec<u8>,
    /// End of the question section.
    end: usize,
    /// The name as it was asked for, which answers are given back with.
    plain: Vec<u8>,
}

impl SentQuery {
    /// Writes the question down with its own identifier. `None` where the name cannot be written.
    pub(crate) fn new(question: &Question, extended: bool, random: &mut Random) -> Option<SentQuery> {
        let mut message = Message::new(random.private_u32() as u16, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.metadata.checking_disabled = question.unchecked;
        let mut query = Query::query(question.name.clone(), question.kind);
        query.set_query_class(DNSClass::IN);
        message.add_query(query);
        if extended {
            let mut edns = Edns::new();
            edns.set_max_payload(UDP_ANSWER_BYTES).set_version(0);
            edns.set_dnssec_ok(question.signed);
            message.set_edns(edns);
        }
        let mut bytes = message.to_vec().ok()?;
        let end = question_end(&bytes)?;
        let plain = bytes.get(HEADER_BYTES..end)?.to_vec();
        // Labels' lengths are below 64 and no letters, so that letters are recognised without parsing the labels.
        for octet in bytes.get_mut(HEADER_BYTES..end.checked_sub(4)?)? {
            if octet.is_ascii_alphabetic() && random.private_below(2) == 1 {
                *octet ^= 0x20;
            }
        }
        Some(SentQuery { bytes, end, plain })
    }
    /// The sent message.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// Whether `reply` answers this question at all. With `any_case` it may have changed the name's letters, as over
    /// a transport whose ends are known.
    pub(crate) fn fits(&self, reply: &[u8], any_case: bool) -> Result<(), Mismatch> {
        let header = reply.get(..HEADER_BYTES).ok_or(Mismatch::NotAnAnswer)?;
        if header[2] & 0x80 == 0 {
            return Err(Mismatch::NotAnAnswer);
        }
        if header[..2] != self.bytes[..2] {
            return Err(Mismatch::OtherIdentifier);
        }
        // Servers that do not understand a question send the header alone back.
        if reply.len() == HEADER_BYTES && header[3] & 0x0f != 0 {
            return Ok(());
        }
        let (asked, answered) = (self.bytes.get(HEADER_BYTES..self.end), reply.get(HEADER_BYTES..self.end));
        let (Some(asked), Some(answered), [0, 1]) = (asked, answered, [header[4], header[5]]) else {
            return Err(Mismatch::OtherQuestion);
        };
        match (asked == answered, asked.eq_ignore_ascii_case(answered)) {
            (true, _) => Ok(()),
            (false, true) if any_case => Ok(()),
            (false, true) => Err(Mismatch::OtherCase),
            (false, false) => Err(Mismatch::OtherQuestion),
        }
    }
    /// Reads a reply that fits. The names in it that point to the question get the letters of the name as it was asked
    /// for, and not those that were drawn.
    pub(crate) fn read(&self, reply: &[u8]) -> Option<Message> {
        let mut reply = reply.to_vec();
        if let Some(question) = reply.get_mut(HEADER_BYTES..self.end) {
            question.copy_from_slice(&self.plain);
        }
        if reply.len() == HEADER_BYTES {
            // The counted records are absent.
            reply[4..HEADER_BYTES].fill(0);
        }
        codec::read(&reply)
    }
}

/// End of the only question of a message.
fn question_end(bytes: &[u8]) -> Option<usize> {
    let mut at = HEADER_BYTES;
    loop {
        match usize::from(*bytes.get(at)?) {
            0 => return Some(at + 5).filter(|end| *end <= bytes.len()),
            length if length < 64 => at += 1 + length,
            _ => return None,
        }
    }
}

/// Whether a reply says that its sender does not know EDNS (RFC 6891 §7).
pub(crate) fn dislikes_extension(reply: &Message) -> bool {
    let code = reply.metadata.response_code;
    matches!(code, ResponseCode::FormErr | ResponseCode::NotImp) && reply.edns.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(number: u64) -> SentQuery {
        let name = Name::from_ascii("www.Example.com.").unwrap();
        SentQuery::new(&Question::new(name, RecordType::A), true, &mut Random::from_number(number)).unwrap()
    }
    fn reply(asked: &SentQuery) -> Vec<u8> {
        let mut reply = asked.bytes().to_vec();
        reply[2] |= 0x80;
        reply
    }

    /// spec: RFC5452 — identifier, question and case are compared.
    #[test]
    fn only_the_answer_to_the_question_fits() {
        let asked = asked(1);
        let good = reply(&asked);
        assert_eq!(asked.fits(&good, false), Ok(()));
        assert_eq!(asked.fits(asked.bytes(), false), Err(Mismatch::NotAnAnswer));
        assert_eq!(asked.fits(&good[..11], false), Err(Mismatch::NotAnAnswer));
        let changed = |at: usize, to: u8| {
            let mut bad = good.clone();
            bad[at] ^= to;
            asked.fits(&bad, false)
        };
        assert_eq!(changed(1, 1), Err(Mismatch::OtherIdentifier));
        assert_eq!(changed(14, 0x20), Err(Mismatch::OtherCase));
        assert_eq!(changed(14, 1), Err(Mismatch::OtherQuestion));
        assert_eq!(changed(5, 2), Err(Mismatch::OtherQuestion));
        assert_eq!(changed(HEADER_BYTES + 18, 1), Err(Mismatch::OtherQuestion), "the type");
        let mut folded = good.clone();
        folded[13] ^= 0x20;
        assert_eq!(asked.fits(&folded, true), Ok(()), "over TCP");
        let mut refusal = good[..12].to_vec();
        refusal[3] |= 1;
        assert_eq!(asked.fits(&refusal, false), Ok(()));
        assert!(asked.read(&refusal).is_some());
        assert_eq!(asked.fits(&good[..12], false), Err(Mismatch::OtherQuestion));
    }

    #[test]
    fn each_question_is_drawn_anew_and_read_back_as_it_was_meant() {
        let drawn: std::collections::BTreeSet<Vec<u8>> =
            (0..32).map(|number| asked(number).bytes()[..28].to_vec()).collect();
        assert_eq!(drawn.len(), 32);
        let names: std::collections::BTreeSet<&[u8]> = drawn.iter().map(|bytes| &bytes[12..]).collect();
        assert!(names.len() > 20, "cases differ, too");
        let asked = asked(5);
        let read = asked.read(&reply(&asked)).unwrap();
        assert_eq!(read.queries[0].name().to_string(), "www.Example.com.");
    }
}
