//! Frames of the control connection: single bytes, JSON behind its length, and error numbers.

use serde::{Serialize, de::DeserializeOwned};

use super::ProtocolError;

/// Bytes that came and were not used yet. It never holds more than one message and one read.
#[derive(Debug, Default)]
pub(super) struct Inbox(Vec<u8>);

impl Inbox {
    pub fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
    pub fn byte(&mut self) -> Option<u8> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let array = *self.0.first_chunk::<N>()?;
        self.0.drain(..N);
        Some(array)
    }
    /// A value as JSON, once all of it is there.
    pub fn json<T: DeserializeOwned>(
        &mut self,
        limit: usize,
        what: &'static str,
    ) -> Result<Option<T>, ProtocolError> {
        let Some(length) = self.0.first_chunk::<4>() else { return Ok(None) };
        let bytes = u32::from_be_bytes(*length);
        if bytes as usize > limit {
            return Err(ProtocolError::TooLong { bytes, limit });
        }
        let end = 4 + bytes as usize;
        let Some(text) = self.0.get(4..end) else { return Ok(None) };
        let value = serde_json::from_slice(text).map_err(|_| ProtocolError::Json { what })?;
        self.0.drain(..end);
        Ok(Some(value))
    }
}

/// A value as JSON behind its length.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    // Plain structs of numbers and text: nothing that JSON cannot say.
    let text = serde_json::to_vec(value).unwrap_or_default();
    let mut frame = (text.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(&text);
    frame
}
