//! The turns of echo and probe sockets in an output pass.

use crate::error::DatagramError;
use crate::output::Turn;
use crate::pass::Pass;
use crate::socket::SocketId;
use crate::sockets::Socket;
use inhost_buf::Slices;
use inhost_ip::{EchoMessage, HeaderHow, SendDatagramError};

impl Pass<'_, '_> {
    /// Sends some of a socket's requests.
    pub(super) fn request_turn(&mut self, id: SocketId, budget: usize) -> Turn {
        for _ in 0..budget {
            let Some(socket) = self.sockets.any(id) else { return Turn::Done };
            let Some((message, next)) = socket.requests().and_then(|requests| requests.first()) else {
                return Turn::Done;
            };
            if next.path.link != self.link {
                let other = next.path.link;
                self.sockets.schedule_mut().queue_sender(other, id.0.index());
                return Turn::Done;
            }
            let (ip, mut env) = self.env.ip();
            let path = &next.path;
            let sent = match socket {
                Socket::Echo(echo) => {
                    let (identifier, sequence) = (echo.identifier(), next.number);
                    let echo = EchoMessage { identifier, sequence, data: message.bytes() };
                    ip.echo_request(path, &echo, &mut env, &mut self.device)
                }
                Socket::Probe(prober) => {
                    let mut how = HeaderHow::new(prober.protocol(path.destination));
                    how.hop_limit = next.hop_limit;
                    (how.dont_fragment, how.beyond_path_mtu) = (true, true);
                    ip.send_datagram(path, &how, Slices::one(message.bytes()), &mut env, &mut self.device)
                }
                _ => return Turn::Done,
            };
            let failure = match sent {
                Ok(()) => None,
                Err(SendDatagramError::Full) => return Turn::Full,
                Err(SendDatagramError::Pending) => return Turn::Pending,
                Err(why) => Some(DatagramError::from(why)),
            };
            let (now, pool) = (self.env.now(), self.env.pool());
            let requests = self.sockets.requests_mut(id);
            if requests.is_some_and(|requests| requests.finish_first(failure, now, pool)) {
                self.sockets.notify(id);
            }
        }
        match self.sockets.any(id).and_then(Socket::requests) {
            Some(requests) if !requests.is_idle() => Turn::More,
            _ => Turn::Done,
        }
    }
}
