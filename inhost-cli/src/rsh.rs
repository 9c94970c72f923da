//! `inhost rsh`: a command on another host.

use crate::args::Rsh;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::reserved::{self, Caller, local_user};
use crate::target::{Schemes, Target};
use futures_lite::future::{or, pending, try_zip};
use futures_lite::io::{AsyncReadExt as _, AsyncWriteExt as _};
use inhost_rcommands::rsh::{PORT, Request, begin, begin_alone, first_word, send_port};
use inhost_runtime::{Signal, Signals};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Octets of one read.
const READ_BYTES: usize = 16 * 1024;

/// Runs the command and carries its input, output and errors.
pub fn run(arguments: &Rsh) -> Result<(), Failure> {
    let common = &arguments.common;
    let local_user = local_user(common)?;
    let target = Target::parse(&arguments.host, Schemes::Of(&["rsh", "shell"]))?;
    target.without_path("rsh")?;
    let port = target.port_or(common.port)?.unwrap_or(PORT);
    let remote_user = arguments.user.clone().or(target.user_name()?).unwrap_or_else(|| local_user.clone());
    let request = Request { local_user, remote_user, command: arguments.command.join(" ") };
    reserved::run(common, async |caller| {
        let signals = Signals::new(&caller.reactor, &[Signal::Interrupt, Signal::Terminate])
            .map_err(|e| Failure::operation(format!("signals cannot be received: {e}")))?;
        let interrupted = async {
            signals.next().await;
            Err(Failure::operation("interrupted"))
        };
        let (stream, errors) =
            or(open(arguments, &caller, (&target.host, port), &request), interrupted).await?;
        carry(stream, errors, &signals, arguments.no_input)
            .await
            .map_err(|e| Failure::operation(format!("{}: {e}", target.host)))
    })
}

/// The connection on which the command runs, and the one for its errors.
async fn open(
    arguments: &Rsh,
    caller: &Caller,
    (host, port): (&str, u16),
    request: &Request,
) -> Result<(Connection, Option<Connection>), Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::operation(format!("{host}: {why}"));
    let mut called = caller.call(host, port).await?;
    if arguments.one_channel {
        begin_alone(&mut called.stream, request).await.map_err(|e| failed(&e))?;
        return Ok((called.stream, None));
    }
    let errors = {
        let listener = caller.listen(&called).await?;
        send_port(&mut called.stream, listener.port).await.map_err(|e| failed(&e))?;
        // A server that refuses at once says so instead of calling.
        let refusal = async {
            match first_word(&mut called.stream).await {
                Ok(()) => pending().await,
                Err(why) => Err(failed(&why)),
            }
        };
        or(caller.called_back(listener, called.remote.address), refusal).await?
    };
    begin(&mut called.stream, request).await.map_err(|e| failed(&e))?;
    Ok((called.stream, Some(errors)))
}

/// Carries until the command has said all.
async fn carry(
    stream: Connection,
    errors: Option<Connection>,
    signals: &Signals,
    no_input: bool,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let (errors_reader, mut errors_writer) = match errors.map(tokio::io::split) {
        Some((reader, writer)) => (Some(reader), Some(writer)),
        None => (None, None),
    };
    let output = show(&mut reader, "standard output", blocking::Unblock::new(io::stdout()));
    let errors = async {
        match errors_reader {
            Some(mut reader) => {
                show(&mut reader, "standard error", blocking::Unblock::new(io::stderr())).await
            }
            None => Ok(()),
        }
    };
    // The first that fails ends both: a command whose output nobody takes does not end, and neither do its errors.
    let said = async { try_zip(output, errors).await.map(drop) };
    let input = async {
        if !no_input {
            feed(&mut writer).await?;
        }
        writer.shutdown().await?;
        pending().await
    };
    let interrupts = async {
        loop {
            let number = match signals.next().await {
                Signal::Interrupt => 2,
                _ => 15,
            };
            // A signal's number on the connection for errors is a signal to the command.
            match &mut errors_writer {
                Some(writer) => writer.write_all(&[number]).await?,
                None => return Err(io::Error::other("interrupted; the command there may go on")),
            }
        }
    };
    // Input whose command no longer reads it is not what went wrong.
    let input = async {
        let _: io::Result<()> = input.await;
        pending().await
    };
    or(said, or(input, interrupts)).await
}

async fn show<R: AsyncRead + Unpin>(
    from: &mut R,
    name: &str,
    mut to: impl futures_lite::io::AsyncWrite + Unpin,
) -> io::Result<()> {
    let failed = |why: io::Error| io::Error::new(why.kind(), format!("{name}: {why}"));
    let mut place = vec![0; READ_BYTES];
    loop {
        let count = AsyncReadExt::read(from, &mut place).await?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(place.get(..count).unwrap_or_default()).await.map_err(failed)?;
        to.flush().await.map_err(failed)?;
    }
}

async fn feed<W: AsyncWrite + Unpin>(to: &mut W) -> io::Result<()> {
    let mut input = blocking::Unblock::new(io::stdin());
    let mut place = vec![0; READ_BYTES];
    loop {
        let count = input.read(&mut place).await?;
        if count == 0 {
            return Ok(());
        }
        AsyncWriteExt::write_all(to, place.get(..count).unwrap_or_default()).await?;
        AsyncWriteExt::flush(to).await?;
    }
}
