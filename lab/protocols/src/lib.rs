//! What user-level protocols cost: the processor time of a transaction, by the bytes that it carries.
//!
//! A host of this process runs the service as it always runs, on files of a temporary folder. Its client is a bare dialogue in a
//! task of the same host, over the loopback, so that little of the time is the client's. Processor time is that of the whole
//! process: one run at a time, and nothing beside it.
//!
//! ```
//! use inhost_protocols::{Protocol, Setup};
//!
//! let measured = Setup { protocol: Protocol::Telnet, bytes: 500, transactions: 10 }.run().unwrap();
//! assert!(measured["processor_us"] > 0.0 && measured["time_us"] > 0.0);
//! ```
#![forbid(unsafe_code)]

mod dialogue;
mod ftp;
mod place;
mod smtp;
mod telnet;
mod tftp;

use std::collections::BTreeMap;
use std::fmt;

use inhost_base::Duration;
use inhost_socket::Host;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Deserialize;

use place::Place;

/// What was measured, by name with its unit.
pub type Measured = BTreeMap<&'static str, f64>;

/// A run that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(120);
/// The process is at rest when it has hardly worked for so long.
const SETTLE_STEP: Duration = Duration::from_millis(50);
/// Transactions before those that are counted: files are opened and buffers grown by then.
const WARM_UP: u32 = 5;
/// The fewest: the text of a transaction ends with a mark.
const BYTES_MIN: u32 = 32;

/// A protocol, and what a transaction of it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Protocol {
    /// One command of an open session, which prints a text.
    Telnet,
    /// One file is fetched in an open session, over a data connection of its own.
    FtpGet,
    /// One message is sent in an open session, and is on the disk when the server says so.
    Smtp,
    /// One file is fetched in blocks of 1,428 bytes, each of which is acknowledged.
    TftpGet,
}

impl Protocol {
    /// The most bytes of a transaction.
    fn bytes_max(self) -> u32 {
        match self {
            // More of a text is not shown.
            Protocol::Telnet => 16 << 10,
            _ => 16 << 20,
        }
    }
    /// The most transactions of a run, as the server's limits have it.
    fn transactions_max(self) -> u32 {
        match self {
            // The session ends with the 200th command before a log-in.
            Protocol::Telnet => 199 - WARM_UP,
            // 64 requests at once.
            Protocol::TftpGet => 64 - WARM_UP,
            _ => 1_000_000,
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The protocol.
    pub protocol: Protocol,
    /// Bytes of a transaction's text, file or message; from 32 to 16 MiB, of Telnet to 16 KiB.
    pub bytes: u32,
    /// Transactions that are counted, one after the other; up to a million, of Telnet 194, of TFTP 59. Default 50.
    #[serde(default = "fifty")]
    pub transactions: u32,
}

fn fifty() -> u32 {
    50
}

impl Setup {
    /// Runs it. Gives `processor_us` and `time_us`, of one transaction and of both ends.
    ///
    /// # Errors
    /// A number out of its range, a service that did not start, or a dialogue that went wrong.
    pub fn run(&self) -> Result<Measured, Failed> {
        within("bytes", self.bytes, BYTES_MIN..=self.protocol.bytes_max())?;
        within("transactions", self.transactions, 1..=self.protocol.transactions_max())?;
        let mut place = Place::new(self.bytes)?;
        let host = place.host().clone();
        let measured = match self.protocol {
            Protocol::Telnet => {
                let _service = telnet::start(&place)?;
                place.run(within_limit(&host, self.measure(&host, telnet::Client::open(&host))))
            }
            Protocol::FtpGet => {
                let _service = ftp::start(&place)?;
                place.run(within_limit(&host, self.measure(&host, ftp::Client::open(&host))))
            }
            Protocol::Smtp => {
                let _service = smtp::start(&place)?;
                place.run(within_limit(&host, self.measure(&host, smtp::Client::open(&host))))
            }
            Protocol::TftpGet => {
                let _service = tftp::start(&place)?;
                place.run(within_limit(&host, self.measure(&host, tftp::Client::open(&host))))
            }
        };
        measured?
    }
    async fn measure<C: Client>(
        &self,
        host: &Host,
        client: impl Future<Output = Result<C, Failed>>,
    ) -> Result<Measured, Failed> {
        let mut client = client.await?;
        for _ in 0..WARM_UP {
            client.transact(self.bytes).await?;
        }
        settle(host).await?;
        let (before_s, began_at) = (processor_s()?, host.now());
        for _ in 0..self.transactions {
            client.transact(self.bytes).await?;
        }
        let each_us = |seconds: f64| seconds * 1e6 / f64::from(self.transactions);
        let time_s = host.now().since(began_at).as_secs_f64();
        Ok([("processor_us", each_us(processor_s()? - before_s)), ("time_us", each_us(time_s))].into())
    }
}

/// A session of a protocol.
trait Client {
    /// Makes one transaction of so many bytes, and checks that they came.
    async fn transact(&mut self, bytes: u32) -> Result<(), Failed>;
}

async fn within_limit(
    host: &Host,
    run: impl Future<Output = Result<Measured, Failed>>,
) -> Result<Measured, Failed> {
    let limit = async {
        host.sleep(LIMIT).await;
        Err(Failed(format!("the run is not over after {} s", LIMIT.as_secs_f64())))
    };
    futures_lite::future::or(run, limit).await
}

/// Waits until threads that were started with the service are at rest, such as the one that checks passwords.
async fn settle(host: &Host) -> Result<(), Failed> {
    loop {
        let before_s = processor_s()?;
        host.sleep(SETTLE_STEP).await;
        if processor_s()? - before_s < SETTLE_STEP.as_secs_f64() / 20.0 {
            return Ok(());
        }
    }
}

/// Processor time of this process so far, in seconds.
fn processor_s() -> Result<f64, Failed> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|e| Failed(format!("getrusage: {e}")))?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6)
}

fn within(name: &str, value: u32, allowed: std::ops::RangeInclusive<u32>) -> Result<(), Failed> {
    match allowed.contains(&value) {
        true => Ok(()),
        false => {
            Err(Failed(format!("{name} is out of its range, from {} to {}", allowed.start(), allowed.end())))
        }
    }
}

/// Why a run failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed(String);

impl Failed {
    fn of(what: &str, why: impl fmt::Display) -> Failed {
        Failed(format!("{what}: {why}"))
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Failed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_carries_texts_of_every_size() {
        for protocol in [Protocol::Telnet, Protocol::FtpGet, Protocol::Smtp, Protocol::TftpGet] {
            // The last is a whole number of blocks of TFTP.
            for bytes in [BYTES_MIN, 1000, 142_800] {
                let bytes = bytes.min(protocol.bytes_max());
                let transactions = protocol.transactions_max().min(if bytes == BYTES_MIN { 200 } else { 3 });
                let measured = Setup { protocol, bytes, transactions }.run();
                let measured = measured.unwrap_or_else(|e| panic!("{protocol:?}, {bytes} bytes: {e}"));
                println!("{protocol:?} {bytes} {measured:?}");
                assert!(measured["time_us"] > 0.0);
            }
        }
    }

    #[test]
    fn numbers_out_of_their_range_are_refused() {
        let most = Protocol::Telnet.bytes_max();
        let transactions_most = Protocol::Telnet.transactions_max();
        for (bytes, transactions) in [(31, 1), (most + 1, 1), (100, 0), (100, transactions_most + 1)] {
            let setup = Setup { protocol: Protocol::Telnet, bytes, transactions };
            assert!(setup.run().unwrap_err().to_string().contains("out of its range"));
        }
    }
}
