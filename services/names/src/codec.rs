//! Replies of servers, read so that every record can be handed on octet for octet (RFC 3597 §3, RFC 4035 §3.2): a
//! validator behind us checks signatures over these octets.

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::rdata::NULL;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder, BinEncodable};

/// The length of a message's header in octets.
pub(crate) const HEADER_BYTES: usize = 12;

/// Reads a message. Of the additional section only the options are kept.
pub(crate) fn read(bytes: &[u8]) -> Option<Message> {
    let header = bytes.get(..HEADER_BYTES)?;
    let count = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let mut decoder = BinDecoder::new(bytes);
    decoder.read_slice(HEADER_BYTES).ok()?;
    for _ in 0..count(4) {
        Query::read(&mut decoder).ok()?;
    }
    let mut bare = bytes.get(..decoder.index())?.to_vec();
    let answers = records(bytes, &mut decoder, count(6))?;
    let authorities = records(bytes, &mut decoder, count(8))?;
    let mut options = 0_u16;
    for _ in 0..count(10) {
        let start = decoder.index();
        if Place::read(&mut decoder)?.kind == RecordType::OPT {
            bare.extend_from_slice(bytes.get(start..decoder.index())?);
            options = options.saturating_add(1);
        }
    }
    // Hickory reads the header, the question and the options, without the records that it may refuse or change.
    bare.get_mut(6..10)?.fill(0);
    bare.get_mut(10..HEADER_BYTES)?.copy_from_slice(&options.to_be_bytes());
    let mut message = Message::from_vec(&bare).ok()?;
    (message.answers, message.authorities) = (answers, authorities);
    Some(message)
}

fn records(bytes: &[u8], decoder: &mut BinDecoder<'_>, count: u16) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    for _ in 0..count {
        records.push(Place::read(decoder)?.record(bytes, decoder)?);
    }
    Some(records)
}

/// Position of a record in its message.
struct Place {
    start: usize,
    name: Name,
    kind: RecordType,
    class: DNSClass,
    ttl: u32,
    data_start: usize,
    data_end: usize,
}

impl Place {
    /// Reads all but the data, and passes over these.
    fn read(decoder: &mut BinDecoder<'_>) -> Option<Place> {
        let start = decoder.index();
        let name = Name::read(decoder).ok()?;
        let kind = RecordType::read(decoder).ok()?;
        let class = DNSClass::from(u16::read(decoder).ok()?);
        let ttl = u32::read(decoder).ok()?;
        let length = usize::from(u16::read(decoder).ok()?);
        let data_start = decoder.index();
        decoder.read_slice(length).ok()?;
        Some(Place { start, name, kind, class, ttl, data_start, data_end: data_start + length })
    }
    /// The record: its data as hickory reads them where it writes the same octets, else the octets themselves.
    fn record(self, bytes: &[u8], decoder: &BinDecoder<'_>) -> Option<Record> {
        let octets = bytes.get(self.data_start..self.data_end)?;
        let start = u16::try_from(self.start).ok()?;
        let typed = Record::read(&mut decoder.clone(start)).ok().map(|record| record.data);
        // Hickory takes a record without data for one of an update.
        let typed = typed.filter(|data| !matches!(data, RData::Update0(_)));
        let data = match (form(self.kind), typed) {
            (Form::Read, Some(data)) => data,
            // Whom to ask next and what an address is depends on these.
            (Form::Read, None) => return None,
            (Form::Compressed, Some(data)) => data,
            (Form::Names { before, names }, _) => {
                opaque(self.kind, self.expanded(bytes, decoder, before, names)?)
            }
            (Form::Plain, Some(data)) if data.to_bytes().is_ok_and(|written| written == octets) => data,
            (Form::Compressed | Form::Plain, _) => opaque(self.kind, octets.to_vec()),
        };
        let mut record = Record::from_rdata(self.name, self.ttl, data);
        record.dns_class = self.class;
        Some(record)
    }
    /// The data with `names` names behind `before` octets written out (RFC 3597 §4).
    fn expanded(
        &self,
        bytes: &[u8],
        decoder: &BinDecoder<'_>,
        before: usize,
        names: usize,
    ) -> Option<Vec<u8>> {
        let mut written = bytes.get(self.data_start..self.data_start + before)?.to_vec();
        let mut inside = decoder.clone(u16::try_from(self.data_start + before).ok()?);
        for _ in 0..names {
            for label in &Name::read(&mut inside).ok()? {
                written.push(label.len() as u8);
                written.extend_from_slice(label);
            }
            written.push(0);
        }
        written.extend_from_slice(bytes.get(inside.index()..self.data_end)?);
        Some(written)
    }
}

