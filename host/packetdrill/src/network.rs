//! Packets between the tool and the host: bare IP datagrams both ways.

use crate::memory::{self, Lent};
use crate::outbound::Outbound;
use crate::world::call;
use core::ffi::{c_int, c_longlong, c_void};
use libc::EINVAL;

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
            memory::write(time_micros, world.now().as_micros() as c_longlong)?;
            return memory::write(length, 0).map(|()| 0);
        };
        let target = room.bytes_mut().get_mut(..bytes.len()).ok_or(EINVAL)?;
        target.copy_from_slice(&bytes);
        memory::write(length, bytes.len())?;
        memory::write(time_micros, at.as_micros() as c_longlong).map(|()| 0)
    }) as c_int
}
