//! Packets between the tool and the host: bare IP datagrams both ways.

use crate::memory::{self, Lent};
use crate::outbound::Outbound;
use crate::world::{World, call};
use core::ffi::{c_int, c_longlong, c_void};
use inhost_base::{Duration, IpAddr};
use inhost_buf::Batch;
use inhost_event::Ignore;
use libc::{EINVAL, ENOBUFS};

/// How long nothing may be sent, in virtual time, before the tool is told that nothing comes. Longer than the longest
/// pause that a backed-off retransmission makes.
const SILENCE: Duration = Duration::from_secs(130);
/// The same while no timer is running, so that nothing can come.
const IDLE_SILENCE: Duration = Duration::from_secs(2);

/// A datagram from the tool.
pub(crate) unsafe extern "C" fn netdev_send(_: *mut c_void, packet: *const c_void, bytes: usize) -> c_int {
    call(|world| {
        let datagram = Lent::new(packet.cast_mut().cast(), bytes)?;
        world.take(datagram.bytes()).map(|()| 0)
    }) as c_int
}

/// The next datagram for the tool: time passes until there is one. A length of 0 says that none comes.
pub(crate) unsafe extern "C" fn netdev_receive(
    _: *mut c_void,
    buffer: *mut c_void,
    length: *mut usize,
    time_micros: *mut c_longlong,
) -> c_int {
    call(|world| {
        let mut room = Lent::new(buffer.cast(), memory::read(length)?)?;
        let Some(Outbound { at, bytes }) = world.await_outbound() else {
            memory::write(time_micros, world.now.as_micros() as c_longlong)?;
            return memory::write(length, 0).map(|()| 0);
        };
        let target = room.bytes_mut().get_mut(..bytes.len()).ok_or(EINVAL)?;
        target.copy_from_slice(&bytes);
        memory::write(length, bytes.len())?;
        memory::write(time_micros, at.as_micros() as c_longlong).map(|()| 0)
    }) as c_int
}

impl World {
    fn take(&mut self, datagram: &[u8]) -> Result<(), i32> {
        if let Some(destination) = destination(datagram) {
            self.learn(destination);
        }
        let mut packet = self.stack.pool().take(datagram.len()).ok_or(ENOBUFS)?;
        packet.append(datagram);
        let mut batch = Batch::new();
        if let Err(packet) = batch.push(packet) {
            self.stack.pool().give(packet);
        }
        self.stack.receive(self.link, &mut batch, self.now, &mut Ignore);
        Ok(())
    }
    /// Lets time pass until a datagram has left.
    fn await_outbound(&mut self) -> Option<Outbound> {
        let limit = self.now + SILENCE;
        loop {
            if let Some(outbound) = self.outbound.pop_front() {
                return Some(outbound);
            }
            match self.next_event().filter(|&moment| moment <= limit) {
                Some(moment) => self.advance_to(moment),
                None => {
                    self.advance_to(self.now + IDLE_SILENCE);
                    return self.outbound.pop_front();
                }
            }
        }
    }
}

/// Where a datagram goes to, when it looks like one.
fn destination(datagram: &[u8]) -> Option<IpAddr> {
    match datagram.first()? >> 4 {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(datagram.get(16..20)?).ok()?)),
        6 => Some(IpAddr::from(<[u8; 16]>::try_from(datagram.get(24..40)?).ok()?)),
        _ => None,
    }
}
