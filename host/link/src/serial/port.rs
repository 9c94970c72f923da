//! The tty: set to raw mode while open, restored afterwards.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::{
    ControlModes, OptionalActions, SpecialCodeIndex, Termios, ioctl_tiocexcl, ioctl_tiocnxcl,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The device that makes a new pty for each who opens it.
const PTY_MASTERS: &str = "/dev/ptmx";

/// An open tty in raw mode.
#[derive(Debug)]
pub(super) struct Port {
    descriptor: OwnedFd,
    saved: Termios,
    /// For a pty that we created: its other end, held open so that the line does not hang up before it is used, and its
    /// name.
    made: Option<(OwnedFd, String)>,
}

impl Port {
    pub(super) fn open(path: &str, baud: u32) -> io::Result<Port> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        let made = match path == PTY_MASTERS {
            true => Some(other_end(descriptor.as_fd())?),
            false => None,
        };
        let port = Port::new(descriptor, made, baud)?;
        if port.made.is_none() {
            // Two hosts on one end would each get every other octet.
            ioctl_tiocexcl(&port.descriptor)?;
        }
        Ok(port)
    }
    /// Takes over a tty that is open already.
    pub(super) fn adopt(descriptor: OwnedFd, baud: u32) -> io::Result<Port> {
        rustix::io::ioctl_fionbio(&descriptor, true)?;
        Port::new(descriptor, None, baud)
    }
    fn new(descriptor: OwnedFd, made: Option<(OwnedFd, String)>, baud: u32) -> io::Result<Port> {
        let saved = rustix::termios::tcgetattr(&descriptor).map_err(|error| match error {
            Errno::NOTTY => io::Error::new(io::ErrorKind::InvalidInput, "it is not a terminal line"),
            other => other.into(),
        })?;
        let mut raw = saved.clone();
        raw.make_raw();
        raw.control_modes |= ControlModes::CREAD | ControlModes::CLOCAL;
        raw.control_modes -= ControlModes::CSTOPB | ControlModes::CRTSCTS;
        // A read with nothing there says so; only a line that is gone reads as empty.
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        raw.set_speed(baud)?;
        rustix::termios::tcsetattr(&descriptor, OptionalActions::Now, &raw)?;
        Ok(Port { descriptor, saved, made })
    }
    /// Octets that have come in; 0 when there are none now, an error when the line is gone.
    pub(super) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match rustix::io::read(&self.descriptor, into) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(gone) => Err(gone.into()),
        }
    }
    /// Writes as much as the line accepts now, and returns how much.
    pub(super) fn write(&self, octets: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.descriptor, octets) {
            Ok(count) => Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(gone) => Err(gone.into()),
        }
    }
    /// The name of the other end of a pty that we made.
    pub(super) fn other_end(&self) -> Option<&str> {
        self.made.as_ref().map(|(_, name)| name.as_str())
    }
}

fn other_end(master: BorrowedFd<'_>) -> io::Result<(OwnedFd, String)> {
    rustix::pty::grantpt(master)?;
    rustix::pty::unlockpt(master)?;
    let name = rustix::pty::ptsname(master, Vec::new())?.to_string_lossy().into_owned();
    let slave = rustix::pty::ioctl_tiocgptpeer(
        master,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    )?;
    Ok((slave, name))
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if self.made.is_none() {
            let _ = ioctl_tiocnxcl(&self.descriptor);
        }
        // An error here means that the line is gone already, and is ignored.
        let _ = rustix::termios::tcsetattr(&self.descriptor, OptionalActions::Now, &self.saved);
    }
}
