//! The same in calls that block: a thread for each end, beside the host's own.
//!
//! inett's driver has all streams of a test in one task, which a call that blocks would stop. Here is one stream.
#![allow(clippy::disallowed_methods, reason = "threads that block measure by the system's clock")]

use std::io::{self, Read, Write};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use inhost_base::Endpoint;
use inhost_socket::RemoteHost;
use inhost_socket::blocking::{TcpListener, TcpStream};
use inhost_stack::ListenOptions;

use super::HereError;
use crate::driver::RunError;
use crate::face::{Face, RemoteFace};
use crate::plan::{Direction, Kind, Plan, Protocol};
use crate::result::{Outcome, ProcessorUse, Repetition, Transactions, Transfer, layer_uses, layers_s};
use crate::statistics::Times;

/// A call that blocks for longer has failed.
const CALL_MAX: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 128 << 10;

/// The hosts of client and server.
type Hosts<'a> = [&'a RemoteHost; 2];

/// Measures a stream to the server, an echo, or connects, by one thread of each end.
pub(super) fn measure(hosts: Hosts<'_>, at: Endpoint, plan: &Plan) -> Result<Outcome, HereError> {
    let is_plain = plan.protocol == Protocol::Tcp && plan.streams == 1 && plan.connections == 1;
    let face = RemoteFace::new(hosts[0].clone());
    let before = face.processor();
    let began_at = Instant::now();
    let mut repetition = match plan.kind {
        Kind::Stream if is_plain && plan.direction == Direction::Send => transfer(hosts, at, plan),
        Kind::Echo if is_plain => echo(hosts, at, plan),
        Kind::Connect if is_plain => connect(hosts, at, plan),
        _ => return Err(HereError::Unsupported),
    }
    .map_err(RunError::Stream)?;
    let seconds = began_at.elapsed().as_secs_f64();
    if let Some((after, before)) = face.processor().zip(before) {
        let used = after.since(before);
        repetition.client_processor = Some(ProcessorUse::new(&used, seconds));
        repetition.client_layers =
            used.layers.map(|layers| layer_uses(&layers_s(&layers))).unwrap_or_default();
    }
    repetition.number = 1;
    Ok(Outcome::new(plan, vec![repetition]))
}

/// Bulk data.
fn transfer(hosts: Hosts<'_>, at: Endpoint, plan: &Plan) -> io::Result<Repetition> {
    std::thread::scope(|scope| {
        let (mut stream, receiver) = pair(scope, hosts, at, |mut stream| {
            let (mut place, mut bytes) = (vec![0; READ_BYTES], 0);
            loop {
                match stream.read(&mut place)? {
                    0 => return Ok((bytes, Instant::now())),
                    count => bytes += count as u64,
                }
            }
        })?;
        let block = vec![0; plan.write_bytes() as usize];
        let (began_at, limit, most) = (Instant::now(), time(plan), plan.bytes.unwrap_or(u64::MAX));
        let mut sent_bytes = 0;
        while began_at.elapsed() < limit && sent_bytes < most {
            stream.write_all(&block)?;
            sent_bytes += block.len() as u64;
        }
        stream.shutdown();
        let (bytes, ended_at) = joined(receiver)?;
        let seconds = ended_at.duration_since(began_at).as_secs_f64();
        let bits_per_second = bytes as f64 * 8.0 / seconds;
        let sent =
            Transfer { bytes, seconds, bits_per_second, sent_bytes, retransmits: None, datagrams: None };
        Ok(Repetition { sent: Some(sent), ..Repetition::default() })
    })
}

/// One character, which comes back.
fn echo(hosts: Hosts<'_>, at: Endpoint, plan: &Plan) -> io::Result<Repetition> {
    std::thread::scope(|scope| {
        let (mut stream, server) = pair(scope, hosts, at, |mut stream| {
            let mut place = [0];
            while stream.read(&mut place)? > 0 {
                stream.write_all(&place)?;
            }
            Ok(())
        })?;
        let mut place = [b'a'];
        let timed = timed(plan, || {
            stream.write_all(&place)?;
            stream.read_exact(&mut place)
        })?;
        stream.shutdown();
        joined(server)?;
        Ok(timed)
    })
}

/// Connections, opened and closed one after the other.
fn connect(hosts: Hosts<'_>, at: Endpoint, plan: &Plan) -> io::Result<Repetition> {
    let [host, server] = hosts;
    let mut listener = TcpListener::bind(server, at, ListenOptions::default())?;
    listener.set_timeout(Some(CALL_MAX));
    std::thread::scope(|scope| {
        // It ends with the first connection that says something.
        let server = scope.spawn(move || {
            loop {
                let mut stream = listener.accept()?;
                stream.set_read_timeout(Some(CALL_MAX));
                if stream.read(&mut [0])? > 0 {
                    return Ok(());
                }
            }
        });
        let timed = timed(plan, || {
            let mut stream = TcpStream::connect(host, at)?;
            stream.set_read_timeout(Some(CALL_MAX));
            stream.shutdown();
            stream.read(&mut [0]).map(drop)
        })?;
        TcpStream::connect(host, at)?.write_all(b".")?;
        joined(server)?;
        Ok(timed)
    })
}

/// Repeats a transaction for the plan's time.
fn timed(plan: &Plan, mut transaction: impl FnMut() -> io::Result<()>) -> io::Result<Repetition> {
    let (began_at, limit, most) = (Instant::now(), time(plan), plan.count.unwrap_or(u64::MAX));
    let mut times = Times::default();
    while began_at.elapsed() < limit && times.count() < most {
        let before = Instant::now();
        transaction()?;
        times.take(u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    let seconds = began_at.elapsed().as_secs_f64();
    let count = times.count();
    let per_second = count as f64 / seconds;
    let transactions = Transactions { count, failed: 0, seconds, per_second, times: times.percentiles() };
    Ok(Repetition { transactions: Some(transactions), ..Repetition::default() })
}

/// A connection, and what serves its other end.
fn pair<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    [client, server]: Hosts<'_>,
    at: Endpoint,
    serve: impl FnOnce(TcpStream) -> io::Result<T> + Send + 'scope,
) -> io::Result<(TcpStream, ScopedJoinHandle<'scope, io::Result<T>>)> {
    let mut listener = TcpListener::bind(server, at, ListenOptions::default())?;
    listener.set_timeout(Some(CALL_MAX));
    let server = scope.spawn(move || {
        let mut stream = listener.accept()?;
        stream.set_read_timeout(Some(CALL_MAX));
        stream.set_write_timeout(Some(CALL_MAX));
        serve(stream)
    });
    let mut stream = TcpStream::connect(client, at)?;
    stream.set_read_timeout(Some(CALL_MAX));
    stream.set_write_timeout(Some(CALL_MAX));
    Ok((stream, server))
}

fn joined<T>(thread: ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the other end's thread has failed")))
}

/// How long it runs at most.
fn time(plan: &Plan) -> Duration {
    plan.time().map_or(Duration::MAX, |time| Duration::from_nanos(time.as_nanos()))
}
