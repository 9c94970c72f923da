//! Capture of each link as a pcapng file.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use inhost_base::{Instant, IpAddr};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::name_resolution::{Ipv4Record, Ipv6Record, NameResolutionBlock, Record};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};

use crate::link::LossCause;
use crate::network::{Seen, Watcher};
use crate::segment::ip_of;

/// Frames longer than this are cut.
const SNAP_BYTES: u32 = 65_535;
/// Timestamps are in nanoseconds.
const NANOSECONDS: u8 = 9;
/// A packet that the host received, and one that it sent: `epb_flags` of the format.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
/// Frames that are not written yet, since a comment may say that they were lost.
const HELD_FRAMES: usize = 256;
/// Bytes of the comments of a frame; what is more is left out. The format has 16 bits for the length.
const MAX_COMMENT_BYTES: usize = 60_000;

/// Writes every frame to a pcapng file: an interface for each end of each link at a host, and what came in and went
/// out there, as a capture on that host would show it. Use it as a [`Watcher`].
///
/// Hosts that have a name ([`Network::name_host`](crate::Network::name_host)) give it to their interfaces and, by name
/// resolution blocks, to their addresses. A frame that is lost says so in its comment. What befalls hosts and links is a comment
/// of the frame that follows, or of the last interface where none follows: a line `@TIME HOST LOCAL REMOTE WORDS`, as a flight
/// recorder writes it.
pub struct Capture<W: Write> {
    writer: Option<PcapNgWriter<W>>,
    /// By link and end.
    interfaces: BTreeMap<(usize, usize), Interface>,
    /// By host.
    names: BTreeMap<usize, String>,
    held: VecDeque<Held>,
    /// Lines for the next frame.
    lines: String,
    failed: Option<io::Error>,
}

struct Interface {
    number: u32,
    host: usize,
}

/// A frame that is not written yet.
struct Held {
    interface: u32,
    at: Instant,
    bytes: Vec<u8>,
    direction: u32,
    comment: String,
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
        Ok(Capture {
            writer: Some(writer),
            interfaces: BTreeMap::new(),
            names: BTreeMap::new(),
            held: VecDeque::new(),
            lines: String::new(),
            failed: None,
        })
    }
    /// Where the capture was written to, unless writing failed.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush();
        match (self.failed.take(), self.writer.take()) {
            (None, Some(writer)) => Ok(writer.into_inner()),
            (failed, _) => Err(failed.unwrap_or_else(|| io::Error::other("the capture is over"))),
        }
    }
    fn block<'a>(&mut self, block: impl PcapNgBlock<'a>) {
        let Some(writer) = &mut self.writer else { return };
        if let Err(why) = writer.write_pcapng_block(block) {
            // A disk that is full does not change the run; the error is reported at the end.
            self.failed.get_or_insert(io::Error::other(why));
            self.writer = None;
        }
    }
    /// The number of a link's end in the file.
    fn interface(&mut self, host: usize, frame: &Seen<'_>) -> u32 {
        if let Some(known) = self.interfaces.get(&(frame.link, frame.end)) {
            return known.number;
        }
        let is_first = self.interfaces.values().all(|known| known.host != host);
        let name = match is_first {
            true => self.name(host),
            false => format!("{} link {}", self.name(host), frame.link),
        };
        let number = self.interfaces.len() as u32;
        self.interfaces.insert((frame.link, frame.end), Interface { number, host });
        self.block(InterfaceDescriptionBlock {
            linktype: if frame.is_ethernet { DataLink::ETHERNET } else { DataLink::RAW },
            snaplen: SNAP_BYTES,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Owned(name)),
                InterfaceDescriptionOption::IfDescription(Cow::Owned(format!(
                    "link {} at host {host}",
                    frame.link
                ))),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        });
        number
    }
    fn name(&self, host: usize) -> String {
        self.names.get(&host).cloned().unwrap_or_else(|| format!("host-{host}"))
    }
    fn hold(&mut self, host: usize, frame: &Seen<'_>, direction: u32) {
        let interface = self.interface(host, frame);
        let mut comment = std::mem::take(&mut self.lines);
        if !frame.is_intact {
            add_line(&mut comment, "spoilt on the way");
        }
        if self.held.len() >= HELD_FRAMES {
            self.write_oldest();
        }
        self.held.push_back(Held {
            interface,
            at: frame.at,
            bytes: frame.bytes.to_vec(),
            direction,
            comment,
        });
    }
    fn write_oldest(&mut self) {
        let Some(Held { interface, at, bytes, direction, comment }) = self.held.pop_front() else { return };
        let mut options = vec![EnhancedPacketOption::Flags(direction)];
        if !comment.is_empty() {
            options.push(EnhancedPacketOption::Comment(Cow::Owned(comment)));
        }
        self.block(EnhancedPacketBlock {
            interface_id: interface,
            timestamp: std::time::Duration::from_nanos(at.as_nanos()),
            original_len: bytes.len() as u32,
            data: Cow::Owned(bytes),
            options,
        });
    }
    /// Writes what is held, and the lines for which no frame has come.
    fn flush(&mut self) {
        while !self.held.is_empty() {
            self.write_oldest();
        }
        let lines = std::mem::take(&mut self.lines);
        if !lines.is_empty() && !self.interfaces.is_empty() {
            self.block(InterfaceStatisticsBlock {
                interface_id: self.interfaces.len() as u32 - 1,
                timestamp: 0,
                options: vec![InterfaceStatisticsOption::Comment(Cow::Owned(lines))],
            });
        }
    }
}

