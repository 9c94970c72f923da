//! Bodies over an Ethernet's MTU under a virtual clock: what is written in one burst leaves as full segments, and the last
//! bytes do not wait.

use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use inhost_base::{Duration, Endpoint, Instant, LinkId};
use inhost_buf::Batch;
use inhost_link::{Driver, memory};
use inhost_socket::{Host, RemoteStream};
use inhost_stack::{DuplicateDetection, InterfaceConfig, ListenOptions, Medium, Stack, StackConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LINK: LinkId = LinkId(1);
const MTU_BYTES: usize = 1500;
/// IP, TCP and the timestamps.
const HEADERS_BYTES: usize = 20 + 20 + 12;
const SERVER: [u8; 4] = [10, 0, 0, 2];
const BODIES: usize = 20;

/// Two hosts at the ends of a wire that takes no time.
struct Two {
    near: Host,
    far: Host,
    drivers: [memory::Memory; 2],
    now: Instant,
    batch: Batch,
    /// Segments to the near host that carry data and are not full.
    short_segments: usize,
}

impl Two {
    fn new() -> Two {
        let config =
            memory::Config { mtu_bytes: MTU_BYTES, queue_bytes: 64 << 20, ..memory::Config::default() };
        let (a, b) = memory::pair(&config).unwrap();
        let host = |address: &str| {
            let mut stack = Stack::new(StackConfig::default(), [3; 32], Instant::ZERO);
            let mut interface = InterfaceConfig::new("wire", Medium::Ip);
            interface.mtu_bytes = MTU_BYTES as u16;
            interface.duplicate_detection = DuplicateDetection::Off;
            let link = stack.add_link(interface.with_address(address.parse().unwrap()), Instant::ZERO);
            assert_eq!(link, Ok(LINK));
            Host::new(stack, Instant::ZERO)
        };
        Two {
            near: host("10.0.0.1/24"),
            far: host("10.0.0.2/24"),
            drivers: [a, b],
            now: Instant::ZERO,
            batch: Batch::new(),
            short_segments: 0,
        }
    }
    /// Rounds of both hosts until nothing is left to do at this instant.
    fn settle(&mut self) {
        let mut busy = true;
        while busy {
            busy = false;
            for (index, host) in [&self.near, &self.far].into_iter().enumerate() {
                let driver = &mut self.drivers[index];
                while driver.has_received() {
                    host.with_stack(|stack, _| driver.receive(stack.pool(), &mut self.batch)).unwrap();
                    let short = HEADERS_BYTES + 1..MTU_BYTES;
                    let mut looked_at = Batch::new();
                    while let Some(packet) = host.with_stack(|stack, _| self.batch.pop_whole(stack.pool())) {
                        self.short_segments += usize::from(index == 0 && short.contains(&packet.len()));
                        looked_at.push(packet).unwrap();
                    }
                    host.receive(LINK, &mut looked_at, self.now);
                }
                busy |= host.run(self.now, 256) > 0;
                host.transmit(LINK, self.now, 256, driver);
                busy |= host.has_runnable() || host.wants_transmit(LINK);
            }
            busy |= self.drivers.iter().any(Driver::has_received);
        }
    }
    /// Goes on to the next instant at which a host has something to do.
    fn advance(&mut self) {
        let next = self.near.deadline().into_iter().chain(self.far.deadline()).min();
        self.now = self.now.max(next.expect("nothing will ever happen again"));
    }
}

/// Answers each byte with a body, as a head and a rest in one write.
async fn serve(mut stream: RemoteStream, body_bytes: usize) {
    let body = vec![0x5a; body_bytes];
    while stream.read_u8().await.is_ok() {
        let mut sent = 0;
        while sent < body_bytes {
            let (head, rest) = body[sent..].split_at(100.min(body_bytes - sent));
            sent += stream.write_vectored(&[IoSlice::new(head), IoSlice::new(rest)]).await.unwrap();
        }
    }
}

/// Asks for bodies; how long they took.
async fn ask(host: Host, body_bytes: usize) -> Duration {
    let mut stream = host.connect(Endpoint::new(SERVER, 80)).await.unwrap();
    let began = host.now();
    let mut place = vec![0; body_bytes];
    for _ in 0..BODIES {
        stream.write_all(b"?").await.unwrap();
        stream.read_exact(&mut place).await.unwrap();
    }
    host.now().since(began)
}

/// How long bodies took that a thread writes, and how many segments of theirs were short. The thread is slower than the
/// wire: it is polled whenever both hosts have nothing left to do.
fn carry(body_bytes: usize) -> (Duration, usize) {
    let mut two = Two::new();
    let listener = two.far.listen(Endpoint::new(SERVER, 80), ListenOptions::default()).unwrap();
    let accepted: Rc<RefCell<Option<RemoteStream>>> = Rc::default();
    let into = accepted.clone();
    two.far
        .spawn(async move { *into.borrow_mut() = Some(listener.accept().await.unwrap().into_remote()) })
        .detach();
    let took: Rc<Cell<Option<Duration>>> = Rc::default();
    let (near, into) = (two.near.clone(), took.clone());
    two.near.spawn(async move { into.set(Some(ask(near, body_bytes).await)) }).detach();
    two.settle();
    let stream = accepted.take().expect("a wire that takes no time connects at once");
    // The SYN and ACK is not a short segment.
    two.short_segments = 0;
    let mut writer = pin!(serve(stream, body_bytes));
    for _ in 0..100_000 {
        if let Some(took) = took.get() {
            two.near.stop();
            two.far.stop();
            return (took, two.short_segments);
        }
        assert!(writer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        if !two.near.has_runnable() && !two.far.has_runnable() {
            two.advance();
        }
        two.settle();
    }
    panic!("the bodies never came");
}

#[test]
fn what_a_thread_writes_in_one_burst_leaves_as_full_segments_and_its_end_does_not_wait() {
    let segment_bytes = MTU_BYTES - HEADERS_BYTES;
    for body_bytes in [3000, 5000, 65_536, 100_000, 1 << 20, (1 << 20) + 1460] {
        assert_ne!(body_bytes % segment_bytes, 0);
        let (took, short_segments) = carry(body_bytes);
        assert_eq!(
            took,
            Duration::ZERO,
            "the last bytes of {body_bytes} waited for a delayed acknowledgment"
        );
        assert_eq!(
            short_segments, BODIES,
            "of {BODIES} bodies of {body_bytes} bytes, each has one last segment"
        );
    }
}
