//! Echo requests and what comes back, on whichever host.

use futures_lite::future::or;
use inhost_base::{Duration, Instant, IpAddr};
use inhost_socket::{EchoSocket, Host};
use inhost_stack::EchoInfo;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Largest payload that is read back.
const ANSWER_BYTES: usize = 65_536;
/// Shortest and longest time between two requests.
pub const SHORTEST: Duration = Duration::from_millis(10);
pub const LONGEST: Duration = Duration::from_secs(3600);

/// What is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Requests {
    /// To whom.
    pub to: IpAddr,
    /// How many; 0 for any number.
    pub count: u32,
    /// Time between two.
    pub interval: Duration,
    /// Payload.
    pub payload_bytes: u16,
    /// How long the last answer may take.
    pub wait: Duration,
}

/// What happened to them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "snake_case")]
pub enum EchoNews {
    /// One was sent, or was to be.
    Sent {
        /// Its number, which comes round.
        number: u16,
        /// Why it was not.
        error: Option<String>,
    },
    /// An answer came.
    Answer {
        /// The number of the request.
        number: u16,
        /// From this address.
        from: String,
        /// Its payload.
        bytes: usize,
        /// `None` when it has been answered before.
        round_trip_ns: Option<u64>,
    },
    /// Somebody on the way said that a request cannot arrive.
    Failed {
        /// What they said.
        why: String,
    },
    /// It is over.
    Over {
        /// Why it could not begin.
        error: Option<String>,
    },
}

impl Requests {
    /// As a request of the control socket.
    pub fn to_json(self) -> Value {
        json!({
            "op": "ping", "to": self.to.to_string(), "count": self.count,
            "interval_ns": self.interval.as_nanos(), "bytes": self.payload_bytes,
            "wait_ns": self.wait.as_nanos(),
        })
    }
    /// Of a request of the control socket.
    pub fn of(request: &Value) -> Result<Requests, String> {
        let number = |member: &str| request[member].as_u64().ok_or_else(|| format!("give \"{member}\""));
        let to = request["to"].as_str().and_then(|to| to.parse().ok()).ok_or("give an address \"to\"")?;
        let interval = Duration::from_nanos(number("interval_ns")?);
        if !(SHORTEST..=LONGEST).contains(&interval) {
            return Err(format!("\"interval_ns\" is from {SHORTEST} to {LONGEST}"));
        }
        Ok(Requests {
            to,
            count: u32::try_from(number("count")?).map_err(|_| "\"count\" is too large")?,
            interval,
            payload_bytes: u16::try_from(number("bytes")?).map_err(|_| "\"bytes\" is too large")?,
            wait: Duration::from_nanos(number("wait_ns")?),
        })
    }
}

enum Wake {
    Answer(EchoInfo),
    Failed(String),
    Time,
}

/// Sends the requests from `host`. It goes on while `tell` says true.
///
/// # Errors
/// Where there is no socket for it.
pub async fn send(
    host: &Host,
    requests: &Requests,
    mut tell: impl AsyncFnMut(EchoNews) -> bool,
) -> Result<(), String> {
    let socket = host.echo().map_err(|e| format!("no echo socket: {e}"))?;
    let payload = vec![0xa5; usize::from(requests.payload_bytes)];
    let mut place = vec![0; ANSWER_BYTES];
    // When each request was sent that has no answer yet; their numbers come round again.
    let mut unanswered: BTreeMap<u16, Instant> = BTreeMap::new();
    let (mut next, mut sent) = (host.now(), 0_u32);
    while requests.count == 0 || sent < requests.count {
        let (sent_at, number) = (host.now(), sent as u16);
        unanswered.insert(number, sent_at);
        let error = socket.send(requests.to, number, &payload).await.err().map(|e| e.to_string());
        if !tell(EchoNews::Sent { number, error }).await {
            return Ok(());
        }
        sent = sent.wrapping_add(1);
        let is_last = sent == requests.count;
        next += requests.interval;
        let until = if is_last { sent_at + requests.wait } else { next };
        loop {
            let late = async {
                host.sleep_until(until).await;
                Wake::Time
            };
            let news = match or(answer(&socket, &mut place), late).await {
                Wake::Time => break,
                Wake::Failed(why) => EchoNews::Failed { why },
                Wake::Answer(answer) => {
                    let sent_at = unanswered.remove(&answer.sequence);
                    EchoNews::Answer {
                        number: answer.sequence,
                        from: answer.from.to_string(),
                        bytes: answer.length_bytes,
                        round_trip_ns: sent_at.map(|at| host.now().since(at).as_nanos()),
                    }
                }
            };
            if !tell(news).await || (is_last && unanswered.is_empty()) {
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn answer(socket: &EchoSocket, place: &mut [u8]) -> Wake {
    match socket.receive(place).await {
        Ok(info) => Wake::Answer(info),
        Err(error) => Wake::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_the_control_socket_is_read_as_it_was_written() {
        let requests = Requests {
            to: "fd00::1".parse().unwrap(),
            count: 0,
            interval: Duration::from_millis(200),
            payload_bytes: 56,
            wait: Duration::from_secs(2),
        };
        assert_eq!(Requests::of(&requests.to_json()), Ok(requests));
        let mut hasty = requests.to_json();
        hasty["interval_ns"] = 1.into();
        assert_eq!(Requests::of(&hasty).unwrap_err(), "\"interval_ns\" is from 10.000 ms to 3600.000 s");
        assert_eq!(Requests::of(&json!({"op": "ping"})).unwrap_err(), "give an address \"to\"");
    }
}
