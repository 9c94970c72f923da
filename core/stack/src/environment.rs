//! What a step of a call or a round uses besides sockets: the network, the host's resources, the time and the sink.

use crate::counters::Counters;
use crate::demux::Name;
use crate::network::Network;
use crate::output::Reply;
use crate::resources::Resources;
use alloc::vec::Vec;
use inhost_base::{Instant, IpAddr, Key, LinkId, Random};
use inhost_buf::{Checksum, Pool};
use inhost_event::{Drop, Event, FrameDropped, Layer, Mask, Sink};
use inhost_ip::{Ip, IpEnvironment, Path, Paths, RouteError};
use inhost_tcp::ResetReply;

/// What a step uses besides sockets.
pub(crate) struct Environment<'a> {
    now: Instant,
    sink: &'a mut dyn Sink,
    network: &'a mut Network,
    resources: &'a mut Resources,
}

impl<'a> Environment<'a> {
    /// For a call at `now`.
    #[inline]
    pub(crate) fn new(
        network: &'a mut Network,
        resources: &'a mut Resources,
        now: Instant,
        sink: &'a mut dyn Sink,
    ) -> Environment<'a> {
        resources.tick(now);
        Environment { now, sink, network, resources }
    }
    /// The same, for one branch of a step: what is lent there need not lie in memory for the others.
    #[inline(always)]
    pub(crate) fn reborrow(&mut self) -> Environment<'_> {
        let Environment { now, sink, network, resources } = self;
        Environment { now: *now, sink: &mut **sink, network, resources }
    }
    pub(crate) fn now(&self) -> Instant {
        self.now
    }
    pub(crate) fn sink(&mut self) -> &mut dyn Sink {
        &mut *self.sink
    }
    pub(crate) fn network(&self) -> &Network {
        self.network
    }
    pub(crate) fn network_mut(&mut self) -> &mut Network {
        self.network
    }
    pub(crate) fn paths(&self) -> &Paths {
        self.network.ip().paths()
    }
    pub(crate) fn paths_mut(&mut self) -> &mut Paths {
        self.network.ip_mut().paths_mut()
    }
    /// The path of what leaves now, from `local` and by `link` where these are given.
    pub(crate) fn route(
        &mut self,
        remote: IpAddr,
        local: Option<IpAddr>,
        link: Option<LinkId>,
    ) -> Result<Path, RouteError> {
        self.network.ip_mut().paths_mut().route(remote, local, link, self.now)
    }
    pub(crate) fn resources(&mut self) -> &mut Resources {
        self.resources
    }
    pub(crate) fn random(&mut self) -> &mut Random {
        self.resources.random_mut()
    }
    pub(crate) fn pool(&mut self) -> &mut Pool {
        self.resources.pool_mut()
    }
    pub(crate) fn counters(&mut self) -> &mut Counters {
        self.resources.counters_mut()
    }
    /// IP, and what it is given in a call.
    pub(crate) fn ip(&mut self) -> (&mut Ip, IpEnvironment<'_>) {
        (self.network.ip_mut(), self.resources.for_ip(self.now, &mut *self.sink))
    }
    /// What a connection is given in a call.
    pub(crate) fn tcp(&mut self, socket: Key) -> inhost_tcp::Environment<'_> {
        self.resources.for_tcp(socket, self.now, &mut *self.sink)
    }
    /// IP, and what a connection is given in a call.
    pub(crate) fn ip_and_tcp(&mut self, socket: Key) -> (&mut Ip, inhost_tcp::Environment<'_>) {
        (self.network.ip_mut(), self.resources.for_tcp(socket, self.now, &mut *self.sink))
    }
    /// Whether the sink is told the layers.
    pub(crate) fn marks_layers(&self) -> bool {
        self.resources.marks_layers()
    }
    /// Tells the sink that a layer begins, if it is told the layers.
    #[inline(always)]
    pub(crate) fn begin_layer(&mut self, layer: Layer) {
        if self.marks_layers() {
            self.sink.begin_layer(layer);
        }
    }
    /// Tells it that the layer ends.
    #[inline(always)]
    pub(crate) fn end_layer(&mut self) {
        if self.marks_layers() {
            self.sink.end_layer();
        }
    }
    /// Whether the checksum of a packet is right, as the device has `said` or else by `check`.
    #[inline(always)]
    pub(crate) fn is_good(&mut self, said: Checksum, check: impl FnOnce() -> bool) -> bool {
        said.is_good()
            || match self.marks_layers() {
                false => check(),
                true => check_told(self.sink(), check),
            }
    }
    /// Counts and reports a frame that went no further.
    pub(crate) fn drop_frame(&mut self, link: LinkId, why: Drop) {
        self.network.links_mut().count_drop(link, why);
        let event = || Event::FrameDropped(FrameDropped { link, why });
        self.sink.emit(Mask::LINK.union(Mask::DROP), self.now, event);
    }
    /// Counts frames that a pass has sent, and reports their `lengths`.
    pub(crate) fn count_sent(&mut self, link: LinkId, sent: (u64, u64), lengths: Option<Vec<u32>>) {
        self.network.links_mut().count_sent(link, sent, lengths, self.now, &mut *self.sink);
    }
    /// Queues a reset from our end of a flow to the other, unless too many replies wait.
    pub(crate) fn reset(&mut self, path: Path, flow: &Name, reset: ResetReply) {
        let mut header = reset.header();
        (header.source_port, header.destination_port) = (flow.local.port, flow.remote.port);
        let fits = self.network.links_mut().push_reply(Reply { path, header });
        self.resources.counters_mut().resets_limited += u64::from(!fits);
    }
    /// Answers a segment that came in on `link` with a reset, as far as the rate allows.
    pub(crate) fn answer_with_reset(&mut self, link: LinkId, flow: &Name, reset: ResetReply) {
        let (now, random) = (self.now, self.resources.random_mut());
        if !self.network.admits_reset(now, random) {
            self.counters().resets_limited += 1;
            return;
        }
        // A segment is answered on the link that it came in by, the loopback included.
        if let Ok(path) = self.route(flow.remote.address, Some(flow.local.address), Some(link)) {
            self.reset(path, flow, reset);
        }
    }
}

/// Checks a checksum for a sink that is told the layers. A function of its own, so that what the check takes stays in
/// registers where nothing is told.
#[cold]
#[inline(never)]
fn check_told(sink: &mut dyn Sink, check: impl FnOnce() -> bool) -> bool {
    sink.within(true, Layer::Checksum, |_| check())
}
