//! Where what is chosen goes: lines, JSON, the text of a connection, a file.

use crate::args::{Peep, Times};
use crate::failure::Failure;
use crate::style::Style;
use inhost_explain::capture::Frame;
use inhost_peep::{Conversation, Event, Hex, Time, Trace, View, qlog};
use std::io::{self, Write};
use std::net::SocketAddr;

use super::save::Saved;

/// Lines of files wait until there are so many bytes.
const FLUSHED_BYTES: usize = 1 << 16;

/// Where what is chosen goes.
pub struct Output {
    trace: Trace,
    style: Style,
    form: Form,
    text: String,
    is_live: bool,
    /// Nobody reads any more.
    is_closed: bool,
}

enum Form {
    Lines,
    Json,
    Qlog,
    Stream(Box<Conversation>),
    File(Box<Saved>),
}

impl Output {
    /// As the arguments have it.
    pub fn new(arguments: &Peep, is_live: bool) -> Result<Output, Failure> {
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
        let form = if let Some(text) = &arguments.stream {
            Form::Stream(Box::new(Conversation::new(ends(text)?, arguments.raw)))
        } else if let Some(path) = &arguments.write {
            Form::File(Box::new(Saved::create(path, &arguments.read, is_live)?))
        } else if arguments.json {
            Form::Json
        } else if arguments.qlog {
            Form::Qlog
        } else {
            Form::Lines
        };
        let (trace, style) = (Trace::new(view), Style::of(&io::stdout()));
        let text = if matches!(form, Form::Qlog) { qlog::head() } else { String::new() };
        Ok(Output { trace, style, form, text, is_live, is_closed: false })
    }
    /// Nobody reads any more, as behind `| head`.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }
    /// Takes a frame that `host` has seen; the ends of one that is chosen.
    pub fn frame(
        &mut self,
        frame: &Frame<'_>,
        host: Option<&str>,
        is_chosen: bool,
    ) -> Result<Option<[SocketAddr; 2]>, Failure> {
        if !is_chosen {
            // The numbers of later frames follow from it.
            if matches!(self.form, Form::Lines | Form::Json) {
                self.trace.pass(frame);
            }
            return Ok(None);
        }
        if let Form::File(file) = &mut self.form {
            file.add(frame, host)?;
            return Ok(inhost_peep::ends(frame));
        }
        if let Form::Qlog = &self.form {
            self.text.extend(qlog::frame(frame, host));
            return self.flush().map(|()| inhost_peep::ends(frame));
        }
        let decoded = self.trace.decode(frame);
        let ends = decoded.ends;
        match &mut self.form {
            Form::Stream(stream) => self.text.push_str(&stream.take(frame, &decoded.payload)),
            Form::Json => {
                self.text.push_str(&self.trace.json(frame, &decoded, host).to_string());
                self.text.push('\n');
            }
            _ => {
                let line = self.trace.text(frame, &decoded, host);
                // Both directions have one colour.
                let number = ends.map_or(0, |[one, other]| usize::from(one.port() ^ other.port()));
                self.text.push_str(&self.style.one_of_many(number, &line));
                self.text.push('\n');
            }
        }
        self.flush().map(|()| ends)
    }
    /// Takes an event.
    pub fn event(&mut self, event: &Event) -> Result<(), Failure> {
        let line = match &mut self.form {
            Form::Stream(_) => return Ok(()),
            Form::File(file) => {
                file.event(event);
                return Ok(());
            }
            Form::Qlog => {
                self.text.push_str(&qlog::event(event));
                return self.flush();
            }
            Form::Json => event.json().to_string(),
            Form::Lines => self.style.warning(&self.trace.event(event)),
        };
        self.text.push_str(&line);
        self.text.push('\n');
        self.flush()
    }
    fn flush(&mut self) -> Result<(), Failure> {
        if self.is_live || self.text.len() > FLUSHED_BYTES {
            self.print()?;
        }
        Ok(())
    }
    fn print(&mut self) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let done = out.write_all(self.text.as_bytes()).and_then(|()| out.flush());
        self.text.clear();
        match done {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            Err(e) => Err(Failure::operation(format!("cannot write to standard output: {e}"))),
            Ok(()) => Ok(()),
        }
    }
    /// Nothing more comes.
    pub fn end(mut self) -> Result<(), Failure> {
        if let Form::Stream(stream) = &mut self.form {
            if !stream.was_seen() {
                return Err(Failure::operation(
                    "no frame is of this connection; inhost peep without --stream shows all",
                ));
            }
            self.text.push_str(&stream.finish());
        }
        self.print()?;
        match self.form {
            Form::File(file) => file.end(),
            _ => Ok(()),
        }
    }
}

fn ends(text: &str) -> Result<[SocketAddr; 2], Failure> {
    let ends: Option<Vec<SocketAddr>> = text.split('-').map(|end| end.parse().ok()).collect();
    ends.and_then(|ends| <[SocketAddr; 2]>::try_from(ends).ok()).ok_or_else(|| {
        let expected = "give two ends with a hyphen, such as 10.9.0.1:23-10.9.0.2:1025";
        Failure::usage(format!("{text:?} is not a connection; {expected}"))
    })
}
