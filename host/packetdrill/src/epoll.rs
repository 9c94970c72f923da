//! A set of descriptors that are watched, and what is to be told of each.

use libc::{
    EEXIST, EINVAL, ENOENT, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, POLLERR, POLLHUP, epoll_event,
};

/// What is told whether it was asked for or not.
const ALWAYS: u32 = (POLLERR | POLLHUP) as u32;

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
    /// Adds a descriptor, changes what is asked for, or removes it. `event` reads what is asked for.
    pub fn control(
        &mut self,
        operation: i32,
        fd: i32,
        event: impl FnOnce() -> Result<epoll_event, i32>,
    ) -> Result<(), i32> {
        let place = self.interests.iter().position(|interest| interest.fd == fd);
        if operation == EPOLL_CTL_DEL {
            self.interests.remove(place.ok_or(ENOENT)?);
            return Ok(());
        }
        let epoll_event { events, u64: data } = event()?;
        let interest = Interest { fd, events, data, happened: true, spent: false };
        match (operation, place) {
            (EPOLL_CTL_ADD, None) => self.interests.push(interest),
            (EPOLL_CTL_MOD, Some(place)) => self.interests[place] = interest,
            (EPOLL_CTL_ADD, Some(_)) => return Err(EEXIST),
            (EPOLL_CTL_MOD, None) => return Err(ENOENT),
            _ => return Err(EINVAL),
        }
        Ok(())
    }
    /// Passes to `tell` what is to be told of the descriptors, of `most` at most, and says of how many there was something.
    /// `present` gives what `poll` would say of one.
    pub fn tell(
        &mut self,
        most: usize,
        present: impl Fn(i32) -> Option<i16>,
        mut tell: impl FnMut(usize, epoll_event) -> Result<(), i32>,
    ) -> Result<usize, i32> {
        let mut found = 0;
        for interest in &mut self.interests {
            if found == most {
                break;
            }
            let Some(events) = interest.told(&present) else { continue };
            tell(found, epoll_event { events, u64: interest.data })?;
            found += 1;
        }
        Ok(found)
    }
}

impl Interest {
    /// What is to be told of the descriptor, which counts as told.
    fn told(&mut self, present: impl Fn(i32) -> Option<i16>) -> Option<u32> {
        const EDGE: u32 = libc::EPOLLET as u32;
        const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;
        if self.spent || (self.events & EDGE != 0 && !self.happened) {
            return None;
        }
        // EPOLLIN and the others are the bits of `poll`.
        let present = present(self.fd)? as u16 as u32 & (self.events | ALWAYS);
        self.happened = false;
        if present == 0 {
            return None;
        }
        self.spent = self.events & ONE_SHOT != 0;
        Some(present)
    }
}
