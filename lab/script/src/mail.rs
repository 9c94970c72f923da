//! The datagrams of both ends: what each carries, and which of them a host sent, took or quotes.

use crate::datagram::{self, HostDatagram, HostFragment, HostPacket};
use crate::drive::What;
use crate::language::{Datagram, IcmpKind, Step, line_of};
use crate::language::{Fragment, IcmpError};
use crate::packet::Ends;
use crate::side::PEER_PORTS;
use crate::stream::{self, From};
use std::collections::{BTreeSet, VecDeque};

/// Where a datagram's data begins in its sender's stream, so that those of two differ.
const APART: u64 = 1009;
/// Packets of the peer's that are remembered, to be compared with what a host quotes.
const INJECTED: usize = 64;

/// The datagrams of one script.
pub struct Mail {
    ends: Ends,
    sockets: BTreeSet<String>,
    /// What the host was given to send, and whether it was seen.
    given: Vec<(Vec<u8>, bool)>,
    /// Of each datagram that the host sent its packet, or its first fragment.
    packets: Vec<Vec<u8>>,
    /// The fragments of the latest datagram, in one, and their identification.
    parts: Option<(u32, Vec<u8>)>,
    /// What the peer sent: port, data, and whether it was taken.
    of_the_peer: Vec<(u16, Vec<u8>, bool)>,
    injected: VecDeque<Vec<u8>>,
}

/// A datagram that a host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenDatagram {
    /// As an `out` of a script.
    pub said: Datagram,
    /// Which of those that the host was given it is, from 1.
    pub which: Option<usize>,
    /// Its checksum.
    pub checksum: datagram::Summed,
}

/// A part of a datagram that a host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFragment {
    /// As an `out` of a script.
    pub said: Fragment,
    /// Whether it goes on where the one before ended, with the same identification, or begins.
    pub fits: bool,
    /// The whole, with its last part.
    pub whole: Option<SeenDatagram>,
}

/// An ICMP error that a host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenIcmpError {
    /// Its type.
    pub kind: IcmpKind,
    /// Bytes that it quotes.
    pub quotes: usize,
    /// Whether these are the beginning of a packet that came.
    pub is_quoted: bool,
    /// Whether the checksum is right.
    pub checksum_ok: bool,
}

impl Mail {
    pub fn new(ends: Ends) -> Mail {
        Mail {
            ends,
            sockets: BTreeSet::new(),
            given: Vec::new(),
            packets: Vec::new(),
            parts: None,
            of_the_peer: Vec::new(),
            injected: VecDeque::new(),
        }
    }
    /// A datagram socket of this name was opened.
    pub fn opened(&mut self, name: &str) {
        self.sockets.insert(name.to_owned());
    }
    /// Whether a datagram socket has this name.
    pub fn has(&self, name: &str) -> bool {
        self.sockets.contains(name)
    }
    /// The data of the host's next datagram.
    pub fn next_of_the_host(&self, bytes: usize) -> Vec<u8> {
        stream::bytes(From::Host, APART * self.given.len() as u64, bytes)
    }
    /// The host has taken a datagram to send.
    pub fn taken(&mut self, data: Vec<u8>) {
        self.given.push((data, false));
    }
    /// The packet of the peer's next datagram.
    pub fn of_the_peer(&mut self, said: &Datagram) -> Vec<u8> {
        let data = stream::bytes(From::Peer, APART * self.of_the_peer.len() as u64, said.bytes);
        let delivered = datagram::delivered(said, &data).to_vec();
        self.of_the_peer.push((PEER_PORTS + u16::from(said.peer), delivered, false));
        datagram::datagram(self.ends, said, &data)
    }
    /// Remembers a packet that was put on the wire to the host.
    pub fn injected(&mut self, packet: Vec<u8>) {
        if self.injected.len() == INJECTED {
            self.injected.pop_front();
        }
        self.injected.push_back(packet);
    }
    /// The host's datagram number `which`, from 1, as it was sent.
    pub fn packet(&self, which: u32) -> Option<&[u8]> {
        self.packets.get((which as usize).checked_sub(1)?).map(Vec::as_slice)
    }
    /// An error where what was received is not what the peer sent.
    pub fn received(&mut self, bytes: &[u8], whole: usize, from: u16) -> Result<(), String> {
        let is_it = |(port, data, taken): &&mut (u16, Vec<u8>, bool)| {
            !*taken && *port == from && data.len() == whole && data.starts_with(bytes)
        };
        match self.of_the_peer.iter_mut().find(is_it) {
            Some((.., taken)) => {
                *taken = true;
                Ok(())
            }
            None => Err(format!("no datagram from port {from} had these {whole} bytes")),
        }
    }
    /// The host's packet as text.
    pub fn sent(&mut self, host: HostPacket, packet: &[u8]) -> What {
        match host {
            HostPacket::Datagram(host) => {
                self.packets.push(packet.to_vec());
                What::Datagram(self.seen(&host))
            }
            HostPacket::Fragment(host) => {
                if host.from == 0 {
                    self.packets.push(packet.to_vec());
                }
                What::Fragment(self.seen_fragment(&host))
            }
            HostPacket::IcmpError(host) => What::IcmpError(SeenIcmpError {
                kind: host.kind,
                quotes: host.quoted.len(),
                is_quoted: self.injected.iter().any(|packet| packet.starts_with(&host.quoted)),
                checksum_ok: host.checksum_ok,
            }),
        }
    }
    fn seen(&mut self, host: &HostDatagram) -> SeenDatagram {
        let which = self.given.iter().position(|(data, seen)| !seen && *data == host.payload);
        if let Some(which) = which {
            self.given[which].1 = true;
        }
        let said = Datagram {
            bytes: host.payload.len(),
            peer: host.peer,
            port: host.port,
            no_checksum: host.checksum == datagram::Summed::Not,
            bad_checksum: false,
            length: None,
        };
        SeenDatagram { said, which: which.map(|which| which + 1), checksum: host.checksum }
    }
    fn seen_fragment(&mut self, host: &HostFragment) -> SeenFragment {
        if host.from == 0 {
            self.parts = Some((host.identification, Vec::new()));
        }
        let said = Fragment { from: host.from, to: host.from + host.bytes.len(), more: host.more };
        let mut seen = SeenFragment { said, fits: false, whole: None };
        if let Some((identification, parts)) = &mut self.parts
            && *identification == host.identification
            && parts.len() == host.from
        {
            seen.fits = true;
            parts.extend_from_slice(&host.bytes);
        }
        if !host.more
            && let Some((_, parts)) = self.parts.take()
        {
            seen.whole = datagram::read_datagram(&parts, self.ends).map(|whole| self.seen(&whole));
        }
        seen
    }
}

impl What {
    /// What is not a segment, as a line of a script.
    pub fn text(&self) -> String {
        match self {
            What::Segment(_) => String::new(),
            What::Datagram(seen) => line_of(&Step::OutDatagram(seen.said.clone())),
            What::Fragment(seen) => line_of(&Step::OutFragment(seen.said.clone())),
            What::IcmpError(seen) => {
                line_of(&Step::OutIcmp(IcmpError { kind: seen.kind, quotes: Some(seen.quotes) }))
            }
        }
    }
}
