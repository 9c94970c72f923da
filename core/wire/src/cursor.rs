//! Cursors: sequential reads and writes for formats without fixed offsets.

use inhost_base::{HardwareAddress, Ipv4Addr, Ipv6Addr};

/// Reads forward; `None` at the end of the bytes.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }
    /// What is not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }
    pub fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(front)
    }
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| *b)
    }
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(|b| u16::from_be_bytes(*b))
    }
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(|b| u32::from_be_bytes(*b))
    }
    pub fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(front)
    }
    pub fn ipv4(&mut self) -> Option<Ipv4Addr> {
        self.array::<4>().map(|b| Ipv4Addr::from(*b))
    }
    pub fn ipv6(&mut self) -> Option<Ipv6Addr> {
        self.array::<16>().map(|b| Ipv6Addr::from(*b))
    }
    pub fn hardware(&mut self) -> Option<HardwareAddress> {
        self.array::<6>().map(|b| HardwareAddress(*b))
    }
}

/// Writes forward; once something did not fit, [`Writer::finish`] says 0.
pub(crate) struct Writer<'a> {
    buffer: &'a mut [u8],
    at: usize,
    overflowed: bool,
}

impl<'a> Writer<'a> {
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Writer { buffer, at: 0, overflowed: false }
    }
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let end = self.at.saturating_add(bytes.len());
        match self.buffer.get_mut(self.at..end) {
            Some(place) if !self.overflowed => {
                place.copy_from_slice(bytes);
                self.at = end;
            }
            _ => self.overflowed = true,
        }
        self
    }
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }
    pub fn ipv4(&mut self, address: Ipv4Addr) -> &mut Self {
        self.bytes(&address.octets())
    }
    pub fn ipv6(&mut self, address: Ipv6Addr) -> &mut Self {
        self.bytes(&address.octets())
    }
    /// Gives up: the value cannot be expressed.
    pub fn fail(&mut self) -> &mut Self {
        self.overflowed = true;
        self
    }
    /// Zeros up to the next multiple of `unit` bytes from the start.
    pub fn pad_to(&mut self, unit: usize) -> &mut Self {
        while !self.overflowed && !self.at.is_multiple_of(unit) {
            self.u8(0);
        }
        self
    }
    /// The bytes written so far.
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.at).unwrap_or(&[])
    }
    /// Overwrites the 16-bit value at `offset`.
    pub fn patch_u16(&mut self, offset: usize, value: u16) -> &mut Self {
        match self.buffer.get_mut(offset..offset.saturating_add(2)) {
            Some(place) => place.copy_from_slice(&value.to_be_bytes()),
            None => self.overflowed = true,
        }
        self
    }
    /// Bytes written, or 0 when not all of them fitted.
    pub fn finish(&self) -> usize {
        if self.overflowed { 0 } else { self.at }
    }
}
