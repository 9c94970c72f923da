//! The async face on one host that talks to itself, under a virtual clock.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr, Ipv6Addr};
use inhost_socket::{
    AcceptError, ConnectError, ConnectionError, DatagramError, Either, Elapsed, Host, REMOTE_RING_BYTES,
    RemoteStream, StreamError, both, race,
};
use inhost_stack::{
    CongestionChoice, ConnectionOption, ListenOptions, SendHow, SocketError, SocketOption, Stack,
    StackConfig, TcpConfig, UdpOptions,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn host() -> Host {
    Host::new(Stack::new(StackConfig::default(), [3; 32], Instant::ZERO), Instant::ZERO)
}

fn here(port: u16) -> Endpoint {
    Endpoint::new(Ipv4Addr::LOCALHOST, port)
}

fn pattern(length: usize, seed: u32) -> Vec<u8> {
    (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) ^ seed).to_le_bytes()[3]).collect()
}

#[test]
fn a_megabyte_each_way_at_once_and_both_ends_close() {
    let host = host();
    let listener = host.listen(here(9), ListenOptions::default()).unwrap();
    let (forth, back) = (pattern(1 << 20, 1), pattern(1 << 20, 2));
    let (server_forth, server_back) = (forth.clone(), back.clone());
    let server = host.spawn(async move {
        let stream = listener.accept().await.unwrap();
        let (mut from, mut to) = tokio::io::split(stream);
        let mut received = Vec::new();
        let send = async {
            to.write_all(&server_back).await.unwrap();
            to.shutdown().await.unwrap();
        };
        let (_, read) = both(send, from.read_to_end(&mut received)).await;
        read.unwrap();
        assert!(received == server_forth);
    });
    host.run_alone(async {
        let stream = host.connect(here(9)).await.unwrap();
        let (mut from, mut to) = tokio::io::split(stream);
        let mut received = Vec::new();
        let send = async {
            to.write_all(&forth).await.unwrap();
            to.shutdown().await.unwrap();
        };
        let (_, read) = both(send, from.read_to_end(&mut received)).await;
        read.unwrap();
        assert!(received == back);
        server.await;
    })
    .unwrap();
    assert_eq!(host.open_connections(), 0);
    host.stop();
}

#[test]
fn nobody_listening_is_refused_and_the_host_is_not_disturbed() {
    let host = host();
    let refused = host.run_alone(host.connect(here(99))).unwrap();
    assert_eq!(refused.err(), Some(ConnectError::Connection(ConnectionError::Refused)));
    let refused = host.run_alone(host.connect(Endpoint::new(Ipv6Addr::LOCALHOST, 99))).unwrap();
    assert_eq!(refused.err(), Some(ConnectError::Connection(ConnectionError::Refused)));
}

#[test]
fn held_callers_wait_for_their_answer() {
    let host = host();
    let mut options = ListenOptions::default();
    options.hold_syn = true;
    let listener = host.listen(here(5), options).unwrap();
    let serve = host.clone();
    host.spawn(async move {
        listener.accept_held().await.unwrap().refuse();
        let held = listener.accept_held().await.unwrap();
        assert_eq!(held.local(), here(5));
        serve.sleep(Duration::from_millis(700)).await;
        let mut stream = held.proceed();
        stream.write_all(b"at last").await.unwrap();
        serve.sleep(Duration::from_secs(1)).await;
        drop(listener);
    })
    .detach();
    host.run_alone(async {
        let refused = host.connect(here(5)).await;
        assert_eq!(refused.err(), Some(ConnectError::Connection(ConnectionError::Refused)));
        let began = host.now();
        let mut stream = host.connect(here(5)).await.unwrap();
        assert!(host.now().since(began) >= Duration::from_millis(700));
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "at last");
    })
    .unwrap();
    host.stop();
}

