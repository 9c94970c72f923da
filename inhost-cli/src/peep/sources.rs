//! Where a trace's frames come from.

use crate::args::Peep;
use crate::failure::Failure;
use crate::through::open_host;
use inhost_explain::capture::Reader;
use inhost_peep::{Item, Merge, SourceError};
use inhost_runtime::control;
use serde_json::json;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use super::ending::{Ending, Until};
use super::interface::Interface;

/// The sources.
pub struct Sources {
    merge: Merge,
    names: Vec<String>,
    /// What is shown is shown at once.
    pub is_live: bool,
    dropped: Option<Rc<Cell<u64>>>,
}

impl Sources {
    /// Opens what the arguments name.
    pub fn open(arguments: &Peep, ending: &Ending) -> Result<Sources, Failure> {
        let is_live = arguments.read.is_empty();
        let mut sources = Sources { merge: Merge::default(), names: Vec::new(), is_live, dropped: None };
        if let Some(name) = &arguments.interface {
            let dropped = Rc::new(Cell::new(0));
            sources.merge.add(name, Interface::open(name, ending.clone(), dropped.clone())?, 0);
            sources.names.push(name.clone());
            sources.dropped = Some(dropped);
        } else if is_live {
            let name = "the host".to_owned();
            sources.add(name, host(arguments, ending)?, 0)?;
        }
        for path in &arguments.read {
            sources.add_file(path, arguments, ending)?;
        }
        // A clock of no capture is a mistake.
        let is_known = |of: &str| arguments.read.iter().any(|path| is_name(path, of));
        match arguments.clock.iter().find(|(of, _)| !is_known(of)) {
            Some((of, _)) => Err(Failure::usage(format!("--clock {of}: none of the captures has this name"))),
            None => Ok(sources),
        }
    }
    fn add(&mut self, name: String, from: Box<dyn Read>, shift_ns: i64) -> Result<(), Failure> {
        let reader = reader(&name, from)?;
        self.put(name, reader, shift_ns);
        Ok(())
    }
    fn put(&mut self, name: String, reader: Reader<Box<dyn Read>>, shift_ns: i64) {
        self.merge.add(&name, reader, shift_ns);
        self.names.push(name);
    }
    fn add_file(&mut self, path: &Path, arguments: &Peep, ending: &Ending) -> Result<(), Failure> {
        let shift_ns = arguments.clock.iter().find(|(of, _)| is_name(path, of)).map_or(0, |(_, ns)| *ns);
        if path.to_str() == Some("-") {
            let from = Until { inner: io::stdin(), ending: ending.clone() };
            return self.add("-".to_owned(), Box::new(from), shift_ns);
        }
        let file =
            File::open(path).map_err(|why| Failure::operation(format!("{}: {why}", path.display())))?;
        // Its short name is for frames.
        let reader = reader(&path.display().to_string(), Box::new(file))?;
        self.put(short(path), reader, shift_ns);
        Ok(())
    }
    /// What comes next in the order of time, and the names of all sources.
    pub fn next_item(&mut self) -> Result<(Item<'_>, &[String]), SourceError> {
        Ok((self.merge.next_item()?, &self.names))
    }
    /// How many there are.
    pub fn count(&self) -> usize {
        self.names.len()
    }
    /// Frames that the kernel dropped, where it says so.
    pub fn dropped(&self) -> Option<u64> {
        self.dropped.as_ref().map(|dropped| dropped.get())
    }
}

fn reader(name: &str, from: Box<dyn Read>) -> Result<Reader<Box<dyn Read>>, Failure> {
    let wrong = |why| Failure::operation(format!("{name}: {why}; is it a capture, pcap or pcapng?"));
    Reader::new(from).map_err(wrong)
}

/// A file's name as it is shown.
fn short(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}
fn is_name(path: &Path, name: &str) -> bool {
    path.to_str() == Some(name) || short(path) == name
}

/// The frames and events of the running host, as it sends them.
fn host(arguments: &Peep, ending: &Ending) -> Result<Box<dyn Read>, Failure> {
    let path = arguments.via.clone().unwrap_or_else(control::default_path);
    let mut client = open_host(&path)?;
    let request = json!({"op": "watch", "states": arguments.states.is_some(), "past": arguments.past});
    let (_, stream) = client
        .request(&request)
        .map_err(|why| Failure::operation(format!("the host is not to be watched: {why}")))?;
    let stream = stream.ok_or_else(|| Failure::operation("the host sent no stream"))?;
    Ok(Box::new(Until { inner: File::from(stream), ending: ending.clone() }))
}
