//! A control connection: bytes of a machine to and from a stream.

use std::collections::VecDeque;
use std::io;

use inhost_base::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{ANSWER_WITHIN, within};
use crate::face::Face;
use crate::iperf3::{Client, ClientEvent, ProtocolError, Server, ServerEvent, Step};

/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// Either end's machine.
pub trait Machine {
    /// What its driver is told.
    type Event;
    /// Takes bytes.
    fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Step<Self::Event>>, ProtocolError>;
}

impl Machine for Client {
    type Event = ClientEvent;
    fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Step<ClientEvent>>, ProtocolError> {
        Client::receive(self, bytes)
    }
}

impl Machine for Server {
    type Event = ServerEvent;
    fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Step<ServerEvent>>, ProtocolError> {
        Server::receive(self, bytes)
    }
}

/// Why a control connection is of no more use.
#[derive(Debug)]
pub enum Lost {
    /// The other end closed it.
    Closed,
    /// The other end reads or says nothing.
    Late,
    /// The other end says what has no place.
    Protocol(ProtocolError),
}

impl From<io::Error> for Lost {
    fn from(_: io::Error) -> Self {
        Lost::Closed
    }
}

/// A control connection of either end.
pub struct Control<F: Face, M: Machine> {
    face: F,
    stream: F::Stream,
    buffer: Vec<u8>,
    /// The machine, for what the driver says.
    pub machine: M,
    events: VecDeque<M::Event>,
}

impl<F: Face, M: Machine> Control<F, M> {
    /// Over a connection.
    pub fn new(face: &F, stream: F::Stream, machine: M) -> Control<F, M> {
        Control { face: face.clone(), stream, buffer: vec![0; READ_BYTES], machine, events: VecDeque::new() }
    }
    /// Sends bytes of the machine.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        let write = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        Ok(within(&self.face, ANSWER_WITHIN, write).await.ok_or(Lost::Late)??)
    }
    /// The next event, however long it takes. The future may be dropped while it waits.
    pub async fn event(&mut self) -> Result<M::Event, Lost> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let count = self.stream.read(&mut self.buffer).await?;
            if count == 0 {
                return Err(Lost::Closed);
            }
            let steps = self.machine.receive(&self.buffer[..count]).map_err(Lost::Protocol)?;
            for step in steps {
                match step {
                    Step::Event(event) => self.events.push_back(event),
                    // Few bytes, which fit the send buffer of any face: it does not wait.
                    Step::Send(bytes) => self.send(&bytes).await?,
                }
            }
        }
    }
    /// The next event, which must come soon.
    pub async fn answer(&mut self) -> Result<M::Event, Lost> {
        let face = self.face.clone();
        within(&face, ANSWER_WITHIN, self.event()).await.unwrap_or(Err(Lost::Late))
    }
    /// Closes in order: what was sent is not lost by a reset.
    pub async fn close(mut self) {
        let face = self.face.clone();
        let stream = &mut self.stream;
        let buffer = &mut self.buffer;
        let close = async {
            stream.shutdown().await?;
            while stream.read(buffer).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = within(&face, LINGER, close).await;
    }
}

/// For so long the other end's close is awaited.
pub const LINGER: Duration = Duration::from_secs(1);
