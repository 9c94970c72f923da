//! Futures that are dropped before they are done; any number of tasks that wait for one thing; calls that block a thread
//! on which somebody waits.
#![cfg(feature = "tokio")]

use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use inhost::Host;
use inhost::link::memory;
use inhost::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use inhost_interop::{join, pause, receive, until, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::{in_time, pair};

/// Tasks that wait for one thing.
const WAITING: usize = 100;
/// How long a future that is polled again is left alone when nothing wakes it.
const LEFT_ALONE: Duration = Duration::from_micros(300);

/// Wakes a thread.
struct Unparked(Thread);

impl Wake for Unparked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls `future` so often at most, then drops it: `None` when it was not done by then.
fn polled<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(Unparked(thread::current())));
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        pause(LEFT_ALONE);
    }
    None
}

/// A host to which every destination belongs, and one that calls it.
fn any_and_caller() -> io::Result<(Host, Host)> {
    let config = memory::Config { doorbell: true, ..memory::Config::default() };
    let (near, far) = memory::pair(&config)?;
    let any = Host::builder().any_address(near).start()?;
    let far = Host::builder()
        .driver(far, |link| link.with_address("10.9.0.2/24".parse().unwrap()).with_gateway([10, 9, 0, 1]));
    Ok((any, far.start()?))
}

#[test]
fn no_caller_is_lost_when_accept_is_dropped_at_any_poll() -> io::Result<()> {
    const CALLERS: usize = 100;
    for polls in 1..=3 {
        let (any, caller) = any_and_caller()?;
        let listener = any.block_on(any.listen_any())?;
        let calls = thread::spawn(move || {
            let call = || async {
                let mut stream = caller.connect("203.0.113.7:80").await?;
                stream.write_all(b"x").await?;
                stream.read_u8().await
            };
            (0..CALLERS).filter(|_| caller.block_on(call()).is_ok()).count()
        });
        let mut accepted = Vec::new();
        until("the end of every call", || {
            if let Some(stream) = polled(listener.accept(), polls) {
                let (mut stream, _) = stream.unwrap();
                // A caller that has gone is found by the count of the answered ones.
                let _ = any.block_on(stream.write_u8(7));
                accepted.push(stream);
            }
            calls.is_finished().then_some(())
        });
        assert_eq!(join(calls), CALLERS, "with accept dropped at poll {polls}");
    }
    Ok(())
}

#[test]
fn tasks_that_accept_at_once_all_get_a_caller() -> io::Result<()> {
    const TASKS: usize = 8;
    let (any, caller) = any_and_caller()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(in_time(async {
        let listener = Arc::new(any.listen_any().await?);
        let mut accepting = JoinSet::new();
        for _ in 0..TASKS {
            let listener = listener.clone();
            accepting.spawn(async move { poll_fn(|context| listener.poll_accept(context)).await });
        }
        let mut calls = Vec::new();
        for _ in 0..TASKS {
            calls.push(caller.connect("203.0.113.7:80").await?);
        }
        while let Some(accepted) = accepting.join_next().await {
            accepted.unwrap()?;
        }
        Ok(())
    }))
}

