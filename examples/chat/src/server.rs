//! The chat server: a task for each client, a broadcast channel among them, and lines.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::sync::broadcast::{self, Sender, error::RecvError};
use tokio_util::codec::{Framed, LinesCodec, LinesCodecError};

use crate::net::{TcpListener, TcpStream};
use crate::{task, time};

/// Lines that a slow client may be behind before it is let go.
const BEHIND_LIMIT: usize = 1024;
/// Bytes of the longest line.
const LINE_LIMIT_BYTES: usize = 1024;
/// How long a client may leave what it is sent unread.
const PATIENCE: Duration = Duration::from_secs(60);

/// What somebody said, with who must not hear it again.
type Said = (SocketAddr, String);

/// Serves each caller until its connection ends.
pub async fn serve(listener: TcpListener) -> io::Result<()> {
    let (room, _) = broadcast::channel(BEHIND_LIMIT);
    loop {
        let (stream, caller) = listener.accept().await?;
        task::spawn(attend(stream, caller, room.clone()));
    }
}

/// One client, from its name to its end.
async fn attend(stream: TcpStream, caller: SocketAddr, room: Sender<Said>) {
    let mut lines = Framed::new(stream, LinesCodec::new_with_max_length(LINE_LIMIT_BYTES));
    let Some(Ok(name)) = lines.next().await else { return };
    // A room without listeners is not an error: it is empty.
    let say = |text: String| room.send((caller, text)).unwrap_or(0);
    // From here on nothing that others say is missed.
    let mut heard = room.subscribe();
    let others = room.receiver_count() - 1;
    say(format!("{name} is here"));
    // Why a connection ended is told to nobody.
    let _ = talk(&mut lines, format!("welcome, {name}; others here: {others}"), &mut heard, caller, |text| {
        say(format!("{name}: {text}"));
    })
    .await;
    say(format!("{name} has left"));
}

/// Passes lines both ways until the client ends its side, or is behind for too long.
async fn talk(
    lines: &mut Framed<TcpStream, LinesCodec>,
    welcome: String,
    heard: &mut broadcast::Receiver<Said>,
    caller: SocketAddr,
    say: impl Fn(String),
) -> Result<(), LinesCodecError> {
    lines.send(welcome).await?;
    loop {
        tokio::select! {
            biased;
            said = heard.recv() => match said {
                Ok((from, text)) if from != caller => time::timeout(PATIENCE, lines.send(text)).await.map_err(io::Error::from)??,
                Ok(_) => {}
                // Better an end than a gap.
                Err(RecvError::Lagged(_) | RecvError::Closed) => return Ok(()),
            },
            line = lines.next() => match line {
                Some(line) => say(line?),
                None => return Ok(()),
            },
        }
    }
}
