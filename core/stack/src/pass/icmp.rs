//! The turns of echo and probe sockets in an output pass.

use crate::error::DatagramError;
use crate::output::Turn;
use crate::pass::Pass;
use crate::socket::{EchoSocketId, ProbeSocketId};
use inhost_buf::Slices;
use inhost_ip::{EchoMessage, HeaderHow, SendDatagramError};

impl Pass<'_, '_> {
    /// Sends some of a socket's requests.
    pub(super) fn echo_turn(&mut self, key: EchoSocketId, budget: usize) -> Turn {
        for _ in 0..budget {
            let Some(echo) = self.sockets.echo_mut(key) else { return Turn::Done };
            let identifier = echo.identifier();
            let Some(next) = echo.first() else { return Turn::Done };
            if next.path.link != self.link {
                let other = next.path.link;
                self.sockets.schedule_mut().queue_sender(other, key.place());
                return Turn::Done;
            }
            let message = EchoMessage { identifier, sequence: next.sequence, data: next.data.bytes() };
            let ip = self.network.ip_mut();
            let sent = ip.echo_request(&next.path, &message, &mut self.env.ip(), &mut self.device);
            let failure = match failure_of(sent) {
                Ok(failure) => failure,
                Err(turn) => return turn,
            };
            if echo.finish_first(failure, self.env.now(), self.env.pool()) {
                self.sockets.notify(key.into());
            }
        }
        match self.sockets.echo(key) {
            Some(echo) if !echo.is_idle() => Turn::More,
            _ => Turn::Done,
        }
    }
    /// Sends some of a socket's probes.
    pub(super) fn probe_turn(&mut self, key: ProbeSocketId, budget: usize) -> Turn {
        for _ in 0..budget {
            let Some(prober) = self.sockets.probe_mut(key) else { return Turn::Done };
            let Some(next) = prober.first() else { return Turn::Done };
            if next.path.link != self.link {
                let other = next.path.link;
                self.sockets.schedule_mut().queue_sender(other, key.place());
                return Turn::Done;
            }
            let mut how = HeaderHow::new(prober.protocol(next.path.destination));
            how.hop_limit = Some(next.hop_limit);
            (how.dont_fragment, how.beyond_path_mtu) = (true, true);
            let message = Slices::one(next.message.bytes());
            let ip = self.network.ip_mut();
            let sent = ip.send_datagram(&next.path, &how, message, &mut self.env.ip(), &mut self.device);
            let failure = match failure_of(sent) {
                Ok(failure) => failure,
                Err(turn) => return turn,
            };
            if prober.finish_first(failure, self.env.now(), self.env.pool()) {
                self.sockets.notify(key.into());
            }
        }
        match self.sockets.probe(key) {
            Some(prober) if !prober.is_idle() => Turn::More,
            _ => Turn::Done,
        }
    }
}

/// What the application is told of a datagram that has left or failed, or how the turn ends since it has to wait.
fn failure_of(sent: Result<(), SendDatagramError>) -> Result<Option<DatagramError>, Turn> {
    match sent {
        Ok(()) => Ok(None),
        Err(SendDatagramError::Full) => Err(Turn::Full),
        Err(SendDatagramError::Pending) => Err(Turn::Pending),
        Err(why) => Ok(Some(DatagramError::from(why))),
    }
}