#[test]
fn nothing_is_lost_when_a_future_is_dropped_at_any_poll() -> io::Result<()> {
    for polls in 1..=3 {
        let (near, far) = pair()?;
        let listener = until("a listener", || polled(far.listen("10.9.0.2:7"), 1000))?;
        let calls = thread::spawn(move || near.block_on(near.connect("10.9.0.2:7")).map(|call| (near, call)));
        let (stream, _) = until("a caller", || polled(listener.accept(), polls))?;
        let (near, mut call) = join(calls)?;
        let mut stream = stream;
        // Longer than what any queue between holds.
        let sent: Vec<u8> = (0..6_000_000u32).map(|index| (index % 251) as u8).collect();
        let text = sent.clone();
        let writer = thread::spawn(move || {
            let mut rest = &text[..];
            while !rest.is_empty() {
                until("room to write", || polled(call.writable(), polls)).unwrap();
                let count = until("a write", || polled(call.write(rest), polls)).unwrap();
                rest = &rest[count..];
            }
            call
        });
        let (mut received, mut place) = (Vec::new(), vec![0; 100_000]);
        while received.len() < sent.len() {
            until("something to read", || polled(stream.readable(), polls))?;
            let seen = until("a peek", || polled(stream.peek(&mut place[..1]), polls))?;
            let count = until("a read", || polled(stream.read(&mut place), polls))?;
            assert!(seen == 1 && count > 0);
            received.extend_from_slice(&place[..count]);
        }
        assert!(received == sent, "with each future dropped at poll {polls}");
        let call = join(writer);
        assert!(until("the figures", || polled(call.info(), 1000)).is_some());

        let server = until("a socket", || polled(far.udp("10.9.0.2:9"), 1000))?;
        let client = until("a socket", || polled(near.udp("10.9.0.1:0"), 1000))?;
        until("a connected socket", || polled(client.connect("10.9.0.2:9"), 1000))?;
        for index in 0..200u32 {
            until("a sent datagram", || polled(client.send(&index.to_be_bytes()[..]), polls))?;
            until("something to receive", || polled(server.readable(), polls))?;
            let (count, _) = until("a datagram", || polled(server.recv_from(&mut place), polls))?;
            assert_eq!(&place[..count], index.to_be_bytes());
        }
    }
    Ok(())
}

#[test]
fn an_attempt_that_is_dropped_at_any_poll_leaves_nothing_behind() -> io::Result<()> {
    let (near, far) = pair()?;
    let listener = far.block_on(far.listen("10.9.0.2:7"))?;
    // Until the attempt is done by its last poll.
    let is_done = (1..100).any(|polls| polled(near.connect("10.9.0.2:7"), polls).is_some());
    assert!(is_done);
    let is_done = (1..100).any(|polls| polled(far.listen("10.9.0.2:8"), polls).is_some());
    assert!(is_done);
    let is_done = (1..100).any(|polls| polled(far.udp("10.9.0.2:8"), polls).is_some());
    assert!(is_done);
    drop(listener);
    for host in [near, far] {
        until("the end of all that was given up", || {
            let open = host.run(|host| async move {
                host.with_stack(|stack, _| {
                    stack.instruments().socket_states().filter(|s| is_open(s.2)).count()
                })
            });
            (host.block_on(open) == Ok(0)).then_some(())
        });
    }
    Ok(())
}

/// Whether a socket is more than a connection in TIME-WAIT.
fn is_open(state: Option<inhost::stack::TcpState>) -> bool {
    state != Some(inhost::stack::TcpState::TimeWait)
}

