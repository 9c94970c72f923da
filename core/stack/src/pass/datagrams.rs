//! The turn of a UDP, echo or probe socket in an output pass.

use crate::output::Turn;
use crate::pass::Pass;
use crate::socket::{AnySocketId, SocketId};
use crate::sockets::Socket;
use inhost_datagram::{DatagramError, Datagrams, Departure};
use inhost_ip::{Path, SendDatagramError};

impl Pass<'_, '_, '_> {
    /// Sends some of a socket's datagrams or requests.
    pub(super) fn datagram_turn(&mut self, socket: AnySocketId, budget: usize) -> Turn {
        let link = self.link;
        let id = SocketId::from(socket);
        let mut left = budget;
        while left > 0 {
            let Some(entry) = self.sockets.any_mut(id) else { return Turn::Done };
            let bound = entry.bound_link();
            let first = entry.datagrams_mut().and_then(Datagrams::first_mut);
            let Some((_, next)) = first else { return Turn::Done };
            if next.path.generation != self.env.paths().generation() {
                let Path { source, destination, link, .. } = next.path;
                let route = match source.is_unspecified() {
                    true => self.env.paths().route_unaddressed(link),
                    false => self.env.route(destination, Some(source), bound),
                };
                match route {
                    Ok(path) => next.path = path,
                    Err(why) => {
                        self.finish_first(id, Some(DatagramError::Route(why)));
                        continue;
                    }
                }
            }
            if next.path.link != link {
                let other = next.path.link;
                self.sockets.schedule_mut().queue_sender(other, id.0.index());
                return Turn::Done;
            }
            let (is_single, next_hop) = (next.segment_bytes == 0, next.path.next_hop);
            let sent = self.send_first(id, left);
            match sent {
                Ok(sent) => {
                    left -= sent.frames.clamp(1, left);
                    if sent.is_all {
                        self.finish_first(id, None);
                    }
                }
                Err(SendDatagramError::Full) => return Turn::Full,
                Err(SendDatagramError::Pending) => return Turn::Pending(next_hop),
                Err(why) => {
                    // A GSO datagram that cannot leave costs nothing of the budget.
                    left -= usize::from(is_single);
                    self.finish_first(id, Some(why.into()));
                }
            }
        }
        match self.sockets.any(id).and_then(Socket::datagrams) {
            Some(datagrams) if !datagrams.is_idle() => Turn::More,
            _ => Turn::Done,
        }
    }
    /// Sends what is first in a socket's queue.
    fn send_first(&mut self, id: SocketId, most: usize) -> Result<Departure, SendDatagramError> {
        let Some(socket) = self.sockets.any_mut(id) else { return Ok(Departure::NOTHING) };
        let ((ip, mut env), device) = (self.env.ip(), &mut self.device);
        match socket {
            Socket::Udp(udp) => {
                let sent = udp.send_first(ip, &mut env, device, most)?;
                self.env.counters().datagrams_sent += sent.datagrams as u64;
                Ok(sent)
            }
            Socket::Echo(echo) => echo.send_first(ip, &mut env, device),
            Socket::Probe(prober) => prober.send_first(ip, &mut env, device),
            Socket::Tcp(_) | Socket::Listener(_) => Ok(Departure::NOTHING),
        }
    }
    /// Is done with a socket's first datagram, which has left or failed with `error`.
    fn finish_first(&mut self, id: SocketId, error: Option<DatagramError>) {
        let (now, pool) = (self.env.now(), self.env.pool());
        let has_news = match self.sockets.any_mut(id) {
            Some(Socket::Udp(udp)) => {
                let has_news = udp.finish_first(error, now, pool);
                if udp.is_closed() && udp.datagrams().is_idle() {
                    return self.sockets.remove_datagrams(id, self.env.resources());
                }
                has_news
            }
            Some(socket) => {
                socket.datagrams_mut().is_some_and(|requests| requests.finish_request(error, now, pool))
            }
            None => false,
        };
        if has_news {
            self.sockets.notify(id);
        }
    }
}