fn opaque(code: RecordType, octets: Vec<u8>) -> RData {
    let mut rdata = NULL::new();
    rdata.anything = octets;
    RData::Unknown { code, rdata }
}

/// Presentation format of a record type.
enum Form {
    /// With names that may be compressed, or as an address; hickory knows the type.
    Read,
    /// The same, of a type whose data hickory takes more strictly than they are written.
    Compressed,
    /// With names that may be compressed, of a type that hickory does not know.
    Names {
        /// Octets before the first name.
        before: usize,
        /// Names in a row.
        names: usize,
    },
    /// Without pointers.
    Plain,
}

/// RFC 3597 §4 lists the types whose names may be compressed, and those whose names old servers compress.
fn form(kind: RecordType) -> Form {
    match kind {
        RecordType::A
        | RecordType::AAAA
        | RecordType::NS
        | RecordType::CNAME
        | RecordType::PTR
        | RecordType::MX
        | RecordType::SOA
        | RecordType::SRV => Form::Read,
        RecordType::NAPTR => Form::Compressed,
        kind => match u16::from(kind) {
            // MD, MF, MB, MG, MR, NXT.
            3 | 4 | 7 | 8 | 9 | 30 => Form::Names { before: 0, names: 1 },
            // MINFO, RP.
            14 | 17 => Form::Names { before: 0, names: 2 },
            // AFSDB, RT, KX.
            18 | 21 | 36 => Form::Names { before: 2, names: 1 },
            // PX.
            26 => Form::Names { before: 2, names: 2 },
            // SIG.
            24 => Form::Names { before: 18, names: 1 },
            _ => Form::Plain,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::{MessageType, OpCode};
    use std::str::FromStr;

    /// A reply with one record at `www.example.`, whose name stands at octet 12.
    fn reply(kind: u16, data: &[u8]) -> Vec<u8> {
        let mut message = Message::new(7, MessageType::Response, OpCode::Query);
        message.add_query(Query::query(Name::from_str("www.example.").unwrap(), RecordType::from(kind)));
        let mut bytes = message.to_vec().unwrap();
        bytes[7] = 1;
        bytes.extend_from_slice(&[0xc0, 12]);
        bytes.extend_from_slice(&kind.to_be_bytes());
        bytes.extend_from_slice(&[0, 1, 0, 0, 0, 60]);
        bytes.extend_from_slice(&(data.len() as u16).to_be_bytes());
        bytes.extend_from_slice(data);
        bytes
    }
    fn data(kind: u16, data: &[u8]) -> Option<RData> {
        read(&reply(kind, data)).map(|message| message.answers[0].data.clone())
    }

    /// spec: RFC3597 3 — octets of a type that nobody knows stay as they are.
    #[test]
    fn what_cannot_be_written_as_it_was_read_stays_as_octets() {
        let octets = |data: RData| match data {
            RData::Unknown { rdata, .. } => rdata.anything,
            other => panic!("{other:?}"),
        };
        assert_eq!(octets(data(65281, &[]).unwrap()), b"", "nothing at all");
        // NAPTR with flags that hickory refuses.
        let naptr = b"\0\x01\0\x02\x03a b\0\0\0";
        assert_eq!(octets(data(35, naptr).unwrap()), naptr);
        // MINFO with pointers to the name of the question.
        assert_eq!(octets(data(14, &[0xc0, 12, 0xc0, 16]).unwrap()), b"\x03www\x07example\0\x07example\0");
        assert_eq!(octets(data(18, &[0, 1, 0xc0, 16]).unwrap()), b"\0\x01\x07example\0");
        assert!(matches!(data(16, b"\x01a\0"), Some(RData::TXT(_))));
    }

    #[test]
    fn what_cannot_be_read_is_no_message() {
        assert_eq!(data(1, &[192, 0, 2]), None, "an address of three octets");
        assert_eq!(data(14, &[0xc0, 12, 0xc0]), None);
        assert_eq!(data(14, &[0xc0, 200, 0]), None);
        let whole = reply(16, b"\x01a");
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_none(), "{cut}");
        }
        assert!(read(&whole).is_some());
    }
}
