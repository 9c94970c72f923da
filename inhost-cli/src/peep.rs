//! `inhost peep`: a packet trace, of the running host or of captures.

use crate::args::{Peep, Times};
use crate::explain::print;
use crate::failure::Failure;
use crate::record::no_host;
use crate::style::Style;
use inhost_explain::capture::{Frame, LinkType, Reader};
use inhost_peep::filter::{Filter, FilterError};
use inhost_peep::{Conversation, Event, Hex, Time, Trace, View, events};
use inhost_runtime::control::{self, Client};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Connections whose events are shown, because a frame of theirs was chosen.
const MAX_CHOSEN: usize = 10_000;
/// Time stamps are in nanoseconds.
const NANOSECONDS: u8 = 9;

/// Runs the command.
pub fn run(arguments: &Peep) -> Result<(), Failure> {
    let text = arguments.filter.join(" ");
    let filter: Filter = text.parse().map_err(|why: FilterError| {
        Failure::usage(format!("the filter is not understood\n{}", why.shown(&text)))
    })?;
    let mut sources = sources(arguments)?;
    let is_live = arguments.read.is_empty();
    let mut output = Output::new(arguments, is_live)?;
    let is_one = sources.len() == 1;
    let (mut shown, mut first_ns) = (0, None);
    let mut chosen: BTreeSet<[String; 2]> = BTreeSet::new();
    while let Some((place, item)) = next(&mut sources)? {
        let name = (!is_one).then(|| sources[place].name.clone());
        match item {
            Item::Event(event) => {
                let is_chosen = match &event.ends {
                    Some(ends) => text.is_empty() || chosen.contains(&sorted(ends.clone())),
                    None => text.is_empty(),
                };
                if is_chosen {
                    output.event(&event)?;
                }
            }
            Item::Frame(owned) => {
                let frame = owned.frame();
                let since_ns = frame.at_ns.saturating_sub(*first_ns.get_or_insert(frame.at_ns));
                if arguments.seconds.is_some_and(|most| since_ns as f64 / 1e9 > most) {
                    break;
                }
                let is_chosen = filter.has(&frame);
                if let Some(ends) = output.frame(&frame, name.as_deref(), is_chosen)?
                    && chosen.len() < MAX_CHOSEN
                {
                    chosen.insert(sorted(ends.map(|end| end.to_string())));
                }
                shown += u64::from(is_chosen);
                if arguments.count.is_some_and(|most| shown >= most) {
                    break;
                }
            }
        }
    }
    output.end()
}

fn sorted(mut ends: [String; 2]) -> [String; 2] {
    ends.sort();
    ends
}

/// A frame that stays when the next is read.
struct Owned {
    number: u64,
    at_ns: u64,
    interface: u32,
    link: LinkType,
    bytes: Vec<u8>,
    original_bytes: u32,
    is_inbound: Option<bool>,
    comment: Option<Vec<u8>>,
}

impl Owned {
    fn frame(&self) -> Frame<'_> {
        let Owned { number, at_ns, interface, link, original_bytes, is_inbound, .. } = *self;
        let (bytes, comment) = (&self.bytes[..], self.comment.as_deref());
        Frame { number, at_ns, interface, link, bytes, original_bytes, is_inbound, comment }
    }
}

enum Item {
    Frame(Owned),
    Event(Event),
}

impl Item {
    fn at_ns(&self) -> u64 {
        match self {
            Item::Frame(frame) => frame.at_ns,
            Item::Event(event) => event.at_ns,
        }
    }
}

/// Where frames come from.
struct Source {
    name: String,
    reader: Reader<Box<dyn Read>>,
    /// What its clock is behind the others.
    shift_ns: i64,
    waiting: VecDeque<Item>,
    is_over: bool,
}

impl Source {
    fn new(name: String, from: Box<dyn Read>, shift_ns: i64) -> Result<Source, Failure> {
        let reader = Reader::new(from).map_err(|why| Failure::operation(format!("{name}: {why}")))?;
        Ok(Source { name, reader, shift_ns, waiting: VecDeque::new(), is_over: false })
    }
    /// Sees to it that something waits, unless all is over.
    fn fill(&mut self) -> Result<(), Failure> {
        if self.is_over || !self.waiting.is_empty() {
            return Ok(());
        }
        let frame =
            self.reader.next_frame().map_err(|why| Failure::operation(format!("{}: {why}", self.name)))?;
        let Some(frame) = frame else {
            self.is_over = true;
            return Ok(());
        };
        let shifted = |at_ns: u64| at_ns.saturating_add_signed(self.shift_ns);
        for mut event in frame.comment.map(|comment| events(comment, frame.at_ns)).unwrap_or_default() {
            event.at_ns = shifted(event.at_ns);
            self.waiting.push_back(Item::Event(event));
        }
        self.waiting.push_back(Item::Frame(Owned {
            number: frame.number,
            at_ns: shifted(frame.at_ns),
            interface: frame.interface,
            link: frame.link,
            bytes: frame.bytes.to_vec(),
            original_bytes: frame.original_bytes,
            is_inbound: frame.is_inbound,
            comment: frame.comment.map(<[u8]>::to_vec),
        }));
        Ok(())
    }
}

