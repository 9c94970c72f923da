//! Parcels: messages with descriptors from one process to another, by which a running host is handed over.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// The longest text of a parcel, in bytes.
const LONGEST_TEXT_BYTES: usize = 4096;
/// Most descriptors in a parcel.
const MOST_DESCRIPTORS: usize = 2;

/// One end of a channel for parcels. The other end sees when this one is gone.
#[derive(Debug)]
pub struct Parcels(OwnedFd);

impl Parcels {
    /// Both ends. They do not block.
    pub fn pair() -> io::Result<(Parcels, Parcels)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Parcels(one), Parcels(other)))
    }
    /// Sends a text, which is not empty, with up to two descriptors.
    pub fn send(&self, text: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for a parcel"));
        }
        sendmsg(&self.0, &[IoSlice::new(text.as_bytes())], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
    /// The next parcel; `None` when the other end is gone. `WouldBlock` when there is none yet.
    pub fn receive(&self) -> io::Result<Option<(String, Vec<OwnedFd>)>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut text = vec![0; LONGEST_TEXT_BYTES];
        let received =
            recvmsg(&self.0, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        text.truncate(received.bytes);
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok((!text.is_empty()).then_some((text, descriptors)))
    }
    /// [`Parcels::receive`] that blocks the thread until there is one.
    ///
    /// # Errors
    /// `TimedOut` after `limit`, and those of the system.
    pub fn receive_within(&self, limit: std::time::Duration) -> io::Result<Option<(String, Vec<OwnedFd>)>> {
        let limit = Timespec::try_from(limit).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit))? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => self.receive(),
        }
    }
}

impl From<OwnedFd> for Parcels {
    fn from(descriptor: OwnedFd) -> Parcels {
        Parcels(descriptor)
    }
}
impl From<Parcels> for OwnedFd {
    fn from(parcels: Parcels) -> OwnedFd {
        parcels.0
    }
}
impl AsFd for Parcels {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn descriptors_come_with_their_text() {
        let (here, there) = Parcels::pair().unwrap();
        assert_eq!(there.receive().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let (mut near, far) = UnixStream::pair().unwrap();
        here.send("a stream", &[far.as_fd()]).unwrap();
        drop(far);
        let (text, mut descriptors) = there.receive().unwrap().unwrap();
        assert_eq!((&text[..], descriptors.len()), ("a stream", 1));
        near.write_all(b"x").unwrap();
        let mut place = [0];
        UnixStream::from(descriptors.remove(0)).read_exact(&mut place).unwrap();
        assert_eq!(&place, b"x");
        drop(here);
        assert!(there.receive().unwrap().is_none());
    }
}
