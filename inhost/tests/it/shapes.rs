//! What tokio's sockets have beside reading and writing: readiness of one kind, callers that are held, options that are told.
#![cfg(feature = "tokio")]

use std::io;

use futures_lite::future::zip;
use inhost::net::{Interest, KeepAlive, Ready, TcpSocket};

use crate::pair;

#[test]
fn a_task_waits_for_an_error_or_for_urgent_data_alone() -> io::Result<()> {
    let (near, far) = pair()?;
    let listener = far.block_on(far.listen("10.9.0.2:7"))?;
    near.block_on(async {
        let call = near.connect("10.9.0.2:7").await?;
        let (answer, _) = listener.accept().await?;
        // Data makes it readable, and is not what it waits for.
        answer.try_write(b"data")?;
        assert_eq!(call.ready(Interest::READABLE | Interest::ERROR).await?, Ready::READABLE);
        assert_eq!(format!("{:?}", Interest::ERROR | Interest::PRIORITY), "ERROR | PRIORITY");
        let urgent = call.ready(Interest::PRIORITY);
        let sends = std::future::poll_fn(|context| answer.remote().poll_send(context, b"!", true));
        let (urgent, sent) = zip(urgent, sends).await;
        assert_eq!((urgent?, sent.is_ok()), (Ready::PRIORITY, true));
        answer.set_zero_linger()?;
        let failed = call.ready(Interest::ERROR);
        drop(answer);
        assert_eq!(failed.await?, Ready::ERROR);
        let mut place = [0; 8];
        assert_eq!(call.try_read(&mut place)?, 5);
        assert_eq!(call.try_read(&mut place).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        Ok(())
    })
}

#[test]
fn a_caller_is_held_and_then_answered_with_a_stream() -> io::Result<()> {
    let (near, far) = pair()?;
    let mut options = inhost::stack::ListenOptions::default();
    options.hold_syn = true;
    let listener = far.block_on(far.listen_with("10.9.0.2:7".parse().unwrap(), options))?;
    near.block_on(async {
        let held = async {
            let held = listener.accept_held().await?;
            assert!(held.is_held());
            assert_eq!(held.local_addr()?.port(), 7);
            held.proceed().await
        };
        let (call, answer) = zip(near.connect("10.9.0.2:7"), held).await;
        let (call, answer) = (call?, answer?);
        answer.try_write(b"ping")?;
        let mut place = Vec::new();
        call.async_io(Interest::READABLE, || call.try_read_buf(&mut place)).await?;
        assert_eq!(place, b"ping");
        Ok(())
    })
}

#[test]
fn a_socket_is_bound_to_a_link_by_its_name_and_tells_its_options() -> io::Result<()> {
    let (near, far) = pair()?;
    let listener = far.block_on(far.listen("10.9.0.2:7"))?;
    near.block_on(async {
        let socket = TcpSocket::new_v4()?;
        assert_eq!(socket.bind_device(Some(b"nothing")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(socket.device()?, None);
        socket.bind_device(Some(b"link"))?;
        assert_eq!(socket.device()?.as_deref(), Some(&b"link"[..]));
        assert!(socket.send_buffer_size()? > 0 && socket.recv_buffer_size()? > 0);
        socket.set_send_buffer_size(10_000)?;
        assert_eq!(socket.send_buffer_size()?, 10_000);
        socket.set_tos_v4(0xb8)?;
        assert_eq!((socket.tos_v4()?, socket.tclass_v6()?), (0xb8, 0xb8));
        assert_eq!(socket.set_reuseport(true).unwrap_err().kind(), io::ErrorKind::Unsupported);
        let call = socket.connect("10.9.0.2:7".parse().unwrap()).await?;
        call.set_keepalive(Some(KeepAlive::default()))?;
        call.set_quickack(true)?;
        assert!(call.keepalive()?.is_some() && call.quickack()?);
        listener.accept().await?;
        Ok(())
    })
}
