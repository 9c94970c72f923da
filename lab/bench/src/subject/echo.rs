//! One byte there and back, in memory: by calls of the stack, and by tasks on two hosts.

use crate::answer::Answer;
use crate::host::SHIPPED;
use crate::wire::{self, LINK, Two, Wire, WireConfig};
use inhost_base::{Endpoint, Instant};
use inhost_event::Ignore;
use inhost_runtime::Clock;
use inhost_socket::Host;
use inhost_stack::{ListenOptions, StackConfig};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Round trips between two looks at the clock: one look costs a tenth of a round trip.
const TRIPS_A_LOOK: u32 = 16;
const WIRE: WireConfig = WireConfig { mtu_bytes: 1500, trusted: false };

/// By calls of the stack.
pub fn raw(length: Duration) -> Result<Answer, String> {
    let mut two = Two::new(&StackConfig::default(), WIRE, 1)?;
    let listener = two.listen(7)?;
    let (caller, called) = two.connect(listener, 7)?;
    let mut place = [0; 16];
    let mut trips = Trips::new(two.now, length);
    while trips.go_on(two.now) {
        for _ in 0..TRIPS_A_LOOK {
            two.tick();
            two.caller.tcp(two.now, &mut Ignore).send(caller, b"x").map_err(|e| e.to_string())?;
            two.pass_there();
            two.timers();
            let received =
                two.called.tcp(two.now, &mut Ignore).read(called, &mut place).map_err(|e| e.to_string())?;
            two.called
                .tcp(two.now, &mut Ignore)
                .send(called, &place[..received])
                .map_err(|e| e.to_string())?;
            two.tick();
            two.pass_back();
            two.timers();
            match two.caller.tcp(two.now, &mut Ignore).read(caller, &mut place) {
                Ok(1) => {}
                other => return Err(format!("an echo gave {other:?}")),
            }
        }
        two.tick();
    }
    trips.answer("the stack's own calls, one clock reading a pass")
}

/// By a task at each end, through the executor.
pub fn by_tasks(length: Duration) -> Result<Answer, String> {
    let clock = Clock::start();
    let now = clock.now();
    let [near, far] = [1, 2].map(|net| wire::host(StackConfig::default(), WIRE, net, 1, now));
    let (near, far) = (Host::new(near?, now), Host::new(far?, now));
    let at = Endpoint { address: wire::address(2, 1), port: 7 };
    let listener = far.listen(at, ListenOptions::default()).map_err(|e| e.to_string())?;
    far.spawn(async move {
        let Ok(mut stream) = listener.accept().await else { return };
        let mut place = [0; 16];
        while let Ok(count @ 1..) = stream.read(&mut place).await {
            if stream.write_all(&place[..count]).await.is_err() {
                return;
            }
        }
    })
    .detach();
    let done = Rc::new(Cell::new(0u32));
    let (host, count) = (near.clone(), done.clone());
    near.spawn(async move {
        let Ok(mut stream) = host.connect(at).await else { return };
        let mut place = [0; 16];
        while stream.write_all(b"x").await.is_ok() && matches!(stream.read(&mut place).await, Ok(1)) {
            count.set(count.get().wrapping_add(1));
        }
    })
    .detach();
    let (mut there, mut back) = (Wire::new(WIRE), Wire::new(WIRE));
    let mut trips = Trips::new(clock.now(), length);
    let mut now = clock.now();
    while trips.go_on(now) {
        let before = done.get();
        for _ in 0..16 * TRIPS_A_LOOK {
            now = clock.now();
            near.run(now, 256);
            far.with_stack(|stack, _| there.fill(stack));
            near.transmit(LINK, now, 16, &mut there);
            far.receive(LINK, &mut there.batch, now);
            now = clock.now();
            far.run(now, 256);
            near.with_stack(|stack, _| back.fill(stack));
            far.transmit(LINK, now, 16, &mut back);
            near.receive(LINK, &mut back.batch, now);
            if done.get().wrapping_sub(before) == TRIPS_A_LOOK {
                break;
            }
        }
        if done.get() == before {
            return Err("the tasks no longer answer each other".into());
        }
        now = clock.now();
    }
    let answer = trips.answer("a task at each end on the library's executor, one clock reading a pass");
    near.stop();
    far.stop();
    answer
}

/// Groups of round trips, timed.
struct Trips {
    began: Instant,
    last: Instant,
    length: Duration,
    each_ns: Vec<f64>,
}

impl Trips {
    fn new(now: Instant, length: Duration) -> Trips {
        Trips { began: now, last: now, length, each_ns: Vec::with_capacity(1 << 20) }
    }
    /// Notes that another group is over at `now`; whether there is time for one more. The first fifth is not counted.
    fn go_on(&mut self, now: Instant) -> bool {
        let age = now.since(self.began).as_secs_f64();
        if now > self.last && age > self.length.as_secs_f64() / 5.0 {
            self.each_ns.push(now.since(self.last).as_nanos() as f64 / f64::from(TRIPS_A_LOOK));
        }
        self.last = now;
        age < self.length.as_secs_f64()
    }
    fn answer(self, how: &str) -> Result<Answer, String> {
        let (p50, p99) = percentiles(self.each_ns).ok_or("too few round trips")?;
        let settings = format!("{SHIPPED}; {how}; timed in groups of {TRIPS_A_LOOK}");
        Ok(Answer::new(settings).with("p50", p50 / 1e3).with("p99", p99 / 1e3))
    }
}

/// The middle and the 99th percentile; `None` of nothing.
pub fn percentiles(mut all: Vec<f64>) -> Option<(f64, f64)> {
    all.sort_by(f64::total_cmp);
    let at = |percent: usize| all.get(all.len() * percent / 100).copied();
    Some((at(50)?, at(99)?))
}
