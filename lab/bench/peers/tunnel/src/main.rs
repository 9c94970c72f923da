//! The program on netstack-smoltcp and the same on inhost, side by side: `inhost-bench-tunnel [ROUNDS] [MEGABYTES]`.
//!
//! A guest, which is a host of inhost for both, calls through the program, and the program calls a server on the system's
//! loopback. So all that differs is the stack in between. The two take turns, each with a runtime and a guest of its own.

mod before;

use inhost::Host;
use inhost::device::{self, PacketsFramed};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longest time of one measurement.
const LIMIT: Duration = Duration::from_secs(120);
/// Bytes of each call.
const PIECE_BYTES: usize = 65_536;
/// Questions of one byte, each answered before the next.
const TRANSACTIONS: u32 = 5_000;
/// Connections that are opened and closed, one after another.
const CONNECTIONS: u32 = 500;

/// What the first byte of a connection asks of the server.
const DOWNLOAD: u8 = b'd';
const UPLOAD: u8 = b'u';
const ECHO: u8 = b'e';

#[derive(Clone, Copy)]
enum Program {
    Before,
    After,
}

/// A measurement of each kind.
#[derive(Default)]
struct Figures {
    download: Vec<f64>,
    upload: Vec<f64>,
    transactions: Vec<f64>,
    connections: Vec<f64>,
}

fn main() -> io::Result<()> {
    let number = |place| std::env::args().nth(place).map(|text| text.parse().expect("a number"));
    let (rounds, megabytes) = (number(1).unwrap_or(5), number(2).unwrap_or(200));
    let (mut before, mut after) = (Figures::default(), Figures::default());
    for _ in 0..rounds {
        measure(Program::Before, megabytes, &mut before)?;
        measure(Program::After, megabytes, &mut after)?;
    }
    println!("medians of {rounds} rounds, lowest and highest in brackets; {megabytes} MB a transfer");
    println!("{:24}{:>26}{:>26}", "", "netstack-smoltcp", "inhost");
    for (name, [before, after]) in [
        ("download, MB/s", [before.download, after.download]),
        ("upload, MB/s", [before.upload, after.upload]),
        ("transactions a second", [before.transactions, after.transactions]),
        ("connections a second", [before.connections, after.connections]),
    ] {
        println!("{name:24}{:>26}{:>26}", summary(before), summary(after));
    }
    Ok(())
}

fn summary(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (values.first(), values.last()) else { return String::new() };
    format!("{:.0} [{low:.0} {high:.0}]", values[values.len() / 2])
}

fn measure(program: Program, megabytes: u64, figures: &mut Figures) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let server = listener.local_addr()?;
        let bytes = megabytes * 1_000_000;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, bytes));
            }
        });
        let (packets, driver) = device::packets(device::Config::default())?;
        let guest = Host::builder()
            .driver(driver, |link| link.with_address("10.0.0.2/24".parse().unwrap()).with_gateway([10, 0, 0, 1]))
            .start()?;
        let device = PacketsFramed::new(packets);
        match program {
            Program::Before => tokio::spawn(before::serve(device, server)),
            Program::After => tokio::spawn(inhost_example_tunnel::ported::serve(device, server)),
        };
        tokio::time::timeout(LIMIT, all(&guest, bytes, figures)).await?
    });
    runtime.shutdown_background();
    done
}

/// The server on the system's loopback.
async fn answer(mut stream: TcpStream, bytes: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut place = vec![0; PIECE_BYTES];
    match stream.read_u8().await? {
        DOWNLOAD => send(&mut stream, &place, bytes).await,
        UPLOAD => {
            receive(&mut stream, &mut place, bytes).await?;
            stream.write_u8(UPLOAD).await
        }
        _ => loop {
            let byte = stream.read_u8().await?;
            stream.write_u8(byte).await?;
        },
    }
}

async fn send(to: &mut (impl AsyncWriteExt + Unpin), piece: &[u8], mut left: u64) -> io::Result<()> {
    while left > 0 {
        let count = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        to.write_all(&piece[..count]).await?;
        left -= count as u64;
    }
    to.flush().await
}

async fn receive(from: &mut (impl AsyncReadExt + Unpin), place: &mut [u8], mut left: u64) -> io::Result<()> {
    while left > 0 {
        match from.read(place).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => left -= count as u64,
        }
    }
    Ok(())
}

/// All measurements, from the guest's side.
async fn all(guest: &Host, bytes: u64, figures: &mut Figures) -> io::Result<()> {
    let anywhere = SocketAddr::from(([203, 0, 113, 7], 80));
    let mut place = vec![0; PIECE_BYTES];
    let megabytes_a_second = |began: Instant| bytes as f64 / 1e6 / began.elapsed().as_secs_f64();

    let mut stream = guest.connect(anywhere).await?;
    let began = Instant::now();
    stream.write_u8(DOWNLOAD).await?;
    receive(&mut stream, &mut place, bytes).await?;
    figures.download.push(megabytes_a_second(began));

    let mut stream = guest.connect(anywhere).await?;
    let began = Instant::now();
    stream.write_u8(UPLOAD).await?;
    send(&mut stream, &place, bytes).await?;
    stream.read_u8().await?;
    figures.upload.push(megabytes_a_second(began));

    let mut stream = guest.connect(anywhere).await?;
    stream.set_nodelay(true)?;
    stream.write_u8(ECHO).await?;
    let began = Instant::now();
    for _ in 0..TRANSACTIONS {
        stream.write_u8(7).await?;
        stream.read_u8().await?;
    }
    figures.transactions.push(f64::from(TRANSACTIONS) / began.elapsed().as_secs_f64());

    let began = Instant::now();
    for _ in 0..CONNECTIONS {
        let mut stream = guest.connect(anywhere).await?;
        stream.write_all(&[ECHO, 7]).await?;
        stream.read_u8().await?;
    }
    figures.connections.push(f64::from(CONNECTIONS) / began.elapsed().as_secs_f64());
    Ok(())
}