#[test]
fn timers_fire_in_order_of_time_and_a_time_limit_holds() {
    let host = host();
    let order = Rc::new(RefCell::new(Vec::new()));
    for millis in [30, 10, 20] {
        let (at, order) = (host.clone(), order.clone());
        host.spawn(async move {
            at.sleep(Duration::from_millis(millis)).await;
            order.borrow_mut().push((millis, at.now()));
        })
        .detach();
    }
    let limited = host.timeout(Duration::from_millis(15), std::future::pending::<()>());
    assert_eq!(host.run_alone(limited), Some(Err(Elapsed { limit: Duration::from_millis(15) })));
    assert_eq!(host.now(), Instant::from_millis(15));
    host.run_alone(host.sleep_until(Instant::from_millis(50))).unwrap();
    let due: Vec<_> = [10, 20, 30].map(|millis| (millis, Instant::from_millis(millis))).into();
    assert_eq!(*order.borrow(), due);
    assert_eq!(host.run_alone(std::future::pending::<()>()), None);
}

#[test]
fn datagrams_echo_and_errors_are_reported() {
    let host = host();
    let server = host.udp(here(7), UdpOptions::default()).unwrap();
    host.spawn(async move {
        let mut place = [0; 2000];
        loop {
            let info = server.receive_from(&mut place).await.unwrap();
            server.send_to(&place[..info.length_bytes], info.from).await.unwrap();
        }
    })
    .detach();
    host.run_alone(async {
        let socket = host.udp(here(0), UdpOptions::default()).unwrap();
        let mut place = [0; 2000];
        for length in [0, 1, 1999] {
            let sent = pattern(length, 9);
            socket.send_to(&sent, here(7)).await.unwrap();
            let info = socket.receive_from(&mut place).await.unwrap();
            assert_eq!((info.length_bytes, info.from), (length, here(7)));
            assert_eq!(place[..length], sent);
        }
        let deaf = host.udp(here(0), UdpOptions::default()).unwrap();
        deaf.connect(here(4444)).unwrap();
        deaf.send(b"anybody?").await.unwrap();
        let error = deaf.receive_from(&mut place).await.unwrap_err();
        assert!(
            matches!(error, DatagramError::Stack(inhost_stack::DatagramError::Unreachable(_))),
            "{error}"
        );
    })
    .unwrap();
    host.stop();
}

#[test]
fn the_host_answers_its_own_ping() {
    let host = host();
    host.run_alone(async {
        let echo = host.echo().unwrap();
        echo.send(Ipv4Addr::LOCALHOST.into(), 1, b"ping").await.unwrap();
        let mut place = [0; 64];
        let info = echo.receive(&mut place).await.unwrap();
        assert_eq!((info.sequence, &place[..info.length_bytes]), (1, &b"ping"[..]));
    })
    .unwrap();
}

#[test]
fn urgent_data_is_announced_ahead_of_the_stream() {
    let host = host();
    let listener = host.listen(here(23), ListenOptions::default()).unwrap();
    host.run_alone(async {
        let (caller, called) = both(host.connect(here(23)), listener.accept()).await;
        let (caller, called) = (caller.unwrap(), called.unwrap());
        caller.send(b"abc", SendHow::default()).await.unwrap();
        caller.send_urgent(b"\xff\xf2").await.unwrap();
        called.urgent().await;
        assert_eq!(called.urgent_ahead(), Some(5));
        let mut place = [0; 4];
        assert_eq!(called.receive(&mut place).await, Ok(4));
        assert_eq!(called.urgent_ahead(), Some(1));
        assert_eq!(called.receive(&mut place).await, Ok(1));
        assert_eq!(called.urgent_ahead(), None);
    })
    .unwrap();
}

#[test]
fn an_abort_is_learnt_by_both_and_by_who_waits() {
    let host = host();
    let listener = host.listen(here(23), ListenOptions::default()).unwrap();
    host.run_alone(async {
        let (caller, called) = both(host.connect(here(23)), listener.accept()).await;
        let (caller, called) = (caller.unwrap(), called.unwrap());
        let learnt = Rc::new(Cell::new(None));
        let (waiting, told) = (host.clone(), learnt.clone());
        host.spawn(async move {
            told.set(Some(called.receive(&mut [0; 8]).await));
            assert_eq!(called.closed().await, Err(ConnectionError::Reset));
            drop(waiting);
        })
        .detach();
        host.sleep(Duration::from_millis(10)).await;
        caller.abort();
        assert_eq!(caller.receive(&mut [0; 8]).await, Err(StreamError::Closed));
        host.sleep(Duration::from_millis(10)).await;
        assert_eq!(learnt.get(), Some(Err(StreamError::Connection(ConnectionError::Reset))));
    })
    .unwrap();
    host.stop();
}

