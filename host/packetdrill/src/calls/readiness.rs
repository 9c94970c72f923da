//! `poll` and epoll.

use crate::blocking::{self, Wait};
use crate::calls::sending::is_opening;
use crate::calls::unreported_error;
use crate::descriptors::{Entry, Socket, State};
use crate::memory::{self, Lent};
use crate::options;
use crate::world::{World, call};
use core::ffi::{c_int, c_void};
use inhost_base::Duration;
use inhost_event::TcpState;
use inhost_stack::{Readiness, TcpSocketId};
use libc::{
    EAGAIN, EEXIST, EINVAL, ENOENT, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, POLLERR, POLLHUP, POLLIN,
    POLLNVAL, POLLOUT, POLLRDHUP, POLLRDNORM, POLLWRNORM, epoll_event, nfds_t, pollfd,
};

/// What is told whether it was asked for or not.
const ALWAYS: u32 = (POLLERR | POLLHUP) as u32;
/// Descriptors of one `poll`.
const POLL_LIMIT: usize = 4096;

impl World {
    /// What `poll` would say of a socket, whatever was asked.
    pub fn events(&self, socket: &Socket) -> i16 {
        let name = match socket.state {
            State::Connection(_) if socket.deferred => return POLLOUT | POLLWRNORM,
            State::Fresh => return POLLOUT | POLLWRNORM | POLLHUP,
            State::Listener(name) => {
                let ready = self.stack.readiness(name).contains(Readiness::ACCEPTABLE);
                return if ready { POLLIN | POLLRDNORM } else { 0 };
            }
            State::Connection(name) => name,
        };
        let Some(info) = self.tcp(name) else { return POLLOUT | POLLWRNORM | POLLHUP };
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
        if unreported_error(&self.stack, socket).is_some()
            || socket.error.is_some()
            || socket.completions.has_notices()
        {
            events |= POLLERR;
        }
        events
    }
    /// Whether there is so much room to send that it is worth telling.
    fn has_room(&self, socket: &Socket, name: TcpSocketId, info: &inhost_tcp::Info) -> bool {
        let low_water = socket.low_water();
        match (&socket.send_buffer, self.stack.instruments().send_queue(name)) {
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
        Ok(millis) => Wait::Until { deadline: world.now + Duration::from_millis(millis), after: Ok(0) },
    }
}

fn poll_now(world: &mut World, mut places: Lent, count: usize, timeout_ms: c_int) -> Result<i64, i32> {
    let base = places.bytes_mut().as_mut_ptr().cast::<pollfd>();
    let mut found = 0;
    for index in 0..count {
        // The place was checked to have `count` entries.
        let place = base.wrapping_add(index);
        let mut entry = memory::read(place)?;
        entry.revents = match world.descriptors.socket(entry.fd) {
            _ if entry.fd < 0 => 0,
            Ok(socket) => world.events(socket) & (entry.events | POLLERR | POLLHUP),
            Err(_) => POLLNVAL,
        };
        found += i64::from(entry.revents != 0);
        memory::write(place, entry)?;
    }
    if found > 0 || timeout_ms == 0 { Ok(found) } else { Err(EAGAIN) }
}

/// A set of sockets that are watched.
#[derive(Debug, Default)]
pub(crate) struct Epoll {
    /// In the order in which they are to be told.
    interests: Vec<Interest>,
}

#[derive(Clone, Copy, Debug)]
struct Interest {
    fd: i32,
    /// The EPOLL bits asked for.
    events: u32,
    data: u64,
    /// Whether something happened since it was last told: what an edge is.
    happened: bool,
    /// Told once, and not again before it is changed.
    spent: bool,
}

impl Epoll {
    /// Notes that something happened to a descriptor, for who asked for any of `events`.
    pub fn note(&mut self, fd: i32, events: i16) {
        let events = events as u16 as u32;
        for interest in self.interests.iter_mut().filter(|interest| interest.fd == fd) {
            interest.happened |= (interest.events | ALWAYS) & events != 0;
        }
    }
    /// The descriptor is closed.
    pub fn forget(&mut self, fd: i32) {
        self.interests.retain(|interest| interest.fd != fd);
    }
}

pub(crate) unsafe extern "C" fn epoll_create(_: *mut c_void, size: c_int) -> c_int {
    call(|world| {
        if size <= 0 {
            return Err(EINVAL);
        }
        world.descriptors.add(Entry::Epoll(Epoll::default())).map(i64::from)
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
        world.descriptors.socket(fd)?;
        let epoll = world.descriptors.epoll_mut(set)?;
        let place = epoll.interests.iter().position(|interest| interest.fd == fd);
        if operation == EPOLL_CTL_DEL {
            epoll.interests.remove(place.ok_or(ENOENT)?);
            return Ok(0);
        }
        let epoll_event { events, u64: data } = memory::read(event)?;
        let interest = Interest { fd, events, data, happened: true, spent: false };
        match (operation, place) {
            (EPOLL_CTL_ADD, None) => epoll.interests.push(interest),
            (EPOLL_CTL_MOD, Some(place)) => epoll.interests[place] = interest,
            (EPOLL_CTL_ADD, Some(_)) => return Err(EEXIST),
            (EPOLL_CTL_MOD, None) => return Err(ENOENT),
            _ => return Err(EINVAL),
        }
        Ok(0)
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
        world.descriptors.epoll_mut(set)?;
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
    let mut interests = std::mem::take(&mut world.descriptors.epoll_mut(set)?.interests);
    let mut found = 0;
    for interest in &mut interests {
        if found == most {
            break;
        }
        let Some(events) = told(world, interest) else { continue };
        let place = base.wrapping_add(found);
        memory::write(place, epoll_event { events, u64: interest.data })?;
        found += 1;
    }
    world.descriptors.epoll_mut(set)?.interests = interests;
    if found > 0 || timeout_ms == 0 { Ok(found as i64) } else { Err(EAGAIN) }
}

/// What is to be told of one descriptor, which counts as told.
fn told(world: &World, interest: &mut Interest) -> Option<u32> {
    const EDGE: u32 = libc::EPOLLET as u32;
    const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;
    if interest.spent || (interest.events & EDGE != 0 && !interest.happened) {
        return None;
    }
    let socket = world.descriptors.socket(interest.fd).ok()?;
    // EPOLLIN and the others are the bits of `poll`.
    let present = world.events(socket) as u16 as u32 & (interest.events | ALWAYS);
    interest.happened = false;
    if present == 0 {
        return None;
    }
    interest.spent = interest.events & ONE_SHOT != 0;
    Some(present)
}