/// A wait for one thing, for a task of its own.
type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Has many tasks wait for what `wait` gives; they come to rest, and all of them end after `event`.
async fn all_wait_and_are_woken(
    what: &str,
    mut wait: impl FnMut() -> Wait,
    event: impl AsyncFnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let polls = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..WAITING {
        let (polls, mut waiting) = (polls.clone(), wait());
        tasks.spawn(poll_fn(move |context| {
            polls.fetch_add(1, Ordering::SeqCst);
            waiting.as_mut().poll(context)
        }));
    }
    let at_rest = tokio::task::spawn_blocking(move || {
        within(Duration::from_secs(10), || {
            let before = polls.load(Ordering::SeqCst);
            pause(Duration::from_millis(50));
            (before >= WAITING && polls.load(Ordering::SeqCst) == before).then_some(())
        })
    });
    assert!(at_rest.await.unwrap().is_some(), "tasks that wait for {what} never come to rest");
    event().await?;
    let all = async { while tasks.join_next().await.is_some() {} };
    let woken = tokio::time::timeout(Duration::from_secs(20), all).await;
    assert!(woken.is_ok(), "{} of {WAITING} tasks that wait for {what} were not woken", tasks.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_number_of_tasks_wait_for_one_thing_at_rest_and_all_are_woken() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let listener = far.listen("10.9.0.2:7").await?;
        let call = Arc::new(near.connect("10.9.0.2:7").await?);
        let (mut server, _) = listener.accept().await?;

        let stream = || call.clone();
        let readable = || -> Wait {
            let stream = stream();
            Box::pin(async move { stream.readable().await.unwrap() })
        };
        all_wait_and_are_woken("something to read", readable, async || server.write_all(b"x").await).await?;

        // The peer reads nothing, until there is no room.
        while tokio::time::timeout(Duration::from_millis(300), call.writable()).await.is_ok() {
            let _ = call.try_write(&[7; 65_536]);
        }
        let writable = || -> Wait {
            let stream = stream();
            Box::pin(async move { stream.writable().await.unwrap() })
        };
        let moment = Duration::from_millis(5);
        let read = async || {
            let mut place = vec![0; 1 << 20];
            while tokio::time::timeout(moment, call.writable()).await.is_err() {
                assert!(server.read(&mut place).await? > 0);
            }
            Ok(())
        };
        all_wait_and_are_woken("room to write", writable, read).await?;

        let (socket, sender) = (Arc::new(far.udp("10.9.0.2:9").await?), near.udp("10.9.0.1:0").await?);
        let receivable = || -> Wait {
            let socket = socket.clone();
            Box::pin(async move { socket.readable().await.unwrap() })
        };
        let send = async || sender.send_to(b"x", "10.9.0.2:9").await.map(drop);
        all_wait_and_are_woken("a datagram", receivable, send).await?;

        let listener = Arc::new(listener);
        let accepted = || -> Wait {
            let listener = listener.clone();
            Box::pin(async move { drop(listener.accept().await.unwrap()) })
        };
        let call_all = async || {
            for _ in 0..WAITING {
                near.connect("10.9.0.2:7").await?;
            }
            Ok(())
        };
        all_wait_and_are_woken("a caller", accepted, call_all).await
    })
    .await
}

#[test]
fn a_call_of_the_only_worker_is_answered_by_a_host_within_the_runtime() -> io::Result<()> {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let local = tokio::task::LocalSet::new();
        let work = async {
            let (host, task) = Host::builder().within_tokio()?;
            tokio::task::spawn_local(task);
            let scoped = host.scope(async {
                for port in 80..100 {
                    let socket = TcpSocket::new_v4()?;
                    socket.bind(([127, 0, 0, 1], port).into())?;
                    let listener = socket.listen(8)?;
                    listener.set_ttl(7)?;
                    assert_eq!(listener.local_addr()?.port(), port);
                    // The host sleeps when the next call comes.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                io::Result::Ok(())
            });
            tokio::spawn(scoped).await.unwrap()
        };
        let _ = done.send(local.block_on(&runtime, work));
    });
    receive(&ended)
}

#[test]
fn hosts_whose_tasks_call_each_other_answer() -> io::Result<()> {
    let (near, far) = pair()?;
    let (done, ended) = mpsc::channel();
    for (own, other, port) in [(near.clone(), far.clone(), 1000), (far.clone(), near.clone(), 2000)] {
        let done = done.clone();
        thread::spawn(move || {
            let on_the_thread_of_own = own.run(move |_| async move {
                let _entered = other.enter();
                for port in port..port + 300 {
                    let socket = TcpSocket::new_v4()?;
                    socket.bind(([127, 0, 0, 1], port).into())?;
                    socket.listen(8)?;
                }
                io::Result::Ok(())
            });
            let _ = done.send(own.block_on(on_the_thread_of_own));
        });
    }
    for _ in 0..2 {
        receive(&ended).expect("the host runs")?;
    }
    Ok(())
}

