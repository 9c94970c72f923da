//! The link between a guest and its gateway: the guest's driver, the gateway's end, and the task that runs the
//! gateway within the guest's rounds.

use crate::aside::SharedAside;
use crate::codec;
use inhost_base::{Instant, LinkId};
use inhost_buf::{Batch, Device, Frame, Full, Offers, Offload, Packet, Pool, Shareable, Slices};
use inhost_link::{Driver, FrameFormat, Statistics, memory::Memory};
use inhost_socket::{Host, Sleep};
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Polls of the gateway's tasks within one of the guest's.
const POLLS: usize = 256;
/// Frames sent to the guest within one poll.
const FRAMES: usize = 64;
/// Wakes the gateway's task when the guest has done something that concerns it.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    waker: Mutex<Option<Waker>>,
    /// The gateway found the link full.
    full: AtomicBool,
}

impl Bell {
    fn set(&self, waker: &Waker) {
        let mut place = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !place.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *place = Some(waker.clone());
        }
    }
    fn ring(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The guest's end of the `user` link, to be driven as any link is.
#[derive(Debug)]
pub struct UserDriver {
    memory: Memory,
    bell: Arc<Bell>,
}

impl UserDriver {
    pub(crate) fn new(memory: Memory, bell: Arc<Bell>) -> Self {
        UserDriver { memory, bell }
    }
}

impl Device for UserDriver {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let sent = self.memory.transmit(frame);
        self.bell.ring();
        sent
    }
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        let sent = self.memory.transmit_shared(frame, payload);
        self.bell.ring();
        sent
    }
    fn offers(&self) -> Offers {
        self.memory.offers()
    }
}

impl Driver for UserDriver {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<usize> {
        let count = self.memory.receive(pool, batch)?;
        if count > 0 && self.bell.full.swap(false, Ordering::Relaxed) {
            self.bell.ring();
        }
        Ok(count)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn wants_write(&self) -> bool {
        false
    }
    fn has_received(&self) -> bool {
        self.memory.has_received()
    }
    fn can_transmit(&self) -> bool {
        self.memory.can_transmit()
    }
    fn deadline(&self, now: Instant) -> Option<Instant> {
        self.memory.deadline(now)
    }
    fn advance(&mut self, now: Instant) {
        self.memory.advance(now);
    }
    fn frame_format(&self) -> FrameFormat {
        self.memory.frame_format()
    }
    fn mtu_bytes(&self) -> usize {
        self.memory.mtu_bytes()
    }
    fn describe(&self) -> String {
        format!("user, in-process gateway, MTU {}", self.memory.mtu_bytes())
    }
    fn statistics(&self) -> Statistics {
        self.memory.statistics()
    }
}

/// The gateway, run by a task of its guest.
pub(crate) struct Pump {
    pub(crate) guest: Host,
    pub(crate) gateway: Host,
    pub(crate) link: LinkId,
    pub(crate) memory: Memory,
    pub(crate) bell: Arc<Bell>,
    pub(crate) aside: SharedAside,
    /// Whether an address is answered for by the gateway's own stack.
    pub(crate) is_own: Box<dyn Fn(inhost_base::IpAddr) -> bool>,
    pub(crate) batch: Batch,
    pub(crate) sifted: Batch,
    pub(crate) alarm: Option<Sleep>,
}

impl Future for Pump {
    type Output = ();