#[test]
fn a_full_window_makes_the_writer_wait_and_nothing_is_lost() {
    let host = host();
    let listener = host.listen(here(1), ListenOptions::default()).unwrap();
    let sent = pattern(8 << 20, 5);
    let expected = sent.clone();
    let reader = host.clone();
    let read = host.spawn(async move {
        let stream = listener.accept().await.unwrap();
        let mut received = Vec::new();
        let mut place = vec![0; 60_000];
        loop {
            // A slow reader: the writer finds the window closed again and again.
            reader.sleep(Duration::from_millis(5)).await;
            match stream.receive(&mut place).await.unwrap() {
                0 => break,
                count => received.extend_from_slice(&place[..count]),
            }
        }
        received
    });
    host.run_alone(async {
        let mut stream = host.connect(here(1)).await.unwrap();
        stream.write_all(&sent).await.unwrap();
        stream.shutdown();
        assert!(read.await == expected);
    })
    .unwrap();
    host.stop();
}

#[test]
fn readiness_tells_of_room_after_a_write_that_was_taken_in_part() {
    let host = host();
    let listener = host.listen(here(1), ListenOptions::default()).unwrap();
    host.run_alone(async {
        let (caller, called) = both(host.connect(here(1)), listener.accept()).await;
        let (caller, called) = (caller.unwrap(), called.unwrap());
        // More than both queues hold: the last write is taken in part, and nothing says `WouldBlock`.
        let bytes = vec![7; 16 << 20];
        let mut sent = 0;
        for _ in 0..100 {
            let count = caller.send(&bytes, SendHow::default()).await.unwrap();
            sent += count;
            if count < bytes.len() {
                host.sleep(Duration::from_millis(1)).await;
            }
            let room = race(caller.writable(), host.sleep(Duration::from_secs(3))).await;
            if room == Either::Second(()) {
                break;
            }
        }
        let reader = host.clone();
        let read = host.spawn(async move {
            reader.sleep(Duration::from_secs(1)).await;
            let mut place = vec![0; 1 << 20];
            let mut received = 0;
            while received < sent {
                received += called.receive(&mut place).await.unwrap();
            }
        });
        caller.writable().await;
        assert!(caller.send(b"!", SendHow::default()).await.is_ok());
        read.await;
        drop(caller);
    })
    .unwrap();
    host.stop();
}

#[test]
fn one_task_reads_and_writes_at_once_and_pieces_go_together() {
    let host = host();
    let listener = host.listen(here(1), ListenOptions::default()).unwrap();
    host.spawn(async move {
        let stream = listener.accept().await.unwrap();
        tokio::io::copy(&mut &stream, &mut &stream).await.unwrap();
        stream.shutdown();
    })
    .detach();
    host.run_alone(async {
        let stream = host.connect(here(1)).await.unwrap();
        let sent = pattern(300_000, 8);
        let write = async {
            let mut rest = &sent[..];
            while !rest.is_empty() {
                let (a, b) = rest.split_at(rest.len() / 3);
                let pieces = [a, &[], b].map(std::io::IoSlice::new);
                let count = (&stream).write_vectored(&pieces).await.unwrap();
                rest = &rest[count..];
            }
            stream.shutdown();
        };
        let mut received = Vec::new();
        both(write, (&mut &stream).read_to_end(&mut received)).await.1.unwrap();
        assert!(received == sent);
    })
    .unwrap();
    host.stop();
}

#[test]
fn a_task_may_stop_the_host_or_panic_and_the_host_is_still_there() {
    let host = host();
    let panicking = host.spawn(async { panic!("this task is meant to panic") });
    let survivor = host.spawn(async { 7 });
    assert_eq!(host.run_alone(survivor), Some(7));
    panicking.detach();
    let (stopping, held) = (host.clone(), Rc::new(()));
    let holding = held.clone();
    host.spawn(async move {
        std::future::pending::<()>().await;
        drop(holding);
    })
    .detach();
    host.spawn(async move { stopping.stop() }).detach();
    assert_eq!(host.run_alone(std::future::pending::<()>()), None);
    assert_eq!(Rc::strong_count(&held), 1);
    let refused = host.run_alone(host.connect(here(1))).unwrap();
    assert_eq!(refused.err(), Some(ConnectError::Stopped));
}