#[test]
fn to_block_in_a_task_of_a_host_panics_with_a_sentence() -> io::Result<()> {
    let host = Host::builder().start()?;
    let (done, ended) = mpsc::channel();
    let inner = host.clone();
    thread::spawn(move || {
        let blocked = host.run(move |_| async move {
            let blocks: [&dyn Fn(); 2] = [&|| drop(inner.block_on(inner.listen("127.0.0.1:0"))), &|| {
                drop(inhost::block_on(inner.listen("127.0.0.1:0")))
            }];
            blocks.map(|block| {
                let panic = catch_unwind(AssertUnwindSafe(block)).unwrap_err();
                *panic.downcast::<&'static str>().unwrap()
            })
        });
        let _ = done.send(host.block_on(blocked).unwrap());
    });
    for sentence in receive(&ended) {
        assert!(sentence.contains("await"), "{sentence}");
    }
    Ok(())
}

#[test]
fn hosts_that_hold_each_other_go_down() -> io::Result<()> {
    let (near, far) = pair()?;
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        // A task of each holds the other until its own host stops.
        let hold = |own: &Host, other: Host, done: mpsc::Sender<()>| {
            let held = own.run(|host| async move {
                // Dropped in this order.
                let held = (other, done);
                let forever = async move {
                    std::future::pending::<()>().await;
                    drop(held);
                };
                host.spawn(forever).detach();
            });
            own.block_on(held).unwrap();
        };
        hold(&near, far.clone(), done.clone());
        hold(&far, near.clone(), done);
        drop(far);
        // One begins to go down, and when it has, no other handle is left.
        let mut down = Box::pin(async move { near.shutdown().await });
        let _ = down.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    });
    // Both tasks are gone.
    let is_over = ended.recv_timeout(inhost_interop::DEADLINE);
    assert_eq!(is_over, Err(mpsc::RecvTimeoutError::Disconnected));
    Ok(())
}

#[test]
fn a_default_host_is_kept_until_it_is_taken() -> io::Result<()> {
    Host::builder().start()?.make_default();
    let error = inhost::block_on(TcpStream::connect("127.0.0.1:7")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    let host = Host::take_default();
    assert!(host.is_some() && Host::take_default().is_none());
    let error = inhost::block_on(TcpStream::connect("127.0.0.1:7")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotConnected);
    Ok(())
}

#[test]
fn errors_of_a_stopped_host_are_of_one_kind() -> io::Result<()> {
    let (near, far) = pair()?;
    let listener = far.block_on(far.listen("10.9.0.2:7"))?;
    let call = near.block_on(near.connect("10.9.0.2:7"))?;
    let socket = near.block_on(near.udp("10.9.0.1:0"))?;
    let near_listener = near.block_on(near.listen("10.9.0.1:7"))?;
    near.block_on(near.shutdown());
    let kind = |error: io::Error| error.kind();
    let kinds = near.block_on(async {
        let mut call = call;
        let tcp = TcpSocket::new_v4()?;
        tcp.bind("10.9.0.1:9".parse().unwrap())?;
        io::Result::Ok([
            ("connect", near.connect("10.9.0.2:7").await.err().map(kind)),
            ("bind", TcpListener::bind("10.9.0.1:8").await.err().map(kind)),
            ("listen", tcp.listen(8).err().map(kind)),
            ("accept", near_listener.accept().await.err().map(kind)),
            ("set_ttl", near_listener.set_ttl(7).err().map(kind)),
            ("read", call.read(&mut [0; 8]).await.err().map(kind)),
            ("write", call.write(b"x").await.err().map(kind)),
            ("udp", UdpSocket::bind("10.9.0.1:0").await.err().map(kind)),
            ("send", socket.send_to(b"x", "10.9.0.2:9").await.err().map(kind)),
            ("receive", socket.recv_from(&mut [0; 8]).await.err().map(kind)),
            ("join", socket.join_multicast_v4([224, 0, 0, 99].into(), [0, 0, 0, 0].into()).err().map(kind)),
            ("name", TcpStream::connect("server:80").await.err().map(kind)),
        ])
    })?;
    for (call, kind) in kinds {
        assert_eq!(kind, Some(io::ErrorKind::NetworkDown), "{call}");
    }
    drop(listener);
    Ok(())
}
