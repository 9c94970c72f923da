//! A pcapng file of chosen frames, with the events of hosts as comments.

use crate::failure::Failure;
use inhost_explain::capture::{Frame, LinkType};
use inhost_peep::Event;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time stamps are in nanoseconds.
const NANOSECONDS: u8 = 9;
/// Bytes of the comment of a frame; the format has 16 bits for the length. What is more is left out.
const MAX_COMMENT_BYTES: usize = 60_000;
const BUFFER_BYTES: usize = 256 << 10;

/// A file that is written.
pub struct Saved {
    path: String,
    writer: PcapNgWriter<BufWriter<Box<dyn Write>>>,
    /// By the number of the interface in its source, the source and the link type.
    interfaces: Vec<(u32, Option<String>, LinkType)>,
    /// The latest frame, which waits for the events behind it.
    held: Option<Held>,
    /// Events since that frame, a line each.
    lines: String,
    is_live: bool,
}

#[derive(Default)]
struct Held {
    interface_id: u32,
    at_ns: u64,
    original_bytes: u32,
    bytes: Vec<u8>,
    is_inbound: Option<bool>,
    comment: String,
}

impl Saved {
    /// Begins a file, which must not be one of those that are read; - is standard output.
    pub fn create(path: &Path, read: &[PathBuf], is_live: bool) -> Result<Saved, Failure> {
        let name = path.display().to_string();
        let failed = |why: String| Failure::operation(format!("{name}: {why}"));
        let is_read = |other: &PathBuf| same_file::is_same_file(path, other).unwrap_or(false);
        if path.as_os_str() != "-" && read.iter().any(is_read) {
            return Err(Failure::usage(format!("{name} is read: write into another file (-w)")));
        }
        let mut private = OpenOptions::new();
        private.write(true).create(true).truncate(true).mode(0o600);
        let to: Box<dyn Write> = match path.to_str() {
            Some("-") => Box::new(io::stdout()),
            // Frames have what people typed, passwords among that.
            _ => Box::new(private.open(path).map_err(|why| failed(why.to_string()))?),
        };
        let writer = PcapNgWriter::new(BufWriter::with_capacity(BUFFER_BYTES, to));
        let writer = writer.map_err(|why| failed(reason(why)))?;
        Ok(Saved { path: name, writer, interfaces: Vec::new(), held: None, lines: String::new(), is_live })
    }
    /// Adds a frame that `host` has seen.
    pub fn add(&mut self, frame: &Frame<'_>, host: Option<&str>) -> Result<(), Failure> {
        self.try_add(frame, host).map_err(|why| self.failed(&why))
    }
    /// Adds an event to the comment of the next frame, or of the last one.
    pub fn event(&mut self, event: &Event) {
        let line = event.line();
        if self.lines.len() + line.len() < MAX_COMMENT_BYTES {
            if !self.lines.is_empty() {
                self.lines.push('\n');
            }
            self.lines.push_str(&line);
        }
    }
    fn try_add(&mut self, frame: &Frame<'_>, host: Option<&str>) -> Result<(), String> {
        let interface_id = self.interface(frame, host)?;
        let mut held = self.held.take().unwrap_or_default();
        if !held.bytes.is_empty() {
            self.put(&held)?;
        }
        held.bytes.clear();
        held.bytes.extend_from_slice(frame.bytes);
        let (at_ns, original_bytes, is_inbound) = (frame.at_ns, frame.original_bytes, frame.is_inbound);
        let (bytes, comment) = (held.bytes, std::mem::take(&mut self.lines));
        self.held = Some(Held { interface_id, at_ns, original_bytes, bytes, is_inbound, comment });
        if self.is_live {
            // Who reads along sees it at once.
            self.put_held()?;
            self.writer.get_mut().flush().map_err(|why| unwritten(&why))?;
        }
        Ok(())
    }
    /// The number of a frame's interface in the file.
    fn interface(&mut self, frame: &Frame<'_>, host: Option<&str>) -> Result<u32, String> {
        let is_this = |(interface, name, link): &(u32, Option<String>, LinkType)| {
            *interface == frame.interface && *link == frame.link && name.as_deref() == host
        };
        if let Some(found) = self.interfaces.iter().position(is_this) {
            return Ok(found as u32);
        }
        let linktype = match frame.link {
            LinkType::Ethernet => DataLink::ETHERNET,
            LinkType::Cooked => DataLink::LINUX_SLL,
            LinkType::Ip => DataLink::RAW,
            LinkType::Loopback => DataLink::NULL,
            LinkType::Cooked2 => DataLink::LINUX_SLL2,
            other => return Err(format!("frames of {other:?} cannot be written")),
        };
        let name = host.map(|host| InterfaceDescriptionOption::IfName(Cow::Borrowed(host)));
        let mut options = vec![InterfaceDescriptionOption::IfTsResol(NANOSECONDS)];
        options.extend(name);
        let block = InterfaceDescriptionBlock { linktype, snaplen: 0, options };
        self.writer.write_pcapng_block(block).map_err(reason)?;
        self.interfaces.push((frame.interface, host.map(str::to_owned), frame.link));
        Ok(self.interfaces.len() as u32 - 1)
    }
    fn put(&mut self, held: &Held) -> Result<(), String> {
        let inbound =
            held.is_inbound.map(|is_inbound| EnhancedPacketOption::Flags(if is_inbound { 1 } else { 2 }));
        let comment = (!held.comment.is_empty())
            .then_some(EnhancedPacketOption::Comment(Cow::Borrowed(held.comment.as_str())));
        let block = EnhancedPacketBlock {
            interface_id: held.interface_id,
            timestamp: Duration::from_nanos(held.at_ns),
            original_len: held.original_bytes,
            data: Cow::Borrowed(&held.bytes),
            options: inbound.into_iter().chain(comment).collect(),
        };
        self.writer.write_pcapng_block(block).map(|_| ()).map_err(reason)
    }
    fn put_held(&mut self) -> Result<(), String> {
        self.held.take().map_or(Ok(()), |held| self.put(&held))
    }
    /// Writes what waits.
    pub fn end(mut self) -> Result<(), Failure> {
        if let Some(held) = &mut self.held {
            if !held.comment.is_empty() && !self.lines.is_empty() {
                held.comment.push('\n');
            }
            held.comment.push_str(&self.lines);
            held.comment.truncate(held.comment.floor_char_boundary(MAX_COMMENT_BYTES));
        }
        let done = self.put_held();
        let done = done.and_then(|()| self.writer.get_mut().flush().map_err(|why| unwritten(&why)));
        done.map_err(|why| self.failed(&why))
    }
    fn failed(&self, why: &str) -> Failure {
        Failure::operation(format!("{}: {why}", self.path))
    }
}

fn unwritten(why: &io::Error) -> String {
    format!("{why}; the file ends within a frame")
}

/// Why a block was not written. The library speaks of reading in either case.
fn reason(why: PcapError) -> String {
    match why {
        PcapError::IoError(why) => unwritten(&why),
        other => other.to_string(),
    }
}