#[test]
fn a_host_that_drains_takes_no_callers_and_a_stopped_one_drops_its_tasks() {
    let host = host();
    let listener = host.listen(here(1), ListenOptions::default()).unwrap();
    let at = host.clone();
    let ended = Rc::new(Cell::new(false));
    let told = ended.clone();
    host.spawn(async move {
        assert_eq!(listener.accept().await.err(), Some(AcceptError::Stopped));
        at.draining().await;
        told.set(true);
        std::future::pending::<()>().await;
    })
    .detach();
    host.run_alone(host.sleep(Duration::from_millis(1))).unwrap();
    host.drain();
    host.run_alone(host.sleep(Duration::from_millis(1))).unwrap();
    assert!(ended.get());
    assert_eq!(
        host.listen(here(2), ListenOptions::default()).err().map(|e| e.to_string()).as_deref(),
        Some("the host is stopping")
    );
    host.stop();
    assert_eq!(Rc::strong_count(&ended), 1);
}

#[test]
fn a_connect_given_up_leaves_nothing_behind() {
    let host = host();
    let mut options = ListenOptions::default();
    options.hold_syn = true;
    let listener = host.listen(here(5), options).unwrap();
    host.run_alone(async {
        let given_up = race(host.connect(here(5)), host.sleep(Duration::from_millis(20))).await;
        assert!(matches!(given_up, Either::Second(())));
    })
    .unwrap();
    drop(listener);
    host.run_alone(host.sleep(Duration::from_secs(1))).unwrap();
    assert_eq!(host.open_connections(), 0);
    assert_eq!(host.with_stack(|stack, _| stack.memory().outstanding_bytes()), 0);
}

#[test]
fn options_are_set_and_read_on_every_face() {
    let host = host();
    let listener = host.listen(here(7), ListenOptions::default()).unwrap();
    let timeout = Duration::from_secs(9);
    listener.set_option(SocketOption::Tcp(ConnectionOption::UserTimeout(timeout))).unwrap();
    assert_eq!(listener.options().unwrap().tcp.user_timeout, timeout);
    let outer = host.clone();
    let done = host.run_alone(async move {
        let (caller, called) = both(outer.connect(here(7)), listener.accept()).await;
        let (caller, called) = (caller.unwrap(), called.unwrap());
        assert_eq!(called.options().unwrap().tcp.user_timeout, timeout);
        caller.set_cork(true);
        caller.set_linger(Some(Duration::ZERO));
        caller.set_congestion(CongestionChoice::NewReno);
        let options = caller.options().unwrap();
        assert!(options.cork && options.linger == Some(Duration::ZERO));
        assert!(caller.send(b"held", SendHow::default()).await.is_ok());
        let queued = caller.queued().unwrap();
        assert_eq!((queued.not_sent_bytes, queued.unacknowledged_bytes), (4, 4));
        caller.set_cork(false);
        called.readable().await;
        assert_eq!(called.queued().unwrap().readable_bytes, 4);
        // And the face that other threads have.
        let remote = called.into_remote();
        remote.set_option(SocketOption::Tcp(ConnectionOption::Nagle(false))).await.unwrap();
        assert!(!remote.options().await.unwrap().tcp.nagle);
        assert_eq!(remote.info().await.unwrap().received_bytes, 4);
        let wrong = remote.set_option(SocketOption::Backlog(1)).await;
        assert_eq!(wrong, Err(SocketError::WrongKind));
        drop(caller);
        // No linger time: the other end learns it by a reset.
        poll_fn(|context| remote.poll_receive(context, &mut [0; 9])).await.unwrap();
        let error = poll_fn(|context| remote.poll_receive(context, &mut [0; 9])).await.unwrap_err();
        assert_eq!(error, StreamError::Connection(ConnectionError::Reset));
        assert!(remote.options().await.is_err());
    });
    assert_eq!(done, Some(()));
}

