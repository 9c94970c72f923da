//! A question to everybody, over a host's links.

use super::machine::{Asking, GROUPS, MDNS_PORT, MdnsAction, MdnsQuery, MdnsReport};
use crate::asked::Question;
use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Ipv6Addr, LinkId, Random};
use inhost_ip::InterfaceView;
use inhost_socket::{Either, Host, UdpSocket, race};
use inhost_stack::{DatagramInfo, UdpOptions};
use std::future::poll_fn;
use std::task::{Context, Poll};

/// The longest message taken (RFC 6762 §17).
const MESSAGE_BYTES: usize = 9000;
/// Links on which is asked.
const LINKS_LIMIT: usize = 16;

/// Errors of one socket that are passed over at a time; each is reported once.
const ERRORS_PASSED_OVER: usize = 8;

/// A socket on one link, in one family.
struct Place {
    link: LinkId,
    group: IpAddr,
    asking: Asking,
    socket: UdpSocket,
}

/// The sockets of one question. Dropping it leaves the groups.
struct Places {
    host: Host,
    list: Vec<Place>,
    joined: Vec<(LinkId, IpAddr)>,
}

/// Asks everybody on every link of `host`.
pub async fn ask(host: &Host, question: Question, random: &mut Random) -> MdnsReport {
    let places = Places::open(host);
    let mut query = MdnsQuery::new(question, random, host.now());
    let mut buffer = vec![0; MESSAGE_BYTES];
    loop {
        match query.action() {
            Some(MdnsAction::Over) => return query.into_report(),
            Some(MdnsAction::Send(asking, bytes)) => places.send(asking, &bytes).await,
            None => {
                let Some(deadline) = query.deadline() else { return query.into_report() };
                let received = poll_fn(|context| places.poll_receive(context, &mut buffer));
                match race(received, host.sleep_until(deadline)).await {
                    Either::First((link, info)) => {
                        let bytes = buffer.get(..info.length_bytes).unwrap_or(&buffer);
                        let near = is_near(host, link, info.from.address);
                        query.message(info.from, info.to.address.is_multicast(), near, bytes, host.now());
                    }
                    Either::Second(()) => query.timeout(host.now()),
                }
            }
        }
    }
}

fn is_near(host: &Host, link: LinkId, address: IpAddr) -> bool {
    host.with_stack(|stack, _| {
        let mut own = stack.ip().interface(link).into_iter().flat_map(InterfaceView::addresses);
        own.any(|own| own.cidr().contains(address))
    })
}

impl Places {
    fn open(host: &Host) -> Places {
        let mut places = Places { host: host.clone(), list: Vec::new(), joined: Vec::new() };
        for link in places.links() {
            for group in GROUPS {
                let has_family = host.with_stack(|stack, _| {
                    let mut own = stack.ip().interface(link).into_iter().flat_map(InterfaceView::addresses);
                    own.any(|own| {
                        own.cidr().address().is_ipv4() == group.is_ipv4()
                            && !own.cidr().address().is_loopback()
                    })
                });
                if has_family {
                    places.add(link, group, Asking::OneShot);
                    places.add(link, group, Asking::Everybody);
                }
            }
        }
        places
    }
    fn links(&self) -> Vec<LinkId> {
        self.host.with_stack(|stack, _| stack.links().take(LINKS_LIMIT).collect())
    }
    /// A failed bind is ignored: mDNS's port may have another owner.
    fn add(&mut self, link: LinkId, group: IpAddr, asking: Asking) {
        let any: IpAddr = match group {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let port = if asking == Asking::OneShot { 0 } else { MDNS_PORT };
        // RFC 6762 §11: 255 hops, as of old who hears it looks whether it crossed a router.
        let mut options = UdpOptions::default();
        options.link = Some(link);
        options.hop_limit = Some(255);
        let Ok(socket) = self.host.udp(Endpoint::new(any, port), options) else { return };
        if asking == Asking::Everybody && !self.joined.contains(&(link, group)) {
            let joined = self.host.with_stack_and_sink(|stack, now, sink| {
                stack.with_ip(now, sink, |ip, environment| ip.join_group(link, group, environment))
            });
            if joined.is_err() {
                return;
            }
            self.joined.push((link, group));
        }
        self.list.push(Place { link, group, asking, socket });
    }
    async fn send(&self, asking: Asking, bytes: &[u8]) {
        for place in &self.list {
            // Without mDNS's own port every query is a one-shot query.
            let has_own = |other: &Place| {
                other.asking == asking && other.link == place.link && other.group == place.group
            };
            if place.asking == asking || !self.list.iter().any(has_own) {
                // A link that is down says so, and the others may be up.
                let _ = place.socket.send_to(bytes, Endpoint::new(place.group, MDNS_PORT)).await;
            }
        }
    }
    fn poll_receive(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<(LinkId, DatagramInfo)> {
        for place in &self.list {
            for _ in 0..ERRORS_PASSED_OVER {
                match place.socket.poll_receive(context, buffer) {
                    Poll::Ready(Ok(info)) => return Poll::Ready((place.link, info)),
                    // News of an earlier question, which somebody else may answer.
                    Poll::Ready(Err(_)) => {}
                    Poll::Pending => break,
                }
            }
        }
        Poll::Pending
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for &(link, group) in &self.joined {
            let _ = self.host.with_stack_and_sink(|stack, now, sink| {
                stack.with_ip(now, sink, |ip, environment| ip.leave_group(link, group, environment))
            });
        }
    }
}