    /// One round of the gateway. It never ends by itself; dropping it stops the gateway.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.bell.set(context.waker());
        self.gateway.doorbell().end_sleep();
        let now = self.guest.now();
        self.take_in(now);
        self.gateway.run(now, POLLS);
        let more = self.give_out(now);
        let due = self.gateway.deadline().is_some_and(|due| due <= now);
        if more || due || self.memory.has_received() || !self.gateway.doorbell().begin_sleep() {
            // The guest's other tasks have their turn first.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.set_alarm(context);
        Poll::Pending
    }
}

impl Pump {
    fn take_in(&mut self, now: Instant) {
        self.memory.advance(now);
        let Pump { gateway, memory, batch, sifted, is_own, aside, link, .. } = self;
        gateway.with_stack(|stack, _| {
            // A memory link cannot fail.
            let _ = memory.receive(stack.pool(), batch);
            let mut pieces_left: usize = 0;
            while let Some(packet) = batch.pop() {
                // What comes in pieces is a stream's, and only the first has headers.
                let in_pieces = pieces_left > 0 || packet.pieces() > 0;
                pieces_left = packet.pieces().max(pieces_left.saturating_sub(1));
                let for_stack =
                    if in_pieces { Some(packet) } else { sift(packet, is_own, aside, stack.pool()) };
                if let Some(packet) = for_stack
                    && let Err(packet) = sifted.push(packet)
                {
                    stack.pool().give(packet);
                }
            }
        });
        gateway.receive(*link, sifted, now);
        let waiting = aside.borrow_mut().take_waiting();
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
    /// Sends to the guest; true when more could be sent at once.
    fn give_out(&mut self, now: Instant) -> bool {
        let mut full = false;
        loop {
            let Some(packet) = self.aside.borrow_mut().take_packet() else { break };
            let frame = Frame { header: &packet, payload: Slices::EMPTY, offload: Offload::None };
            if self.memory.transmit(&frame).is_err() {
                self.aside.borrow_mut().return_packet(packet);
                full = true;
                break;
            }
        }
        let mut more = false;
        if !full {
            let sent = self.gateway.transmit(self.link, now, FRAMES, &mut self.memory);
            full = sent.device_full;
            more = sent.more && !sent.device_full;
        }
        if full {
            self.bell.full.store(true, Ordering::Relaxed);
            // The guest may have made room between the attempt and the mark.
            more = self.memory.can_transmit();
        }
        more
    }
    fn set_alarm(&mut self, context: &mut Context<'_>) {
        let Some(deadline) = self.gateway.deadline() else {
            self.alarm = None;
            return;
        };
        if self.alarm.as_ref().is_none_or(|alarm| alarm.deadline() != deadline) {
            self.alarm = Some(self.guest.sleep_until(deadline));
        }
        if let Some(alarm) = &mut self.alarm
            && Pin::new(alarm).poll(context).is_ready()
        {
            context.waker().wake_by_ref();
        }
    }
    /// Connects the gateway's doorbell to this task.
    pub(crate) fn listen_for_the_gateway(&self) {
        let bell = self.bell.clone();
        self.gateway.doorbell().set_waker(move || bell.ring());
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.gateway.stop();
    }
}

/// Takes out the packet when it is not for the gateway's stack, which would answer every echo request by itself.
fn sift(
    packet: Packet,
    is_own: &dyn Fn(inhost_base::IpAddr) -> bool,
    aside: &SharedAside,
    pool: &mut Pool,
) -> Option<Packet> {
    match codec::classify(packet.bytes(), is_own) {
        codec::Class::ForStack => return Some(packet),
        codec::Class::EchoElsewhere(request) => aside.borrow_mut().ask(request),
        codec::Class::Nothing => {}
    }
    pool.give(packet);
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_link::memory;
    use inhost_stack::{Stack, StackConfig};

    /// Packets of the gateway's own wait for room on the link, as all others do.
    #[test]
    fn what_a_full_link_has_no_room_for_is_sent_later() {
        let config = memory::Config { queue_frames: 2, ..memory::Config::default() };
        let (mut near, far) = memory::pair(&config).unwrap();
        let host = || Host::new(Stack::new(StackConfig::default(), [0; 32], Instant::ZERO), Instant::ZERO);
        let mut pump = Pump {
            guest: host(),
            gateway: host(),
            link: LinkId(0),
            memory: far,
            bell: Arc::default(),
            aside: SharedAside::default(),
            is_own: Box::new(|_| false),
            batch: Batch::new(),
            sifted: Batch::new(),
            alarm: None,
        };
        for number in 0..5 {
            pump.aside.borrow_mut().send(vec![0x45, number]);
        }
        let (mut pool, mut batch, mut came) = (Pool::new(1 << 20), Batch::new(), Vec::new());
        for _ in 0..3 {
            pump.give_out(Instant::ZERO);
            near.receive(&mut pool, &mut batch).unwrap();
            while let Some(packet) = batch.pop() {
                came.push(packet.bytes()[1]);
                pool.give(packet);
            }
        }
        assert_eq!(came, [0, 1, 2, 3, 4]);
    }
}
