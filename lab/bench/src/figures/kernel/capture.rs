//! What entered a path, as a pcap file that every analyser reads: to find out why a cell is as it is.

use inhost_base::Instant;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Nanoseconds in the time stamps.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Frames begin with the IP header.
const LINK_TYPE_RAW: u32 = 101;
/// The longest packet that is kept whole; of others the headers and a little more are.
const SNAP_BYTES: u32 = 128;

/// A file that is being written.
pub struct Capture(BufWriter<File>);

impl Capture {
    /// Begins the file.
    pub fn create(path: &Path) -> Result<Capture, String> {
        let file = File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut file = BufWriter::new(file);
        let mut head = Vec::new();
        head.extend(MAGIC.to_le_bytes());
        // Version 2.4; no time zone, no accuracy.
        head.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        head.extend(SNAP_BYTES.to_le_bytes());
        head.extend(LINK_TYPE_RAW.to_le_bytes());
        file.write_all(&head).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Capture(file))
    }
    /// Adds a packet. What the disk does not take is missing; nothing else depends on it.
    pub fn add(&mut self, packet: &[u8], now: Instant) {
        let nanos = now.as_nanos();
        let kept = packet.len().min(SNAP_BYTES as usize);
        let head = [nanos / 1_000_000_000, nanos % 1_000_000_000, kept as u64, packet.len() as u64];
        for word in head {
            let _ = self.0.write_all(&(word as u32).to_le_bytes());
        }
        let _ = self.0.write_all(&packet[..kept]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_written_with_its_time_and_both_lengths() {
        let path = std::env::temp_dir().join(format!("inhost-capture-{}.pcap", std::process::id()));
        let mut capture = Capture::create(&path).unwrap();
        capture.add(&[0x45; 200], Instant::from_nanos(3_000_000_007));
        drop(capture);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(bytes.len(), 24 + 16 + 128);
        assert_eq!(bytes[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        assert_eq!([word(20), word(24), word(28), word(32), word(36)], [101, 3, 7, 128, 200]);
    }
}
