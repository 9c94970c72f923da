use super::*;
use crate::codec::xdr::{Xdr, from_octets, to_octets};

fn both_ways<T: Xdr + PartialEq + core::fmt::Debug>(value: &T) -> Vec<u8> {
    let octets = to_octets(value);
    assert_eq!(&from_octets::<T>(&octets).unwrap(), value);
    for length in 0..octets.len() {
        assert!(from_octets::<T>(&octets[..length]).is_err(), "{length} of {} octets", octets.len());
    }
    octets
}

#[test]
fn attributes_have_the_layout_of_the_rfc() {
    let attributes = Attributes {
        kind: FileType::Directory,
        mode: 0o755,
        links: 2,
        uid: 3,
        gid: 4,
        size_bytes: 5,
        used_bytes: 6,
        device: Device { major: 7, minor: 8 },
        fsid: 9,
        fileid: 10,
        accessed: Time { seconds: 11, nanoseconds: 12 },
        modified: Time { seconds: 13, nanoseconds: 14 },
        changed: Time { seconds: 15, nanoseconds: 16 },
    };
    let octets = both_ways(&attributes);
    assert_eq!(octets.len(), 84);
    let numbers: Vec<u8> = octets.chunks(4).map(|four| four[3]).collect();
    assert_eq!(numbers, [2, 0xed, 2, 3, 4, 0, 5, 0, 6, 7, 8, 0, 9, 0, 10, 11, 12, 13, 14, 15, 16]);
    both_ways(&Wcc { before: Some(attributes.into()), after: Some(attributes) });
}

#[test]
fn arguments_go_both_ways() {
    let place = Place { directory: Handle(vec![1; 64]), name: "file".into() };
    let set = SetAttributes {
        mode: Some(0o644),
        size_bytes: Some(0),
        accessed: SetTime::Now,
        modified: SetTime::To(Time { seconds: 1, nanoseconds: 2 }),
        ..SetAttributes::default()
    };
    for how in [How::Unchecked(set), How::Guarded(set), How::Exclusive([7; 8])] {
        both_ways(&CreateArguments { place: place.clone(), how });
    }
    for kind in [FileType::Character, FileType::Fifo, FileType::Link] {
        let mut node = Node { kind, ..Node::default() };
        if kind != FileType::Link {
            node.attributes = set;
        }
        both_ways(&MakeNodeArguments { place: place.clone(), node });
    }
    both_ways(&WriteArguments { data: Data(b"octets".to_vec()), count: 6, ..WriteArguments::default() });
    both_ways(&RenameArguments { from: place.clone(), to: place });
    assert!(from_octets::<Handle>(&to_octets(&Handle(vec![0; 65]))).is_err());
}

#[test]
fn results_go_both_ways() {
    let entry = Entry { fileid: 1, name: "a".into(), cookie: 2 };
    let plus = EntryPlus { entry: entry.clone(), attributes: None, handle: Some(Handle(vec![1])) };
    let listed: Outcome<Entries<EntryPlus>, PostOp> =
        Ok(Entries { entries: vec![plus.clone(), plus], is_end: true, ..Entries::default() });
    both_ways(&listed);
    let failed: Outcome<Entries<Entry>, PostOp> = Err(Failed { status: Status::STALE, rest: None });
    assert_eq!(both_ways(&failed), [0, 0, 0, 70, 0, 0, 0, 0]);
    let renamed: Outcome<RenameWcc, RenameWcc> =
        Err(Failed { status: Status(4711), rest: RenameWcc::default() });
    both_ways(&renamed);
}

#[test]
fn each_procedure_has_a_number() {
    assert_eq!((0..=21).filter(|&number| is_repeatable(number) == Some(false)).count(), 10);
    assert_eq!((is_repeatable(22), procedure_name(21), Commit::NUMBER), (None, "Commit", 21));
}
