//! Two hosts on one memory link under a virtual clock.

use inhost_base::{Cidr, Duration, Instant, LinkId};
use inhost_buf::Batch;
use inhost_ip::{DuplicateDetection, InterfaceConfig, Medium};
use inhost_link::{Driver, Faults, Rates, memory};
use inhost_socket::Host;
use inhost_stack::{Stack, StackConfig};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

/// Rounds after which a test is taken to be stuck.
const ROUNDS: usize = 200_000;

pub struct Network {
    pub ends: [End; 2],
    pub now: Instant,
    /// Host 0 takes what has come in each of so many rounds, all at once.
    pub takes_every: usize,
    /// From and until when the link passes nothing on.
    pub cut: Option<(Instant, Instant)>,
    rounds: usize,
}

pub struct End {
    pub host: Host,
    link: LinkId,
    driver: Box<dyn Driver>,
    batch: Batch,
}

impl Network {
    /// Host 0 at 10.9.0.1 and 2001:db8:9::1, host 1 at 10.9.0.2 and 2001:db8:9::2.
    pub fn new() -> Network {
        Network::losing(0.0)
    }
    /// The same with a link that loses such a part of the frames each way.
    #[allow(dead_code)]
    pub fn losing(loss: f64) -> Network {
        let mut rates = Rates::default();
        rates.loss = loss;
        Network::with(rates)
    }
    /// The same with a link that has such faults each way.
    pub fn with(rates: Rates) -> Network {
        let (near, far) = memory::pair(&memory::Config { mtu_bytes: 1500, ..Default::default() }).unwrap();
        let end = |number: u8, driver: memory::Memory| {
            let mut rates = rates;
            rates.seed = u64::from(number);
            let driver = Faults::around(Box::new(driver), rates);
            let mut stack = Stack::new(StackConfig::default(), [number; 32], Instant::ZERO);
            let cidr = |text: String| text.parse::<Cidr>().unwrap();
            let mut config = InterfaceConfig::new("m0", Medium::Ip);
            config.duplicate_detection = DuplicateDetection::Off;
            let interface = config
                .with_address(cidr(format!("10.9.0.{number}/24")))
                .with_address(cidr(format!("2001:db8:9::{number}/64")));
            let link = stack.add_link(interface, Instant::ZERO).unwrap();
            End { host: Host::new(stack, Instant::ZERO), link, driver, batch: Batch::new() }
        };
        Network {
            ends: [end(1, near), end(2, far)],
            now: Instant::ZERO,
            takes_every: 1,
            cut: None,
            rounds: 0,
        }
    }
    /// Runs both hosts until `future`, a task of host 0, is done, and gives what it gave.
    pub fn run<T: 'static>(&mut self, future: impl Future<Output = T> + 'static) -> T {
        let result = Rc::new(RefCell::new(None));
        let place = result.clone();
        self.ends[0]
            .host
            .spawn(async move {
                let value = future.await;
                *place.borrow_mut() = Some(value);
            })
            .detach();
        for _ in 0..ROUNDS {
            self.round();
            if let Some(value) = result.borrow_mut().take() {
                return value;
            }
            if !self.is_busy() {
                let next = self.ends.iter().filter_map(|end| end.host.deadline()).min();
                self.now = self.now.max(next.expect("nothing will ever happen"));
            }
        }
        panic!("no end after {ROUNDS} rounds, at {:?}", self.now);
    }
    fn round(&mut self) {
        self.rounds += 1;
        for (number, End { host, link, driver, batch }) in self.ends.iter_mut().enumerate() {
            if number == 1 || self.rounds.is_multiple_of(self.takes_every) {
                host.with_stack(|stack, _| driver.receive(stack.pool(), batch)).unwrap();
                if self.cut.is_some_and(|(from, until)| from <= self.now && self.now < until) {
                    while batch.pop().is_some() {}
                }
                host.receive(*link, batch, self.now);
            }
            host.run(self.now, 1000);
            host.transmit(*link, self.now, 64, &mut **driver);
        }
        // The wire takes its time.
        self.now += Duration::from_micros(10);
    }
    fn is_busy(&self) -> bool {
        self.ends.iter().any(|end| {
            end.driver.has_received() || end.host.has_runnable() || end.host.wants_transmit(end.link)
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.ends.iter().for_each(|end| end.host.stop());
    }
}
