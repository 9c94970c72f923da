//! The device behind a serial line: a tty that may hang up and return, behind one descriptor.

use super::back::{Gone, NameIdentity};
use super::port::Port;
use crate::NotBack;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A tty, or none while the line is down: writes are then lost, and nothing is received.
#[derive(Debug)]
pub(super) struct Place {
    state: State,
    /// How it is opened again; `None` for a tty that was given to us open.
    name: Option<(String, NameIdentity)>,
    baud: u32,
    /// The descriptor to wait for. It outlives the tty, and is never ready while there is none.
    watch: OwnedFd,
    watches_room: bool,
}

#[derive(Debug)]
enum State {
    Up(Port),
    /// The tty hung up; `None` if it cannot return.
    Down(Option<Gone>),
}

impl Place {
    pub(super) fn open(path: &str, baud: u32) -> io::Result<Place> {
        let name = NameIdentity::of(path)?;
        let port = Port::open(path, baud)?;
        // A pty that we made ourselves does not hang up.
        let name = port.other_end().is_none().then(|| (path.to_owned(), name));
        Place::new(port, name, baud)
    }
    /// Takes over a tty that is open already.
    pub(super) fn adopt(descriptor: OwnedFd, baud: u32) -> io::Result<Place> {
        Place::new(Port::adopt(descriptor, baud)?, None, baud)
    }
    fn new(port: Port, name: Option<(String, NameIdentity)>, baud: u32) -> io::Result<Place> {
        let watch = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&watch, &port, EventData::new_u64(0), EventFlags::IN)?;
        Ok(Place { state: State::Up(port), name, baud, watch, watches_room: false })
    }
    /// Octets that have come in; 0 when there are none now, an error when the line has hung up, once.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let State::Up(port) = &self.state else { return Ok(0) };
        let error = match port.read(into) {
            Ok(count) => return Ok(count),
            Err(error) => error,
        };
        // Closing it takes it off the watch.
        self.state = State::Down(self.name.as_ref().and_then(|(path, name)| Gone::of(path, *name)));
        self.watches_room = false;
        Err(error)
    }
    /// Writes as much as the line accepts now, and returns how much. A hang-up is detected by reading.
    pub(super) fn write(&mut self, octets: &[u8]) -> usize {
        let State::Up(port) = &self.state else { return octets.len() };
        let written = port.write(octets).unwrap_or(octets.len());
        let wants_room = written < octets.len();
        if wants_room != self.watches_room {
            let room = if wants_room { EventFlags::OUT } else { EventFlags::empty() };
            if epoll::modify(&self.watch, port, EventData::new_u64(0), EventFlags::IN | room).is_ok() {
                self.watches_room = wants_room;
            }
        }
        written
    }
    /// Opens a tty that hung up when it is back.
    pub(super) fn reopen(&mut self) -> Result<(), NotBack> {
        let State::Down(gone) = &self.state else { return Ok(()) };
        let Some((gone, (path, name))) = gone.as_ref().zip(self.name.as_mut()) else {
            return Err(NotBack::Ever(
                "a pty does not come back: its name goes to whoever makes the next one".to_owned(),
            ));
        };
        if !gone.may_be_back(path) {
            return Err(NotBack::Yet(format!("{path} was not made anew")));
        }
        let opened = NameIdentity::of(path).and_then(|new| Ok((new, Port::open(path, self.baud)?)));
        let (new, port) = opened.map_err(|error| NotBack::Yet(format!("{path}: {error}")))?;
        epoll::add(&self.watch, &port, EventData::new_u64(0), EventFlags::IN)
            .map_err(|error| NotBack::Yet(format!("{path} cannot be watched: {error}")))?;
        *name = new;
        self.state = State::Up(port);
        Ok(())
    }
    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }
    /// The name of the other end of a pty that we made.
    pub(super) fn other_end(&self) -> Option<&str> {
        match &self.state {
            State::Up(port) => port.other_end(),
            State::Down(_) => None,
        }
    }
}

impl AsFd for Place {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}