/// The earliest thing that any source has, and which.
fn next(sources: &mut [Source]) -> Result<Option<(usize, Item)>, Failure> {
    for source in sources.iter_mut() {
        source.fill()?;
    }
    let earliest = |(place, source): (usize, &Source)| Some((source.waiting.front()?.at_ns(), place));
    let Some((_, place)) = sources.iter().enumerate().filter_map(earliest).min() else { return Ok(None) };
    Ok(sources[place].waiting.pop_front().map(|item| (place, item)))
}

fn sources(arguments: &Peep) -> Result<Vec<Source>, Failure> {
    if arguments.read.is_empty() {
        let path = arguments.via.clone().unwrap_or_else(control::default_path);
        let mut client = Client::open(&path).map_err(|why| no_host(&path, why))?;
        let request = json!({"op": "watch", "states": arguments.states, "past": arguments.past});
        let (_, stream) = client
            .request(&request)
            .map_err(|why| Failure::operation(format!("the host is not to be watched: {why}")))?;
        let stream = stream.ok_or_else(|| Failure::operation("the host sent no stream"))?;
        return Ok(vec![Source::new("the host".to_owned(), Box::new(File::from(stream)), 0)?]);
    }
    let source = |path: &std::path::PathBuf| {
        let name = path.display().to_string();
        let shift = arguments.shift.iter().find_map(|shift| shift.strip_prefix(&name)?.strip_prefix('='));
        let shift_ms: f64 = shift.map_or(Ok(0.0), str::parse).map_err(|_| {
            Failure::usage(format!("the shift of {name} is not a number of milliseconds, such as {name}=2.5"))
        })?;
        let from: Box<dyn Read> = match path.to_str() {
            Some("-") => Box::new(io::stdin()),
            _ => {
                let file = File::open(path).map_err(|why| Failure::operation(format!("{name}: {why}")))?;
                Box::new(BufReader::with_capacity(1 << 20, file))
            }
        };
        let short = path.file_stem().map_or(name, |stem| stem.to_string_lossy().into_owned());
        Source::new(short, from, (shift_ms * 1e6) as i64)
    };
    arguments.read.iter().map(source).collect()
}

/// Where what is chosen goes.
struct Output {
    trace: Trace,
    style: Style,
    json: bool,
    stream: Option<Conversation>,
    file: Option<Saved>,
    /// Lines of files wait until there are many.
    text: String,
    is_live: bool,
}

impl Output {
    fn new(arguments: &Peep, is_live: bool) -> Result<Output, Failure> {
        let view = View {
            time: match arguments.time {
                Times::Clock => Time::Clock,
                Times::Relative => Time::Relative,
                Times::Delta => Time::Delta,
            },
            is_verbose: arguments.verbose,
            hex: match (arguments.hex, arguments.ebcdic) {
                (true, _) => Some(Hex::Ascii),
                (_, true) => Some(Hex::Ebcdic),
                _ => None,
            },
            is_absolute: arguments.absolute,
        };
        let stream = match &arguments.stream {
            None => None,
            Some(text) => {
                let ends: Option<Vec<SocketAddr>> = text.split('-').map(|end| end.parse().ok()).collect();
                let ends = ends.and_then(|ends| <[SocketAddr; 2]>::try_from(ends).ok()).ok_or_else(|| {
                    let expected = "give two ends with a hyphen, such as 10.9.0.1:23-10.9.0.2:1025";
                    Failure::usage(format!("{text:?} is not a connection; {expected}"))
                })?;
                Some(Conversation::new(ends))
            }
        };
        let file = arguments.write.as_deref().map(|path| Saved::create(path, is_live)).transpose()?;
        let (trace, style) = (Trace::new(view), Style::of(&io::stdout()));
        Ok(Output { trace, style, json: arguments.json, stream, file, text: String::new(), is_live })
    }
    /// Takes a frame; the ends of one that is chosen.
    fn frame(
        &mut self,
        frame: &Frame<'_>,
        host: Option<&str>,
        is_chosen: bool,
    ) -> Result<Option<[SocketAddr; 2]>, Failure> {
        if !is_chosen {
            // The numbers of later frames follow from it.
            self.trace.pass(frame);
            return Ok(None);
        }
        let decoded = self.trace.decode(frame);
        let ends = decoded.ends;
        if let Some(stream) = &mut self.stream {
            self.text.push_str(&stream.take(frame, &decoded.payload));
            return self.flush().map(|()| ends);
        }
        if let Some(file) = &mut self.file {
            file.add(frame)?;
            return Ok(ends);
        }
        if self.json {
            self.text.push_str(&self.trace.json(frame, &decoded, host).to_string());
        } else {
            let line = self.trace.text(frame, &decoded, host);
            // Both directions have one colour.
            let number = ends.map_or(0, |[one, other]| usize::from(one.port() ^ other.port()));
            self.text.push_str(&self.style.one_of_many(number, &line));
        }
        self.text.push('\n');
        self.flush().map(|()| ends)
    }
    fn event(&mut self, event: &Event) -> Result<(), Failure> {
        if self.stream.is_some() || self.file.is_some() {
            return Ok(());
        }
        let line = match self.json {
            true => {
                let Event { at_ns, host, ends, words } = event;
                json!({"at_ns": at_ns, "host": host, "ends": ends, "event": words}).to_string()
            }
            false => self.style.warning(&self.trace.event(event)),
        };
        self.text.push_str(&line);
        self.text.push('\n');
        self.flush()
    }
    fn flush(&mut self) -> Result<(), Failure> {
        if self.is_live || self.text.len() > 1 << 16 {
            print(&std::mem::take(&mut self.text))?;
        }
        Ok(())
    }
    fn end(mut self) -> Result<(), Failure> {
        print(&std::mem::take(&mut self.text))?;
        self.file.map_or(Ok(()), Saved::end)
    }
}

