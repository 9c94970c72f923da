//! Frames of an interface of this system, by a packet socket (packet(7)).

use crate::failure::Failure;
use inhost_explain::capture::{Frame, LinkType};
use inhost_peep::{Next, Source, SourceError};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvmsg,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;
use std::cell::Cell;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;

use super::ending::Ending;

/// The longest frame: a segment that the device is to cut, with its headers.
const MAX_FRAME_BYTES: usize = 256 << 10;
/// What the kernel keeps until it is read, in bytes.
const KEPT_BYTES: usize = 16 << 20;
/// Kinds of hardware, as ARP has them, and what Linux adds.
const ETHERNET: u16 = 1;
const LOOPBACK: u16 = 772;
const NONE: u16 = 0xfffe;
const PPP: u16 = 512;
/// A packet that this system sends (packet(7)).
const OUTGOING: u8 = 4;

/// An interface that is watched.
pub struct Interface {
    socket: OwnedFd,
    index: usize,
    link: LinkType,
    buffer: Vec<u8>,
    control: Vec<u8>,
    frames: u64,
    /// Frames that came too fast.
    dropped: Rc<Cell<u64>>,
    ending: Ending,
}

impl Interface {
    /// Watches the interface of this name; frames that the kernel drops are counted in `dropped`.
    pub fn open(name: &str, ending: Ending, dropped: Rc<Cell<u64>>) -> Result<Interface, Failure> {
        let failed = |why: Errno| Failure::operation(format!("{name}: {}", why.desc()));
        let all: Vec<(String, LinkAddr)> = getifaddrs()
            .map_err(failed)?
            .filter_map(|of| Some((of.interface_name, *of.address?.as_link_addr()?)))
            .collect();
        let Some((_, address)) = all.iter().find(|(known, _)| known == name) else {
            let names: Vec<&str> = all.iter().map(|(name, _)| &**name).collect();
            return Err(Failure::operation(format!(
                "there is no interface {name}; there are {}",
                names.join(", ")
            )));
        };
        let link = match address.hatype() {
            ETHERNET | LOOPBACK => LinkType::Ethernet,
            NONE | PPP => LinkType::Ip,
            other => {
                return Err(Failure::operation(format!(
                    "{name} is of kind {other}; Ethernet, loopback, TUN and PPP are read"
                )));
            }
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket =
            socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll).map_err(|why| {
                let what = "to watch an interface needs CAP_NET_RAW: run it as root, or grant it once with \
                        sudo setcap cap_net_raw+ep $(command -v inhost)";
                match why {
                    Errno::EPERM => Failure::operation(what),
                    why => failed(why),
                }
            })?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(failed)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1).map_err(failed)?;
        // Beyond the system's limit for root alone; less will do.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &KEPT_BYTES)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &KEPT_BYTES));
        bind(socket.as_raw_fd(), address).map_err(failed)?;
        let (buffer, control) = (vec![0; MAX_FRAME_BYTES], cmsg_space!(TimeSpec, u32));
        let (index, frames) = (address.ifindex(), 0);
        Ok(Interface { socket, index, link, buffer, control, frames, dropped, ending })
    }
}

impl Source for Interface {
    fn next(&mut self) -> Result<Next<'_>, SourceError> {
        let mut pieces = [IoSliceMut::new(&mut self.buffer)];
        let received = recvmsg::<LinkAddr>(
            self.socket.as_raw_fd(),
            &mut pieces,
            Some(&mut self.control),
            MsgFlags::MSG_TRUNC,
        );
        let received = match received {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => {
                self.ending.wait(self.socket.as_fd())?;
                return Ok(Next::Waiting);
            }
            Err(Errno::ENETDOWN) => return Err("the interface went down".into()),
            Err(why) => return Err(why.desc().into()),
        };
        let Some(from) = received.address else { return Ok(Next::Waiting) };
        // Between the socket's making and its binding frames of others may come.
        if from.ifindex() != self.index {
            return Ok(Next::Waiting);
        }
        let mut at_ns = 0;
        for message in received.cmsgs()? {
            match message {
                ControlMessageOwned::ScmTimestampns(time) => {
                    at_ns = time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
                }
                ControlMessageOwned::RxqOvfl(count) => self.dropped.set(count.into()),
                _ => {}
            }
        }
        self.frames += 1;
        let original_bytes = received.bytes;
        Ok(Next::Frame(Frame {
            number: self.frames,
            at_ns,
            interface: 0,
            link: self.link,
            bytes: &self.buffer[..original_bytes.min(MAX_FRAME_BYTES)],
            original_bytes: original_bytes as u32,
            is_inbound: Some(from.pkttype() != OUTGOING),
            comment: None,
        }))
    }
}
