//! What is held, as pcapng.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use inhost_base::{Endpoint, Instant, Key, LinkId};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};

use crate::ends::Selection;
use crate::frames::{HEAD_BYTES, Head};
use crate::notes::{Note, Whose};
use crate::recorder::Recorder;

/// Time stamps are in nanoseconds.
const NANOSECONDS: u8 = 9;
/// A packet that the host received, and one that it sent: `epb_flags` of the format.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
/// Bytes of the comments of a frame; what is more is left out. The format has 16 bits for the length.
const MAX_COMMENT_BYTES: usize = 60_000;

/// A pcapng file in the making, by one recorder.
pub struct Writer<W: Write> {
    file: PcapNgWriter<W>,
    interfaces: Vec<LinkId>,
    /// The number of the next note.
    next_note: u64,
    /// Lines of notes that wait for a frame.
    lines: String,
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Frames that were written.
    pub frames: u64,
    /// Frames that had been overwritten before.
    pub lost: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn new(to: W) -> io::Result<Writer<W>> {
        let file = PcapNgWriter::new(to).map_err(io::Error::other)?;
        Ok(Writer { file, interfaces: Vec::new(), next_note: 0, lines: String::new() })
    }
    /// The file so far, to be taken from or flushed.
    pub fn get_mut(&mut self) -> &mut W {
        self.file.get_mut()
    }
    /// The file.
    pub fn into_inner(self) -> W {
        self.file.into_inner()
    }
    /// Adds a line to the comment of the next frame; [`Recorder::line`] makes one.
    pub fn comment(&mut self, line: &str) {
        if self.lines.len() + line.len() < MAX_COMMENT_BYTES {
            if !self.lines.is_empty() {
                self.lines.push('\n');
            }
            self.lines.push_str(line);
        }
    }
    /// The number of a link in the file.
    fn interface(&mut self, recorder: &Recorder, link: LinkId) -> io::Result<Option<u32>> {
        if let Some(found) = self.interfaces.iter().position(|&known| known == link) {
            return Ok(Some(found as u32));
        }
        let Some(name) = recorder.link_name(link) else { return Ok(None) };
        let name = format!("{} {name}", recorder.config().host);
        let block = InterfaceDescriptionBlock {
            linktype: if recorder.is_ethernet(link) { DataLink::ETHERNET } else { DataLink::RAW },
            snaplen: HEAD_BYTES as u32,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Owned(name)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        self.file.write_pcapng_block(block).map_err(io::Error::other)?;
        self.interfaces.push(link);
        Ok(Some(self.interfaces.len() as u32 - 1))
    }
    fn frame(&mut self, recorder: &Recorder, head: &Head, lines: &str) -> io::Result<bool> {
        let Some(interface_id) = self.interface(recorder, head.link())? else { return Ok(false) };
        let mut options = vec![EnhancedPacketOption::Flags(if head.is_sent() { OUTBOUND } else { INBOUND })];
        if !lines.is_empty() {
            options.push(EnhancedPacketOption::Comment(Cow::Borrowed(lines)));
        }
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(recorder.unix_ns(head.at())),
            original_len: head.frame_bytes(recorder.is_ethernet(head.link())),
            data: Cow::Borrowed(head.bytes()),
            options,
        };
        self.file.write_pcapng_block(block).map_err(io::Error::other)?;
        Ok(true)
    }
}

impl Recorder {
    /// Writes the frames from number `from` on that are held and meant, with the events before each as comments; those
    /// behind the last frame go to it. `from` is moved behind them. `ends` tells the ends of a socket that is open.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write<W: Write>(
        &self,
        writer: &mut Writer<W>,
        from: &mut u64,
        selection: &Selection,
        ends: &dyn Fn(Key) -> Option<(Endpoint, Endpoint)>,
    ) -> io::Result<Written> {
        let (frames, notes) = (self.frames(), self.notes());
        let first = frames.oldest().max(*from);
        let mut written = Written { frames: 0, lost: first - *from };
        let mut notes_left = notes.since(writer.next_note).peekable();
        // Each socket is asked for once: there may be thousands of notes.
        let (connected, asked) = (notes.connected(), RefCell::new(BTreeMap::new()));
        let ends = |socket| ends(socket).or_else(|| connected.get(&socket).copied());
        let line = |note: &Note| {
            let found = match note.whose() {
                Whose::Ends(local, remote) => Some((local, remote)),
                Whose::Socket(socket) => *asked.borrow_mut().entry(socket).or_insert_with(|| ends(socket)),
                Whose::Host => None,
            };
            let is_meant = match found {
                Some((local, remote)) => selection.has(local, remote),
                None => selection.is_all(),
            };
            is_meant.then(|| self.line(note.at(), found, &note.words()))
        };
        let mut held: Option<(&Head, String)> = None;
        for number in first..frames.next() {
            let Some(head) = frames.find(number) else { continue };
            while let Some(note) = notes_left.next_if(|note| note.is_before(number)) {
                line(note).iter().for_each(|line| writer.comment(line));
            }
            if !selection.has_frame(head.bytes(), self.is_ethernet(head.link())) {
                continue;
            }
            if let Some((head, lines)) = held.replace((head, std::mem::take(&mut writer.lines))) {
                written.frames += u64::from(writer.frame(self, head, &lines)?);
            }
        }
        if let Some((head, lines)) = held {
            let rest = std::mem::replace(&mut writer.lines, lines);
            (!rest.is_empty()).then(|| writer.comment(&rest));
            notes_left.filter_map(line).for_each(|line| writer.comment(&line));
            writer.next_note = notes.next();
            let lines = std::mem::take(&mut writer.lines);
            written.frames += u64::from(writer.frame(self, head, &lines)?);
        } else {
            writer.next_note = notes.next() - notes_left.count() as u64;
        }
        *from = frames.next();
        Ok(written)
    }
    /// Nanoseconds since 1970.
    pub fn unix_ns(&self, at: Instant) -> u64 {
        self.config().epoch_ns.saturating_add(at.since(Instant::ZERO).as_nanos())
    }
    /// The line of a comment that tells `words` of the connection between two ends, or of the host.
    pub fn line(&self, at: Instant, ends: Option<(Endpoint, Endpoint)>, words: &str) -> String {
        let (at, host) = (self.unix_ns(at), &self.config().host);
        match ends {
            Some((local, remote)) => format!("@{at} {host} {local} {remote} {words}"),
            None => format!("@{at} {host} - - {words}"),
        }
    }
}
