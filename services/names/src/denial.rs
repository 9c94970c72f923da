//! Which records of an authority section prove to a validator that a name or a type does not exist, or that an answer
//! came of a wildcard (RFC 4035 §3.1.3, RFC 5155 §7.2).

use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};

/// Octets of a signature before its signer (RFC 4034 §3.1).
const BEFORE_SIGNER_BYTES: usize = 18;
/// Sets of records taken: NSEC3 needs three for a name, and aliases have their own.
const SETS_LIMIT: usize = 64;

/// The covered type and signer of an RRSIG record.
pub(crate) struct Signature {
    /// The type of the set.
    pub covers: RecordType,
    /// The zone that signed it.
    pub signer: Name,
}

impl Signature {
    /// Parses `record` if it is an RRSIG.
    pub(crate) fn of(record: &Record) -> Option<Signature> {
        let RData::Unknown { code: RecordType::RRSIG, rdata } = &record.data else { return None };
        let covers = rdata.anything.first_chunk::<2>()?;
        let signer = rdata.anything.get(BEFORE_SIGNER_BYTES..)?;
        let signer = Name::read(&mut BinDecoder::new(signer)).ok()?;
        Some(Signature { covers: RecordType::from(u16::from_be_bytes(*covers)), signer })
    }
}

/// The NSEC and NSEC3 records among `authorities`, and their signatures, of the zones that the names in `way` are in.
/// An unsigned one proves nothing, and is left out.
pub(crate) fn denials<'a>(
    authorities: &'a [Record],
    names: &[&Name],
) -> impl Iterator<Item = &'a Record> + use<'a> {
    let mut sets: Vec<(&Name, RecordType)> = Vec::new();
    for record in authorities {
        let Some(Signature { covers, signer }) = Signature::of(record) else { continue };
        let is_ancestor_zone = signer.zone_of(&record.name) && names.iter().any(|name| signer.zone_of(name));
        if sets.len() < SETS_LIMIT
            && is_denial(covers)
            && is_ancestor_zone
            && !sets.contains(&(&record.name, covers))
        {
            sets.push((&record.name, covers));
        }
    }
    authorities.iter().filter(move |record| {
        let kind = Signature::of(record).map_or_else(|| record.record_type(), |signature| signature.covers);
        record.dns_class == DNSClass::IN && is_denial(kind) && sets.contains(&(&record.name, kind))
    })
}

fn is_denial(kind: RecordType) -> bool {
    matches!(kind, RecordType::NSEC | RecordType::NSEC3)
}
