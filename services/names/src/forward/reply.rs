//! The replies that clients get.

use crate::answer::Answer;
use crate::asked::UDP_ANSWER_BYTES;
use hickory_proto::op::{Edns, Message, MessageType, Metadata, Query, ResponseCode};

/// The least that every client takes over UDP (RFC 1035 §4.2.1).
const LEAST_UDP_BYTES: usize = 512;
/// The most that a message over TCP can have.
const MOST_BYTES: usize = 65_535;

/// The parts of a question that its reply repeats.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    metadata: Metadata,
    query: Option<Query>,
    /// Whether the client knows EDNS, and wants signatures.
    extended: Option<bool>,
    limit_bytes: usize,
}

impl Request {
    pub(crate) fn of(message: &Message, over_tcp: bool) -> Request {
        let own = message.edns.as_ref().map_or(LEAST_UDP_BYTES, |edns| usize::from(edns.max_payload()));
        Request {
            metadata: message.metadata,
            query: message.queries.first().cloned(),
            extended: message.edns.as_ref().map(|edns| edns.flags().dnssec_ok),
            limit_bytes: match over_tcp {
                true => MOST_BYTES,
                false => own.clamp(LEAST_UDP_BYTES, usize::from(UDP_ANSWER_BYTES)),
            },
        }
    }
    /// The reply that says only a code.
    pub(crate) fn refusal(&self, code: ResponseCode) -> Vec<u8> {
        self.write(self.begin(code))
    }
    /// The reply that says `answer`; over UDP, that it is too long, where it is.
    pub(crate) fn answer(&self, answer: &Answer) -> Vec<u8> {
        let mut message = self.begin(answer.code);
        message.answers.clone_from(&answer.records);
        message.authorities.clone_from(&answer.proof);
        let bytes = self.write(message);
        if bytes.len() <= self.limit_bytes {
            return bytes;
        }
        // RFC 2181 §9: the proof may be missing; half a set of records may not go as a whole one.
        let mut short = self.begin(answer.code);
        short.metadata.truncation = true;
        self.write(short)
    }
    fn begin(&self, code: ResponseCode) -> Message {
        let mut message = Message::new(self.metadata.id, MessageType::Response, self.metadata.op_code);
        message.metadata.recursion_desired = self.metadata.recursion_desired;
        message.metadata.checking_disabled = self.metadata.checking_disabled;
        message.metadata.recursion_available = true;
        message.metadata.response_code = code;
        message.queries.extend(self.query.clone());
        // RFC 6891 §6.1.1: who asks with EDNS is answered with it, and nobody else.
        if let Some(signed) = self.extended {
            let mut edns = Edns::new();
            edns.set_max_payload(UDP_ANSWER_BYTES).set_version(0);
            edns.set_dnssec_ok(signed);
            edns.set_rcode_high(code.high());
            message.set_edns(edns);
        }
        message
    }
    /// A message that cannot be written, as one with names that hickory read and does not write, is a failure.
    fn write(&self, message: Message) -> Vec<u8> {
        message.to_vec().unwrap_or_else(|_| header_alone(self.metadata.id, ResponseCode::ServFail))
    }
}

/// A reply with nothing but a code, to what cannot be read further.
pub(crate) fn header_alone(id: u16, code: ResponseCode) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes[..2].copy_from_slice(&id.to_be_bytes());
    bytes[2] = 0x80;
    bytes[3] = 0x80 | (code.low() & 0x0f);
    bytes
}
