//! A driver whose type is known at run time only.

use crate::{AddressOffer, Driver, FrameFormat, Handover, NotBack, Statistics};
use inhost_base::Instant;
use inhost_buf::{Batch, Device, Frame, Full, Offers, Pool, Shareable};
use std::io;
use std::os::fd::BorrowedFd;

/// Every call goes to the driver in the box, so that what [`open`](crate::open) gives is taken wherever a driver is.
impl Device for Box<dyn Driver> {
    #[inline]
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        (**self).transmit(frame)
    }
    #[inline]
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        (**self).transmit_shared(frame, payload)
    }
    #[inline]
    fn offers(&self) -> Offers {
        (**self).offers()
    }
}

impl Driver for Box<dyn Driver> {
    #[inline]
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<usize> {
        (**self).receive(pool, batch)
    }
    #[inline]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }
    #[inline]
    fn wants_write(&self) -> bool {
        (**self).wants_write()
    }
    #[inline]
    fn has_received(&self) -> bool {
        (**self).has_received()
    }
    #[inline]
    fn can_transmit(&self) -> bool {
        (**self).can_transmit()
    }
    #[inline]
    fn deadline(&self, now: Instant) -> Option<Instant> {
        (**self).deadline(now)
    }
    #[inline]
    fn advance(&mut self, now: Instant) {
        (**self).advance(now);
    }
    fn set_clock(&mut self, clock: Box<dyn Fn() -> Instant + Send>) {
        (**self).set_clock(clock);
    }
    #[inline]
    fn frame_format(&self) -> FrameFormat {
        (**self).frame_format()
    }
    #[inline]
    fn mtu_bytes(&self) -> usize {
        (**self).mtu_bytes()
    }
    fn describe(&self) -> String {
        (**self).describe()
    }
    fn statistics(&self) -> Statistics {
        (**self).statistics()
    }
    fn take_offer(&mut self) -> Option<AddressOffer> {
        (**self).take_offer()
    }
    fn hand_over(&mut self) -> io::Result<Handover> {
        (**self).hand_over()
    }
    fn reopen(&mut self) -> Result<(), NotBack> {
        (**self).reopen()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::{Cidr, IpAddr, Ipv4Addr};
    use inhost_buf::{BlockLayout, Offload, SendQueue, Slices};
    use std::sync::{Arc, Mutex};

    /// A driver that notes its calls, and differs from the default wherever a method has one.
    struct Noting(Arc<Mutex<Vec<&'static str>>>);

    impl Noting {
        fn note(&self, call: &'static str) {
            self.0.lock().unwrap().push(call);
        }
    }

    fn offer() -> AddressOffer {
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        AddressOffer { address: Cidr::new(address, 24).unwrap(), gateway: address }
    }

    impl Device for Noting {
        fn transmit(&mut self, _: &Frame<'_>) -> Result<(), Full> {
            self.note("transmit");
            Err(Full)
        }
        fn transmit_shared(&mut self, _: &Frame<'_>, _: Shareable<'_>) -> Result<(), Full> {
            self.note("transmit_shared");
            Err(Full)
        }
        fn offers(&self) -> Offers {
            self.note("offers");
            Offers { sharing: true, ..Offers::NONE }
        }
    }

    impl Driver for Noting {
        fn receive(&mut self, _: &mut Pool, _: &mut Batch) -> io::Result<usize> {
            self.note("receive");
            Ok(7)
        }
        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            self.note("descriptor");
            None
        }
        fn wants_write(&self) -> bool {
            self.note("wants_write");
            true
        }
        fn has_received(&self) -> bool {
            self.note("has_received");
            true
        }
        fn can_transmit(&self) -> bool {
            self.note("can_transmit");
            false
        }
        fn deadline(&self, now: Instant) -> Option<Instant> {
            self.note("deadline");
            Some(now)
        }
        fn advance(&mut self, _: Instant) {
            self.note("advance");
        }
        fn frame_format(&self) -> FrameFormat {
            self.note("frame_format");
            FrameFormat::Ip
        }
        fn mtu_bytes(&self) -> usize {
            self.note("mtu_bytes");
            576
        }
        fn describe(&self) -> String {
            self.note("describe");
            "noting".to_owned()
        }
        fn statistics(&self) -> Statistics {
            self.note("statistics");
            Statistics { full: 3, ..Statistics::default() }
        }
        fn take_offer(&mut self) -> Option<AddressOffer> {
            self.note("take_offer");
            Some(offer())
        }
        fn hand_over(&mut self) -> io::Result<Handover> {
            self.note("hand_over");
            Err(io::ErrorKind::AddrInUse.into())
        }
        fn reopen(&mut self) -> Result<(), NotBack> {
            self.note("reopen");
            Ok(())
        }
    }

    /// Makes each call once, and checks that no default answered.
    fn each_call(mut driver: impl Driver) {
        let frame = Frame { header: b"", payload: Slices::EMPTY, offload: Offload::None };
        assert_eq!(driver.transmit(&frame), Err(Full));
        let (mut queue, mut pool) = (SendQueue::default(), Pool::new(1 << 20));
        queue.write(&[7; 65_536], BlockLayout::NONE, &mut pool);
        let (_, payload) = queue.shareable(0, 16_384);
        assert_eq!(driver.transmit_shared(&frame, payload.expect("it is long")), Err(Full));
        assert!(driver.offers().sharing);
        assert_eq!(driver.receive(&mut Pool::new(1 << 20), &mut Batch::new()).unwrap(), 7);
        assert!(driver.descriptor().is_none() && driver.wants_write() && driver.has_received());
        assert!(!driver.can_transmit());
        assert_eq!(driver.deadline(Instant::ZERO), Some(Instant::ZERO));
        driver.advance(Instant::ZERO);
        assert_eq!((driver.frame_format(), driver.mtu_bytes()), (FrameFormat::Ip, 576));
        assert_eq!((driver.describe(), driver.statistics().full), ("noting".to_owned(), 3));
        assert_eq!(driver.take_offer(), Some(offer()));
        assert_eq!(driver.hand_over().err().unwrap().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(driver.reopen(), Ok(()));
    }

    #[test]
    fn a_box_passes_on_every_call() {
        let calls = Arc::default();
        each_call(Noting(Arc::clone(&calls)));
        let made = std::mem::take(&mut *calls.lock().unwrap());
        let boxed: Box<dyn Driver> = Box::new(Noting(Arc::clone(&calls)));
        each_call(boxed);
        assert_eq!(*calls.lock().unwrap(), made);
    }
}
