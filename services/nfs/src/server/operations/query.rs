//! Procedures that only tell something.

use super::super::access::Identity;
use super::super::{BEST_BYTES, DATAGRAM_DATA_BYTES};
use super::Session;
use crate::codec::nfs::{
    AccessArguments, Allowed, AttributesOf, DATA_BYTES, Data, Failed, FileType, Found, Information,
    LinkTarget, Named as NamedArguments, Object, Outcome, PathLimits, PostOp, ReadArguments, ReadData,
    Statistics, Status, Target, properties,
};

/// Names that a file may have.
const LINKS_MOST: u32 = 65_000;
/// Octets of a name.
const NAME_MOST: u32 = 255;
/// READ and WRITE go best in whole pages.
const PAGE_BYTES: u32 = 4096;

impl Session<'_> {
    /// Octets of a READ or WRITE at most.
    pub(super) fn data_limit(&self) -> usize {
        if self.caller.is_datagram { DATAGRAM_DATA_BYTES } else { DATA_BYTES }
    }

    pub(super) fn attributes(&self, asked: &Object) -> Outcome<AttributesOf, ()> {
        let attributes = self.named(&asked.handle).and_then(|named| named.attributes());
        attributes.map(|attributes| AttributesOf { attributes }).map_err(|status| Failed { status, rest: () })
    }

    pub(super) fn lookup(&self, asked: &NamedArguments) -> Outcome<Found, PostOp> {
        let place = &asked.place;
        let found = self.telling(&place.directory, |directory, attributes| {
            if attributes.kind != FileType::Directory {
                return Err(Status::NOTDIR);
            }
            if !directory.identity.may_look_up(attributes) {
                return Err(Status::ACCES);
            }
            let tree = &directory.export.tree;
            let known = match place.name.0.as_slice() {
                b"." => super::Known { key: directory.key.clone(), attributes: *attributes },
                b".." => tree.parent(&directory.key)?,
                name => tree.lookup(&directory.key, name)?,
            };
            Ok((self.handle(&directory.export, &known), known.attributes))
        });
        let ((object, attributes), directory) = found?;
        Ok(Found { object, attributes: Some(attributes), directory })
    }

    pub(super) fn access(&self, asked: &AccessArguments) -> Outcome<Allowed, PostOp> {
        let allowed = self.telling(&asked.object, |named, attributes| {
            let is_read_only = !named.export.rules.is_writable;
            Ok(named.identity.access(attributes, asked.access, is_read_only))
        });
        allowed.map(|(access, attributes)| Allowed { attributes, access })
    }

    pub(super) fn read_link(&self, asked: &Object) -> Outcome<LinkTarget, PostOp> {
        let target = self.telling(&asked.handle, |named, _| named.export.tree.read_link(&named.key));
        target.map(|(target, attributes)| LinkTarget { attributes, target: Target(target) })
    }

    pub(super) fn read(&self, asked: &ReadArguments) -> Outcome<ReadData, PostOp> {
        let named = self.named(&asked.file).map_err(|status| Failed { status, rest: None })?;
        let count = self.data_limit().min(asked.count as usize);
        let failed = |status| Failed { status, rest: named.after() };
        let (octets, attributes) = named.export.tree.read(&named.key, asked.offset, count).map_err(failed)?;
        // Checked behind the reading: the attributes are there, and nothing was told yet.
        if !Identity::may_read(&named.identity, &attributes) {
            return Err(Failed { status: Status::ACCES, rest: Some(attributes) });
        }
        let is_end = asked.offset.saturating_add(octets.len() as u64) >= attributes.size_bytes;
        let count = octets.len() as u32;
        Ok(ReadData { attributes: Some(attributes), count, is_end, data: Data(octets) })
    }

    pub(super) fn statistics(&self, asked: &Object) -> Outcome<Statistics, PostOp> {
        let told = self.telling(&asked.handle, |named, _| named.export.tree.statistics());
        told.map(|(statistics, attributes)| Statistics { attributes, ..statistics })
    }

    pub(super) fn information(&self, asked: &Object) -> Outcome<Information, PostOp> {
        let told = self.telling(&asked.handle, |named, _| Ok(named.export.tree.time_step()));
        let (most, best) = (self.data_limit(), self.data_limit().min(BEST_BYTES));
        told.map(|(time_step, attributes)| Information {
            attributes,
            read_most: most as u32,
            read_best: best as u32,
            read_multiple: PAGE_BYTES,
            write_most: most as u32,
            write_best: best as u32,
            write_multiple: PAGE_BYTES,
            directory_best: DATAGRAM_DATA_BYTES as u32,
            file_most: i64::MAX.cast_unsigned(),
            time_step,
            properties: properties::LINK
                | properties::SYMLINK
                | properties::HOMOGENEOUS
                | properties::CAN_SET_TIME,
        })
    }

    pub(super) fn path_limits(&self, asked: &Object) -> Outcome<PathLimits, PostOp> {
        self.telling(&asked.handle, |_, _| Ok(())).map(|((), attributes)| PathLimits {
            attributes,
            links_most: LINKS_MOST,
            name_most: NAME_MOST,
            no_truncation: true,
            chown_restricted: true,
            case_insensitive: false,
            case_preserving: true,
        })
    }
}