#[test]
fn any_number_of_tasks_may_wait_for_one_thing_and_the_host_comes_to_rest() {
    let host = host();
    let polls: Rc<Cell<u32>> = Rc::default();
    let woken: Rc<Cell<u32>> = Rc::default();
    for _ in 0..300 {
        let (host, polls, woken) = (host.clone(), polls.clone(), woken.clone());
        let waiting = host.clone();
        host.spawn(async move {
            let mut draining = std::pin::pin!(waiting.draining());
            poll_fn(|context| {
                polls.set(polls.get() + 1);
                draining.as_mut().poll(context)
            })
            .await;
            woken.set(woken.get() + 1);
        })
        .detach();
    }
    let mut rounds = 0;
    while host.has_runnable() {
        host.run(host.now(), 64);
        rounds += 1;
        assert!(rounds < 10_000, "it never comes to rest");
    }
    assert!(polls.get() < 300 * 300, "{} polls", polls.get());
    println!("{} polls of 300 tasks", polls.get());
    host.drain();
    while host.has_runnable() {
        host.run(host.now(), 64);
    }
    assert_eq!(woken.get(), 300);
    host.stop();
}

#[test]
fn all_tasks_that_wait_on_one_stream_are_woken() {
    const TASKS: u32 = 100;
    let host = host();
    let listener = host.listen(here(7), ListenOptions::default()).unwrap();
    let connecting = host.clone();
    let ends = host.run_alone(async { both(connecting.connect(here(7)), listener.accept()).await }).unwrap();
    let (caller, called) = (Rc::new(ends.0.unwrap()), Rc::new(ends.1.unwrap()));
    // Until nothing is left to do.
    let rest = |host: &Host| host.run_alone(host.sleep(Duration::from_secs(1))).unwrap();
    // A byte for each, and one for those that wait until they can read.
    for by_receive in [true, false] {
        let woken: Rc<Cell<u32>> = Rc::default();
        for _ in 0..TASKS {
            let (woken, called) = (woken.clone(), called.clone());
            host.spawn(async move {
                match by_receive {
                    true => assert_eq!(called.receive(&mut [0; 1]).await, Ok(1)),
                    false => called.readable().await,
                }
                woken.set(woken.get() + 1);
            })
            .detach();
        }
        rest(&host);
        assert_eq!(woken.get(), 0);
        let (sender, text) = (caller.clone(), vec![7; if by_receive { TASKS as usize } else { 1 }]);
        host.run_alone(async move { sender.send(&text, SendHow::default()).await }).unwrap().unwrap();
        rest(&host);
        assert_eq!(woken.get(), TASKS, "by receive: {by_receive}");
    }
    host.stop();
}