impl<W: Write> Drop for Capture<W> {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Adds a line to a comment, as far as there is room.
fn add_line(comment: &mut String, line: &str) {
    if comment.len() + line.len() >= MAX_COMMENT_BYTES {
        return;
    }
    if !comment.is_empty() {
        comment.push('\n');
    }
    comment.push_str(line);
}

/// The line of a comment about a host, or about all of them, at a time.
fn line(at: Instant, host: Option<&str>, ends: Option<(IpAddr, IpAddr)>, words: &str) -> String {
    let host = host.map_or_else(|| "network".to_owned(), |host| host.replace(char::is_whitespace, "_"));
    match ends {
        Some((from, to)) => format!("@{} {host} {from} {to} {words}", at.as_nanos()),
        None => format!("@{} {host} - - {words}", at.as_nanos()),
    }
}

impl<W: Write> Watcher for Capture<W> {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        self.hold(host, frame, OUTBOUND);
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        self.hold(host, frame, INBOUND);
    }
    fn wants_losses(&self) -> bool {
        true
    }
    fn lost(&mut self, frame: &Seen<'_>, why: LossCause) {
        let ends = self.interfaces.range((frame.link, 0)..=(frame.link, usize::MAX));
        let hosts = ends.map(|(_, end)| self.name(end.host)).collect::<Vec<_>>().join(" and ");
        let of = if hosts.is_empty() { String::new() } else { format!(" of {hosts}") };
        let words = format!("lost on link {}{of}: {}", frame.link, why.text());
        let mut sent = self.held.iter_mut().rev().filter(|held| held.direction == OUTBOUND);
        if let Some(held) = sent.find(|held| held.bytes == frame.bytes) {
            return add_line(&mut held.comment, &line(frame.at, None, None, &words));
        }
        let ends = ip_of(frame).map(|(from, to, ..)| (from, to));
        let words = format!("a frame of {} bytes, {words}", frame.bytes.len());
        add_line(&mut self.lines, &line(frame.at, None, ends, &words));
    }
    fn named(&mut self, host: usize, name: &str, addresses: &[IpAddr]) {
        self.names.insert(host, name.to_owned());
        let record = |address: &IpAddr| {
            let names = vec![Cow::Owned(name.to_owned())];
            match address {
                IpAddr::V4(ip) => {
                    Record::Ipv4(Ipv4Record { ip_addr: Cow::Owned(ip.octets().to_vec()), names })
                }
                IpAddr::V6(ip) => {
                    Record::Ipv6(Ipv6Record { ip_addr: Cow::Owned(ip.octets().to_vec()), names })
                }
            }
        };
        self.block(NameResolutionBlock {
            records: addresses.iter().map(record).collect(),
            options: Vec::new(),
        });
    }
    fn noted(&mut self, at: Instant, host: Option<&str>, words: &str) {
        // A program's own words may have several lines.
        let words = words.replace('\n', " ");
        add_line(&mut self.lines, &line(at, host, None, &words));
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
