use super::*;
use futures_lite::future::block_on;

/// A terminal at which `keys` were typed, and then nothing more.
#[derive(Default)]
struct Screen {
    keys: Vec<u8>,
    shown: Vec<u8>,
}

impl AsyncRead for Screen {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        into.put_slice(&std::mem::take(&mut self.keys));
        Poll::Ready(Ok(()))
    }
}
impl AsyncWrite for Screen {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        self.shown.extend_from_slice(octets);
        Poll::Ready(Ok(octets.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
impl TerminalUi for Screen {
    fn window(&self) -> (u16, u16) {
        (80, 24)
    }
    fn poll_change(&mut self, _: &mut Context<'_>) -> Poll<TerminalChange> {
        Poll::Pending
    }
    fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server that has said all and takes nothing more, a few octets at a time.
struct Leaving(&'static [u8]);

impl AsyncRead for Leaving {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (now, later) = self.0.split_at(self.0.len().min(3));
        into.put_slice(now);
        self.0 = later;
        Poll::Ready(Ok(()))
    }
}
impl AsyncWrite for Leaving {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
impl Urgent for Leaving {
    fn poll_send_urgent(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }
    fn urgent_ahead(&self) -> Option<usize> {
        None
    }
}

#[test]
fn what_the_server_said_last_is_shown_though_it_takes_nothing_more() {
    let mut screen = Screen { keys: b"logout\r".to_vec(), ..Screen::default() };
    let opening = Opening {
        local_user: "ada".into(),
        remote_user: "ada".into(),
        terminal: "vt100".into(),
        speed: 9600,
        window: (80, 24),
        escape: None,
        has_urgent: false,
    };
    let end = block_on(run(&mut screen, &mut Leaving(b"\0the host goes down in a minute\r\n"), &opening));
    assert!(matches!(end, Ok(End::Broken(_))), "{end:?}");
    assert_eq!(String::from_utf8_lossy(&screen.shown), "the host goes down in a minute\r\n");
}