#[test]
fn a_sleep_that_is_made_between_two_rounds_does_not_count_the_time_before() {
    let host = host();
    let second = Duration::from_secs(1);
    let (sleep, at) = (host.sleep(second), host.clone());
    let task = host.spawn(async move {
        sleep.await;
        at.now()
    });
    // The first round comes after five idle seconds.
    for millis in [5_000, 5_999, 6_000] {
        assert!(!task.is_finished());
        host.run(Instant::from_millis(millis), 64);
    }
    assert_eq!(host.run_alone(task), Some(Instant::from_millis(6_000)));

    // It is polled by somebody else than a round.
    let mut limited = pin!(host.timeout(second, std::future::pending::<()>()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(limited.as_mut().poll(&mut context).is_pending());
    host.run(Instant::from_millis(60_000), 64);
    assert!(limited.as_mut().poll(&mut context).is_pending());
    assert_eq!(host.deadline(), Some(Instant::from_millis(61_000)));
    host.run(Instant::from_millis(61_000), 64);
    assert_eq!(limited.as_mut().poll(&mut context), Poll::Ready(Err(Elapsed { limit: second })));
    host.stop();
}

#[test]
fn what_came_before_a_reset_is_read_by_another_thread_to_its_end() {
    let mut tcp = TcpConfig::default();
    tcp.policy.received_data_survives_reset = true;
    let mut config = StackConfig::default();
    config.tcp = tcp;
    let host = Host::new(Stack::new(config, [3; 32], Instant::ZERO), Instant::ZERO);
    let listener = host.listen(here(7), ListenOptions::default()).unwrap();
    let (outer, sent) = (host.clone(), pattern(120_000, 5));
    let done = host.run_alone(async move {
        let (caller, called) = both(outer.connect(here(7)), listener.accept()).await;
        let (mut caller, mut remote) = (caller.unwrap(), called.unwrap().into_remote());
        // Twice what the ring holds, and all of it acknowledged: the peer may think that it was delivered.
        caller.write_all(&sent).await.unwrap();
        while caller.queued().unwrap().unacknowledged_bytes > 0 {
            outer.sleep(Duration::from_millis(1)).await;
        }
        caller.abort();
        outer.sleep(Duration::from_millis(10)).await;
        let refused = async { while remote.write_all(&[1; 1000]).await.is_ok() {} };
        assert_eq!(outer.timeout(Duration::from_secs(5), refused).await, Ok(()));
        let mut received = Vec::new();
        assert!(remote.read_to_end(&mut received).await.is_err(), "and then the reset");
        assert!(received == sent, "{} bytes of {}", received.len(), sent.len());
    });
    assert_eq!(done, Some(()));
}

/// A peer that says something first and then reads, or says back what it reads, as far as it is read itself.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Peer {
    Greets,
    Echoes,
}

#[test]
fn what_another_thread_wrote_arrives_though_it_read_nothing() {
    for peer in [Peer::Greets, Peer::Echoes] {
        let mut tcp = TcpConfig::default();
        tcp.policy.received_data_survives_reset = true;
        let mut config = StackConfig::default();
        config.tcp = tcp;
        let host = Host::new(Stack::new(config, [3; 32], Instant::ZERO), Instant::ZERO);
        let listener = host.listen(here(7), ListenOptions::default()).unwrap();
        let (outer, sent) = (host.clone(), pattern(4 << 20, 5));
        let done = host.run_alone(async move {
            let (caller, called) = both(outer.connect(here(7)), listener.accept()).await;
            let (mut remote, called) = (caller.unwrap().into_remote(), called.unwrap());
            called.send(b"hello", SendHow::default()).await.unwrap();
            // As much as is taken while nobody reads anything.
            let mut written = 0;
            let second = Duration::from_secs(1);
            while let Ok(Ok(taken)) = outer.timeout(second, remote.write(&sent[written..])).await {
                written += taken;
            }
            drop(remote);
            let (mut received, mut piece) = (0, vec![0; 1000]);
            while let Ok(count @ 1..) = called.receive(&mut piece).await {
                assert!(piece[..count] == sent[received..received + count]);
                received += count;
                if peer == Peer::Echoes {
                    let _ = (&called).write_all(&piece[..count]).await;
                }
                outer.sleep(Duration::from_micros(10)).await;
            }
            assert!(received == written && written > 200_000, "{peer:?}: {received} of {written}");
            // The reset tells that what was said to the other end is lost.
            let gone = async { while called.send(b"still there?", SendHow::default()).await.is_ok() {} };
            assert_eq!(outer.timeout(second, gone).await, Ok(()));
            assert_eq!(called.error(), Some(ConnectionError::Reset));
        });
        assert_eq!(done, Some(()));
        assert_eq!(host.open_connections(), 0);
    }
}

#[test]
fn what_waits_for_other_threads_is_bounded_by_the_memory_of_the_host() {
    const STREAMS: usize = 100;
    let mut config = StackConfig::default();
    config.memory_limit_bytes = 16 << 20;
    let limit = config.memory_limit_bytes / 8 + STREAMS * 4096;
    let host = Host::new(Stack::new(config, [3; 32], Instant::ZERO), Instant::ZERO);
    let listener = host.listen(here(7), ListenOptions::default()).unwrap();
    listener.set_option(SocketOption::ReceiveBufferLimit(32_768)).unwrap();
    let outer = host.clone();
    let done = host.run_alone(async move {
        let (mut callers, mut remotes) = (Vec::new(), Vec::new());
        for _ in 0..STREAMS {
            let (caller, called) = both(outer.connect(here(7)), listener.accept()).await;
            callers.push(caller.unwrap());
            callers[callers.len() - 1].set_send_buffer_limit(20_000);
            remotes.push(called.unwrap().into_remote());
        }
        let (text, mut sent) = (pattern(100_000, 7), vec![0; STREAMS]);
        for (caller, sent) in callers.iter().zip(&mut sent) {
            let second = Duration::from_millis(100);
            while let Ok(Ok(taken)) = outer.timeout(second, caller.send(&text, SendHow::default())).await {
                *sent += taken;
            }
        }
        let held: usize = remotes.iter().map(|remote| remote.readable_bytes()).sum();
        assert!(held > limit / 2 && held <= limit, "{held} bytes, with a limit of {limit}");
        // All data arrives, and memory that others release is available again.
        let (mut place, mut left) = (vec![0; 100_000], sent.iter().sum::<usize>());
        while left > 0 {
            for remote in &remotes {
                let Some(received) = remote.try_read(&mut place) else { continue };
                left -= received.unwrap();
            }
            outer.sleep(Duration::from_millis(1)).await;
            assert!(outer.now() < Instant::from_millis(60_000), "{left} bytes are left");
        }
    });
    assert_eq!(done, Some(()));
    host.stop();
}

/// What a write takes of a megabyte that nobody reads, with `SO_SNDBUF` at 10,000 on one of the faces; all of it arrives
/// once somebody reads.
#[test]
fn rings_grow_with_use_count_as_memory_of_the_host_and_shrink_when_idle() {
    let host = host();
    let listener = host.listen(here(7), ListenOptions::default()).unwrap();
    let outer = host.clone();
    let counted = move |host: &Host| host.with_stack(|stack, _| stack.memory().outside_bytes());
    let done = host.run_alone(async move {
        let (caller, called) = both(outer.connect(here(7)), listener.accept()).await;
        let (caller, called) = (caller.unwrap().into_remote(), called.unwrap().into_remote());
        // Nobody reads: what is written fills both rings.
        let (text, mut sent, mut waited) = (vec![7; 1 << 20], 0, 0);
        while waited < 20 {
            match caller.try_write(&text) {
                Some(count) => (sent, waited) = (sent + count.unwrap(), 0),
                None => waited += 1,
            }
            outer.sleep(Duration::from_millis(100)).await;
        }
        // Packets wait as they came; the memory of each is more than its bytes.
        let held = 3 * REMOTE_RING_BYTES..4 * REMOTE_RING_BYTES;
        assert!(held.contains(&called.readable_bytes()), "{}", called.readable_bytes());
        assert!(counted(&outer) > 2 * REMOTE_RING_BYTES - 2 * 4096 - 1);
        let mut place = vec![0; 1 << 20];
        while sent > 0 {
            sent -= called.try_read(&mut place).map_or(0, Result::unwrap);
            outer.sleep(Duration::from_millis(1)).await;
        }
        outer.sleep(Duration::from_secs(3)).await;
        assert_eq!(counted(&outer), 0);
        // It is as good as new.
        assert_eq!(caller.try_write(b"again"), Some(Ok(5)));
        outer.sleep(Duration::from_millis(1)).await;
        assert_eq!(called.readable_bytes(), 5);
    });
    assert_eq!(done, Some(()));
    host.stop();
}

/// Wakes a task of the host, and keeps how many bytes could be read at that time.
struct Told {
    stream: Arc<RemoteStream>,
    task: Mutex<Option<Waker>>,
    readable_bytes: Mutex<Vec<usize>>,
}

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.readable_bytes.lock().unwrap().push(self.stream.readable_bytes());
        self.task.lock().unwrap().take().unwrap().wake();
    }
}

