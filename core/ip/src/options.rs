//! IPv4 options that our headers bear.

use crate::path::Path;
use inhost_base::{IpAddr, Ipv4Addr};
use inhost_wire::ipv4::{OptionBytes, SourceRoute, TimestampKind};

/// Options that a datagram of ours is to bear (IPv4 alone has them).
///
/// ```
/// use inhost_ip::Ipv4Options;
/// let mut options = Ipv4Options::default();
/// options.record_route = 9;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Ipv4Options {
    /// The source route; its path then comes from [`crate::Paths::route_by`]. Default: none.
    pub source_route: Option<SourceRoute>,
    /// Room for so many addresses of those that it passes, 9 at most. Default: 0, no record.
    pub record_route: u8,
    /// Times of those that it passes: what each entry holds, and room for how many. Default: none.
    pub timestamps: Option<(TimestampKind, u8)>,
}

/// Options as they stand behind a header: what [`crate::Ip::header_options`] makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeaderOptions {
    bytes: OptionBytes,
    /// Whom the header is addressed to instead of the destination.
    first_hop: Option<Ipv4Addr>,
}

impl HeaderOptions {
    /// The options for headers on `path`, with our own time as the first entry (RFC 1122 §3.2.1.8 (e)).
    // spec: RFC1122 3.2.1.8-1, 3.2.1.8-5, 3.2.1.8-9
    pub(crate) fn new(wanted: &Ipv4Options, path: &Path, time: u32) -> Option<HeaderOptions> {
        let Ipv4Options { source_route, record_route, timestamps } = wanted;
        let mut options = HeaderOptions::default();
        let IpAddr::V4(own) = path.source else { return None };
        let routed = source_route.is_none_or(|route| options.add_source_route(&route, path.destination));
        let slots = usize::from(*record_route);
        let recorded = slots == 0 || options.bytes.add_record_route(slots);
        let timed = timestamps
            .is_none_or(|(kind, slots)| options.bytes.add_timestamp(kind, usize::from(slots), own, time));
        (routed && recorded && timed).then_some(options)
    }
    /// The options of an answer: those of the request that it repeats, and the source route back to `destination`. Where
    /// both do not fit, the source route has precedence.
    pub(crate) fn of_answer(
        records: Option<OptionBytes>,
        back: Option<&SourceRoute>,
        destination: IpAddr,
    ) -> HeaderOptions {
        let mut options = HeaderOptions { bytes: records.unwrap_or_default(), first_hop: None };
        if let Some(route) = back
            && !options.add_source_route(route, destination)
        {
            options = HeaderOptions::default();
            options.add_source_route(route, destination);
        }
        options
    }
    /// The options as they are written.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.as_bytes()
    }
    /// The first hop of a source route, to which the header is addressed.
    pub(crate) fn first_hop(&self) -> Option<Ipv4Addr> {
        self.first_hop
    }
    /// Bytes that they take in each header.
    pub fn length(&self) -> usize {
        self.bytes.as_bytes().len()
    }
    /// Those of the fragments behind the first.
    pub(crate) fn of_later_fragments(&self) -> HeaderOptions {
        HeaderOptions { bytes: OptionBytes::copied(self.bytes.as_bytes()), first_hop: self.first_hop }
    }
    /// Adds a source route to `destination`; false when there is no room, or one already.
    // spec: RFC1122 3.2.1.8-8
    fn add_source_route(&mut self, route: &SourceRoute, destination: IpAddr) -> bool {
        let IpAddr::V4(destination) = destination else { return false };
        let fits = self.first_hop.is_none() && self.bytes.add_source_route(route, destination);
        if fits {
            self.first_hop = Some(route.first());
        }
        fits
    }
}
