//! The stream checker: two ends that talk, each of which knows every byte that the other will say.

use bytes::Bytes;
use inhost_base::{Duration, Random};
use inhost_socket::{Stream, StreamError, both};
use inhost_stack::SendHow;

/// The byte at `position` of the stream with this `key`.
pub fn byte_at(key: u64, position: u64) -> u8 {
    let mixed = (position ^ key.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// What one end of a connection does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Talk {
    /// Names the stream that this end sends.
    pub send_key: u64,
    /// Bytes that it sends before it shuts its side down.
    pub send_bytes: u64,
    /// Names the stream that it is to receive.
    pub receive_key: u64,
    /// Bytes that it is to receive before the end of the stream.
    pub receive_bytes: u64,
    /// Most bytes of one write.
    pub write_most_bytes: u32,
    /// What it writes goes by reference, in pieces of so many bytes at most; 0 for a copy.
    pub lend_most_bytes: u32,
    /// Most bytes of one read.
    pub read_most_bytes: u32,
    /// Most time between two writes.
    pub write_pause: Duration,
    /// Most time between two reads.
    pub read_pause: Duration,
    /// One write in so many is urgent; 0 for none.
    pub urgent_one_in: u32,
}

/// How a stream went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A byte is not the one that was sent there.
    WrongByte {
        /// Where in the stream.
        position: u64,
    },
    /// More came than was sent.
    TooLong {
        /// How much is to come.
        expected_bytes: u64,
    },
    /// The stream ended, and not all had come.
    TooShort {
        /// What came.
        received_bytes: u64,
        /// How much is to come.
        expected_bytes: u64,
    },
    /// The connection failed while something was to be received.
    Receiving(StreamError),
    /// The connection failed while something was to be sent.
    Sending(StreamError),
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Fault::WrongByte { position } => write!(f, "byte {position} is not the one that was sent"),
            Fault::TooLong { expected_bytes } => write!(f, "more came than the {expected_bytes} bytes sent"),
            Fault::TooShort { received_bytes, expected_bytes } => {
                write!(f, "the stream ended after {received_bytes} of {expected_bytes} bytes")
            }
            Fault::Receiving(why) => write!(f, "cannot receive: {why}"),
            Fault::Sending(why) => write!(f, "cannot send: {why}"),
        }
    }
}
impl core::error::Error for Fault {}

impl Talk {
    /// Sends all there is to send and checks all there is to receive, at once. When the connection fails, what came
    /// before has been checked. What is wrong with the data itself comes first, and ends the connection.
    pub async fn run(&self, stream: &Stream) -> Result<(), Fault> {
        let (sent, received) = both(self.send(stream), self.receive(stream)).await;
        match received {
            Err(Fault::Receiving(_)) => sent.and(received),
            _ => received.and(sent),
        }
    }
    /// Sends the stream and shuts the sending side down.
    pub async fn send(&self, stream: &Stream) -> Result<(), Fault> {
        let mut random = Random::from_number(self.send_key);
        let mut piece = Vec::new();
        let mut sent = 0;
        while sent < self.send_bytes {
            let most = 1 + random.public_below(self.write_most_bytes);
            let end = self.send_bytes.min(sent + u64::from(most));
            piece.clear();
            piece.extend((sent..end).map(|at| byte_at(self.send_key, at)));
            let urgent = self.urgent_one_in > 0 && random.public_below(self.urgent_one_in) == 0;
            let how = SendHow { urgent, ..SendHow::default() };
            sent += self.write(stream, &piece, how).await.map_err(Fault::Sending)? as u64;
            pause(stream, &mut random, self.write_pause).await;
        }
        stream.shutdown();
        Ok(())
    }
    /// Writes `bytes`, or a part of them.
    async fn write(&self, stream: &Stream, bytes: &[u8], how: SendHow) -> Result<usize, StreamError> {
        if self.lend_most_bytes == 0 {
            return stream.send(bytes, how).await;
        }
        let mut pieces = bytes.chunks(self.lend_most_bytes as usize).peekable();
        while let Some(piece) = pieces.next() {
            let mut piece = Bytes::copy_from_slice(piece);
            let how = SendHow { urgent: how.urgent && pieces.peek().is_none(), ..how };
            while !piece.is_empty() {
                let lent = stream.host().with_stack_and_sink(|stack, now, sink| {
                    stack.tcp(now, sink).lend(stream.socket(), &mut piece, how)
                });
                // Where there is no room, what waits for it is copied.
                if lent.is_err() {
                    let taken = stream.send(&piece, how).await?;
                    drop(piece.split_to(taken));
                }
            }
        }
        Ok(bytes.len())
    }
    /// Receives the stream to its end and compares it with what was sent.
    pub async fn receive(&self, stream: &Stream) -> Result<(), Fault> {
        let mut random = Random::from_number(self.receive_key ^ 1);
        let mut place = vec![0; self.read_most_bytes.max(1) as usize];
        let expected_bytes = self.receive_bytes;
        let mut received_bytes = 0;
        loop {
            let most = 1 + random.public_below(self.read_most_bytes) as usize;
            let count = stream.receive(&mut place[..most]).await.map_err(Fault::Receiving)?;
            if count == 0 && received_bytes == expected_bytes {
                return Ok(());
            }
            let fault = if count == 0 {
                Some(Fault::TooShort { received_bytes, expected_bytes })
            } else if received_bytes + count as u64 > expected_bytes {
                Some(Fault::TooLong { expected_bytes })
            } else {
                let wrong = (received_bytes..)
                    .zip(&place[..count])
                    .find(|&(at, &byte)| byte != byte_at(self.receive_key, at));
                wrong.map(|(position, _)| Fault::WrongByte { position })
            };
            if let Some(fault) = fault {
                stream.abort();
                return Err(fault);
            }
            received_bytes += count as u64;
            pause(stream, &mut random, self.read_pause).await;
        }
    }
}

async fn pause(stream: &Stream, random: &mut Random, most: Duration) {
    if most > Duration::ZERO {
        let thousandths = u64::from(random.public_below(1001));
        stream.host().sleep(most.times(thousandths).divided_by(1000)).await;
    }
}
