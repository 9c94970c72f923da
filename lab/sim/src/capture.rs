//! Capture of each link as a pcapng file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};

use crate::network::{Seen, Watcher};

/// Frames longer than this are cut.
const SNAP_BYTES: u32 = 65_535;
/// Timestamps are in nanoseconds.
const NANOSECONDS: u8 = 9;
/// A packet that the host received, and one that it sent: `epb_flags` of the format.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Writes every frame to a pcapng file: an interface for each end of each link at a host, and what came in and went
/// out there, as a capture on that host would show it. Use it as a [`Watcher`].
pub struct Capture<W: Write> {
    writer: Option<PcapNgWriter<W>>,
    /// By link and end.
    interfaces: BTreeMap<(usize, usize), u32>,
    failed: Option<io::Error>,
}

impl Capture<BufWriter<File>> {
    /// A capture into a new file.
    pub fn create(path: &Path) -> io::Result<Self> {
        Capture::new(BufWriter::new(File::create(path)?))
    }
}

impl<W: Write> Capture<W> {
    /// A capture into `writer`.
    pub fn new(writer: W) -> io::Result<Self> {
        let writer = PcapNgWriter::new(writer).map_err(io::Error::other)?;
        Ok(Capture { writer: Some(writer), interfaces: BTreeMap::new(), failed: None })
    }
    /// Path of the capture, unless writing failed.
    pub fn finish(mut self) -> io::Result<W> {
        match (self.failed.take(), self.writer.take()) {
            (None, Some(writer)) => Ok(writer.into_inner()),
            (failed, _) => Err(failed.unwrap_or_else(|| io::Error::other("the capture is over"))),
        }
    }
    fn write(&mut self, host: usize, frame: &Seen<'_>, direction: u32) {
        if let Err(why) = self.try_write(host, frame, direction) {
            // A disk that is full does not change the run; the error is reported at the end.
            self.failed.get_or_insert(io::Error::other(why));
            self.writer = None;
        }
    }
    fn try_write(&mut self, host: usize, frame: &Seen<'_>, direction: u32) -> pcap_file::PcapResult<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let next = self.interfaces.len() as u32;
        let interface_id = *self.interfaces.entry((frame.link, frame.end)).or_insert(next);
        if interface_id == next {
            let linktype = if frame.is_ethernet { DataLink::ETHERNET } else { DataLink::RAW };
            let name = format!("link {} at host {host}", frame.link);
            writer.write_pcapng_block(InterfaceDescriptionBlock {
                linktype,
                snaplen: SNAP_BYTES,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Owned(name)),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            })?;
        }
        let mut options = vec![EnhancedPacketOption::Flags(direction)];
        if !frame.is_intact {
            options.push(EnhancedPacketOption::Comment(Cow::Borrowed("spoilt on the way")));
        }
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id,
            timestamp: std::time::Duration::from_nanos(frame.at.as_nanos()),
            original_len: frame.bytes.len() as u32,
            data: Cow::Borrowed(frame.bytes),
            options,
        })?;
        Ok(())
    }
}

impl<W: Write> Watcher for Capture<W> {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        self.write(host, frame, OUTBOUND);
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        self.write(host, frame, INBOUND);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Instant;
    use pcap_file::pcapng::PcapNgReader;

    #[test]
    fn frames_are_found_again_at_their_time_and_place() {
        let mut capture = Capture::new(Vec::new()).unwrap();
        let at = Instant::from_nanos(1_234_567_891);
        let frame =
            Seen { at, link: 3, end: 1, bytes: &[0x45, 1, 2, 3, 4], is_ethernet: false, is_intact: true };
        capture.sent(7, &frame);
        capture.delivered(7, &Seen { is_intact: false, ..frame });
        capture.sent(2, &Seen { end: 0, is_ethernet: true, ..frame });
        let file = capture.finish().unwrap();
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Some(packet) = block.unwrap().into_owned().into_enhanced_packet() {
                packets.push((packet.interface_id, packet.timestamp.as_nanos(), packet.data.into_owned()));
            }
        }
        let bytes = vec![0x45, 1, 2, 3, 4];
        let at = 1_234_567_891;
        assert_eq!(packets, [(0, at, bytes.clone()), (0, at, bytes.clone()), (1, at, bytes)]);
        let interfaces = reader.interfaces();
        assert_eq!((interfaces[0].linktype, interfaces[1].linktype), (DataLink::RAW, DataLink::ETHERNET));
    }
}