/// A pcapng file that is written.
struct Saved {
    path: String,
    writer: PcapNgWriter<BufWriter<File>>,
    /// By the number of the interface in its source, and its link type.
    interfaces: Vec<(u32, LinkType)>,
    frames: u64,
    is_live: bool,
}

impl Saved {
    fn create(path: &Path, is_live: bool) -> Result<Saved, Failure> {
        let name = path.display().to_string();
        let failed = |why: String| Failure::operation(format!("{name}: {why}"));
        let file = File::create(path).map_err(|why| failed(why.to_string()))?;
        let writer = PcapNgWriter::new(BufWriter::new(file)).map_err(|why| failed(why.to_string()))?;
        Ok(Saved { path: name, writer, interfaces: Vec::new(), frames: 0, is_live })
    }
    fn add(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        self.try_add(frame).map_err(|why| Failure::operation(format!("{}: {why}", self.path)))
    }
    fn try_add(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        let linktype = match frame.link {
            LinkType::Ethernet => DataLink::ETHERNET,
            LinkType::Cooked => DataLink::LINUX_SLL,
            LinkType::Ip => DataLink::RAW,
            LinkType::Loopback => DataLink::NULL,
            LinkType::Cooked2 => DataLink::LINUX_SLL2,
            other => return Err(format!("frames of {other:?} cannot be written")),
        };
        let key = (frame.interface, frame.link);
        let found = self.interfaces.iter().position(|known| *known == key);
        let interface_id = match found {
            Some(found) => found as u32,
            None => {
                let options = vec![InterfaceDescriptionOption::IfTsResol(NANOSECONDS)];
                let block = InterfaceDescriptionBlock { linktype, snaplen: 0, options };
                self.writer.write_pcapng_block(block).map_err(|why| why.to_string())?;
                self.interfaces.push(key);
                self.interfaces.len() as u32 - 1
            }
        };
        let mut options = Vec::new();
        options.extend(
            frame.is_inbound.map(|is_inbound| EnhancedPacketOption::Flags(if is_inbound { 1 } else { 2 })),
        );
        let comment = frame.comment.map(String::from_utf8_lossy);
        options
            .extend(comment.map(|comment| EnhancedPacketOption::Comment(Cow::Owned(comment.into_owned()))));
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(frame.at_ns),
            original_len: frame.original_bytes,
            data: Cow::Borrowed(frame.bytes),
            options,
        };
        self.writer.write_pcapng_block(block).map_err(|why| why.to_string())?;
        self.frames += 1;
        if self.is_live {
            self.writer.get_mut().flush().map_err(|why| why.to_string())?;
        }
        Ok(())
    }
    fn end(mut self) -> Result<(), Failure> {
        let done = self.writer.get_mut().flush();
        done.map_err(|why| Failure::operation(format!("{}: {why}", self.path)))?;
        if !io::stdout().is_terminal() {
            return Ok(());
        }
        print(&format!("{} frames written to {}\n", self.frames, self.path))
    }
}
