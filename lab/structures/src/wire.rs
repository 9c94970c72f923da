//! The pipe of frames between the two hosts: the same for every control structure.
//!
//! Each direction has a used queue and a free queue of packet buffers, as the packet manager of MIT §5.4 had. So many
//! buffers go round that no used queue is ever full, and who finds no free buffer is told that the device is full. A
//! frame is copied once: by the sender's stack into a free buffer. From then on the buffer is handed on.

use crossbeam_channel::{Receiver, Sender, bounded};
use inhost_buf::{Batch, Device, Frame, Full, Packet, Pool};

/// Buffers that go round in each direction: more than a window of full segments.
pub const BUFFERS: usize = 256;
/// The longest packet.
pub const MTU_BYTES: u16 = 1500;

/// The driver's end of the pipe.
pub struct End {
    /// Frames to the other host.
    pub outward: Sender<Packet>,
    /// Frames from the other host.
    pub inward: Receiver<Packet>,
}

/// The buffers that a stack takes and returns.
pub struct Buffers {
    /// Empty buffers for frames that are sent.
    pub free: Receiver<Packet>,
    /// Where the sender of a received frame finds an empty buffer again.
    returns: Sender<Packet>,
    /// What was sent.
    pub sent: Sent,
}

/// Segments that a host has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// With data.
    pub data_segments: u64,
    /// Without.
    pub bare_segments: u64,
    /// Bytes of data.
    pub data_bytes: u64,
}

/// A pipe: for each of its two ends what the driver has, and what the stack has.
pub fn pipe() -> [(End, Buffers); 2] {
    let [there, back] = [(); 2].map(|()| (bounded(BUFFERS), bounded(BUFFERS)));
    let mut pool = Pool::new(usize::MAX);
    for (_, (free, _)) in [&there, &back] {
        while let Some(packet) = pool.take(usize::from(MTU_BYTES)) {
            if free.try_send(packet).is_err() {
                break;
            }
        }
    }
    let ((there_in, there_out), (there_returns, there_free)) = there;
    let ((back_in, back_out), (back_returns, back_free)) = back;
    let buffers = |free, returns| Buffers { free, returns, sent: Sent::default() };
    [
        (End { outward: there_in, inward: back_out }, buffers(there_free, back_returns)),
        (End { outward: back_in, inward: there_out }, buffers(back_free, there_returns)),
    ]
}

impl Buffers {
    /// Puts a received frame into `batch`, which has room, and trades an empty buffer of `pool` for it.
    pub fn admit(&self, packet: Packet, pool: &mut Pool, batch: &mut Batch) -> Result<(), String> {
        let spare = pool.take(usize::from(MTU_BYTES)).ok_or("the host's memory is spent")?;
        // When the other host has ended, nobody waits for the buffer.
        let _ = self.returns.try_send(spare);
        batch.push(packet).map_err(|_| "more frames than a batch takes".into())
    }
    /// The device of a stack: each frame goes to `put`.
    pub fn outbox<F: FnMut(Packet)>(&mut self, put: F) -> Outbox<'_, F> {
        Outbox { buffers: self, put }
    }
}

/// A device that copies each frame into a free buffer and hands it on.
pub struct Outbox<'a, F> {
    buffers: &'a mut Buffers,
    put: F,
}

impl<F: FnMut(Packet)> Device for Outbox<'_, F> {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut packet = self.buffers.free.try_recv().map_err(|_| Full)?;
        let length = frame.write_to(packet.spare_mut()).unwrap_or(0);
        packet.extend(length);
        let sent = &mut self.buffers.sent;
        match frame.payload.len() as u64 {
            0 => sent.bare_segments += 1,
            bytes => {
                sent.data_segments += 1;
                sent.data_bytes += bytes;
            }
        }
        (self.put)(packet);
        Ok(())
    }
}