#[test]
fn a_reader_on_another_thread_is_woken_once_for_all_packets_of_a_round() {
    const BYTES: usize = 3 << 20;
    let mut config = StackConfig::default();
    config.tcp.send_buffer_initial_bytes = 2 * BYTES;
    config.tcp.receive_buffer_initial_bytes = 4 * BYTES;
    config.tcp.initial_window_segments = 100;
    let host = Host::new(Stack::new(config, [3; 32], Instant::ZERO), Instant::ZERO);
    let listener = host.listen(here(7), ListenOptions::default()).unwrap();
    let outer = host.clone();
    let done = host.run_alone(async move {
        let (caller, called) = both(outer.connect(here(7)), listener.accept()).await;
        let (mut caller, stream) = (caller.unwrap(), Arc::new(called.unwrap().into_remote()));
        let told = Arc::new(Told {
            stream: stream.clone(),
            task: Mutex::default(),
            readable_bytes: Mutex::default(),
        });
        let waker = Waker::from(told.clone());
        let mut place = vec![0; 64 << 10];
        let mut left = BYTES;
        let reads = poll_fn(|context| {
            *told.task.lock().unwrap() = Some(context.waker().clone());
            while left > 0 {
                match stream.poll_receive(&Context::from_waker(&waker), &mut place) {
                    Poll::Ready(count) => left -= count.unwrap(),
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(())
        });
        let text = pattern(BYTES, 7);
        both(async { caller.write_all(&text).await.unwrap() }, reads).await;
        assert_eq!(told.readable_bytes.lock().unwrap().iter().sum::<usize>(), BYTES);
    });
    assert_eq!(done, Some(()));
    host.stop();
}

fn taken_with_send_buffer(remote: bool) -> usize {
    // What the linux profile has: what is on its way counts in buffers, too.
    let tcp = TcpConfig::linux();
    let mut config = StackConfig::default();
    config.tcp = tcp;
    let host = Host::new(Stack::new(config, [3; 32], Instant::ZERO), Instant::ZERO);
    let listener = host.listen(here(7), ListenOptions::default()).unwrap();
    listener.set_option(SocketOption::ReceiveBufferLimit(16_384)).unwrap();
    // With the timestamps, 4096 bytes.
    listener.set_option(SocketOption::Tcp(ConnectionOption::MaxSegment(4108))).unwrap();
    let outer = host.clone();
    let done = host.run_alone(async move {
        let (caller, called) = both(outer.connect(here(7)), listener.accept()).await;
        let (caller, called) = (caller.unwrap(), called.unwrap());
        let sent = pattern(1 << 20, 9);
        let taken = match remote {
            false => {
                caller.set_send_buffer(10_000).unwrap();
                let mut taken = 0;
                // More is taken as the peer's window takes it, and then no more.
                while let Ok(count) = outer
                    .timeout(Duration::from_secs(1), caller.send(&sent[taken..], SendHow::default()))
                    .await
                {
                    taken += count.unwrap();
                }
                assert!(outer.timeout(Duration::from_secs(1), caller.writable()).await.is_err());
                taken
            }
            true => {
                let caller = caller.into_remote();
                caller.set_send_buffer(10_000).await.unwrap();
                let _ = caller.try_write(&sent).unwrap().unwrap();
                outer.sleep(Duration::from_secs(1)).await;
                let info = caller.info().await.unwrap();
                return info.send_queue_bytes + called.queued().unwrap().readable_bytes;
            }
        };
        let unread = called.queued().unwrap().readable_bytes;
        let mut place = vec![0; 1 << 20];
        let write = async {
            let mut at = taken;
            while at < sent.len() {
                at += caller.send(&sent[at..], SendHow::default()).await.unwrap();
            }
            caller.shutdown();
        };
        let read = async {
            let mut called = called;
            called.read_exact(&mut place).await.unwrap();
        };
        both(write, read).await;
        assert!(place == sent);
        assert!(unread <= 16_384);
        taken
    });
    done.unwrap()
}

#[test]
fn the_send_buffer_is_what_linux_reckons_on_every_face() {
    let (local, remote) = (taken_with_send_buffer(false), taken_with_send_buffer(true));
    assert_eq!(local, remote);
    // The peer takes 8 KiB, and segments of half of that, which a buffer has, too: two buffers. Of what waits, the
    // limit of 20,000 leaves a fourth buffer begin, for three of them cost 16,128 with their overhead, and no fifth.
    assert_eq!(local, 2 * 4096 + 4 * 4096);
}
