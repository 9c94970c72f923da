//! `poll` and epoll.

use crate::calls::sending::is_opening;
use crate::calls::unreported_error;
use crate::descriptors::Entry;
use crate::epoll::Epoll;
use crate::memory::{self, Lent};
use crate::options;
use crate::socket::{Socket, State};
use crate::world::blocking::{self, Wait};
use crate::world::{World, call};
use core::ffi::{c_int, c_void};
use inhost_base::Duration;
use inhost_event::TcpState;
use inhost_stack::{Readiness, TcpSocketId};
use libc::{
    EAGAIN, EINVAL, POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLRDHUP, POLLRDNORM, POLLWRNORM,
    epoll_event, nfds_t, pollfd,
};

/// Descriptors of one `poll`.
const POLL_LIMIT: usize = 4096;

impl World {
    /// What `poll` would say of a socket, whatever was asked.
    pub fn events(&self, fd: i32) -> Result<i16, i32> {
        let socket = self.socket(fd)?;
        let name = match socket.state {
            State::Connection(_) if socket.deferred => return Ok(POLLOUT | POLLWRNORM),
            State::Fresh => return Ok(POLLOUT | POLLWRNORM | POLLHUP),
            State::Listener(name) => {
                let ready = self.stack().readiness(name).contains(Readiness::ACCEPTABLE);
                return Ok(if ready { POLLIN | POLLRDNORM } else { 0 });
            }
            State::Connection(name) => name,
        };
        let Some(info) = self.tcp(name) else { return Ok(POLLOUT | POLLWRNORM | POLLHUP) };
        let mut events = 0;
        let peer_closed = options::peer_has_closed(info.state) || socket.reading_ended;
        let closed = info.state == TcpState::Closed;
        if closed || (peer_closed && socket.writing_ended) {
            events |= POLLHUP;
        }
        if peer_closed {
            events |= POLLIN | POLLRDNORM | POLLRDHUP;
        }
        let opening = is_opening(self, name);
        if !opening {
            if info.receive_queue_bytes > 0 {
                events |= POLLIN | POLLRDNORM;
            }
            if closed || socket.writing_ended || self.has_room(socket, name, &info) {
                events |= POLLOUT | POLLWRNORM;
            }
        }
        if unreported_error(self.stack(), socket).is_some()
            || socket.error.is_some()
            || self.descriptors().has_notices(fd)
        {
            events |= POLLERR;
        }
        Ok(events)
    }
    /// Whether there is so much room to send that it is worth telling.
    fn has_room(&self, socket: &Socket, name: TcpSocketId, info: &inhost_tcp::Info) -> bool {
        let low_water = socket.low_water();
        match (
            &socket.send_buffer,
            self.stack().instruments().connection(name).map(|connection| connection.sender().queue()),
        ) {
            (Some(buffer), Some(queue)) => buffer.is_writable(&queue, low_water),
            _ => info.send_queue_bytes < info.send_buffer_bytes && info.not_sent_bytes < low_water,
        }
    }
}

pub(crate) unsafe extern "C" fn poll(
    _: *mut c_void,
    places: *mut pollfd,
    count: nfds_t,
    timeout_ms: c_int,
) -> c_int {
    blocking::call(|world| {
        let count = usize::try_from(count).ok().filter(|&count| count <= POLL_LIMIT).ok_or(EINVAL)?;
        let places = Lent::new(places.cast(), count * size_of::<pollfd>())?;
        let wait = wait_for(world, timeout_ms);
        Ok((Box::new(move |world: &mut World| poll_now(world, places, count, timeout_ms)), wait))
    }) as c_int
}

/// How long a call with a time-out waits: a negative one for ever.
fn wait_for(world: &World, timeout_ms: c_int) -> Wait {
    match u64::try_from(timeout_ms) {
        Err(_) => Wait::Always,
        Ok(0) => Wait::Never,
        Ok(millis) => Wait::Until { deadline: world.now() + Duration::from_millis(millis), after: Ok(0) },
    }
}

fn poll_now(world: &mut World, mut places: Lent, count: usize, timeout_ms: c_int) -> Result<i64, i32> {
    let base = places.bytes_mut().as_mut_ptr().cast::<pollfd>();
    let mut found = 0;
    for index in 0..count {
        // The place was checked to have `count` entries.
        let place = base.wrapping_add(index);
        let mut entry = memory::read(place)?;
        entry.revents = match world.events(entry.fd) {
            _ if entry.fd < 0 => 0,
            Ok(events) => events & (entry.events | POLLERR | POLLHUP),
            Err(_) => POLLNVAL,
        };
        found += i64::from(entry.revents != 0);
        memory::write(place, entry)?;
    }
    if found > 0 || timeout_ms == 0 { Ok(found) } else { Err(EAGAIN) }
}

pub(crate) unsafe extern "C" fn epoll_create(_: *mut c_void, size: c_int) -> c_int {
    call(|world| {
        if size <= 0 {
            return Err(EINVAL);
        }
        world.descriptors_mut().add(Entry::Epoll(Epoll::default())).map(i64::from)
    }) as c_int
}

pub(crate) unsafe extern "C" fn epoll_ctl(
    _: *mut c_void,
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    call(|world| {
        world.socket(fd)?;
        let epoll = world.descriptors_mut().epoll_mut(set)?;
        epoll.control(operation, fd, || memory::read(event)).map(|()| 0)
    }) as c_int
}

pub(crate) unsafe extern "C" fn epoll_wait(
    _: *mut c_void,
    set: c_int,
    places: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> c_int {
    blocking::call(|world| {
        world.descriptors_mut().epoll_mut(set)?;
        let most = usize::try_from(most).ok().filter(|&most| most > 0 && most <= POLL_LIMIT).ok_or(EINVAL)?;
        let places = Lent::new(places.cast(), most * size_of::<epoll_event>())?;
        let wait = wait_for(world, timeout_ms);
        Ok((Box::new(move |world: &mut World| epoll_now(world, set, places, most, timeout_ms)), wait))
    }) as c_int
}

fn epoll_now(
    world: &mut World,
    set: c_int,
    mut places: Lent,
    most: usize,
    timeout_ms: c_int,
) -> Result<i64, i32> {
    let base = places.bytes_mut().as_mut_ptr().cast::<epoll_event>();
    let mut epoll = std::mem::take(world.descriptors_mut().epoll_mut(set)?);
    let events = |fd| world.events(fd).ok();
    let found = epoll.tell(most, events, |place, event| memory::write(base.wrapping_add(place), event));
    *world.descriptors_mut().epoll_mut(set)? = epoll;
    let found = found?;
    if found > 0 || timeout_ms == 0 { Ok(found as i64) } else { Err(EAGAIN) }
}
