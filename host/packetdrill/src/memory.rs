//! Access to the caller's memory: every dereference of a C pointer is here.

use libc::{EFAULT, EINVAL, iovec};

/// Most pieces of one scattered call: `IOV_MAX`.
const PIECES: usize = 1024;

/// Memory that the caller lends for the length of a call, which may block; the call's closure carries it to the thread
/// that completes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lent {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: the memory is the caller's, who waits in the call until it is answered and touches nothing meanwhile; the
// lock around the world orders the accesses.
unsafe impl Send for Lent {}

impl Lent {
    /// `bytes` bytes at `base`; EFAULT where there are some and the pointer is NULL.
    pub fn new(base: *mut u8, bytes: usize) -> Result<Lent, i32> {
        if base.is_null() && bytes > 0 {
            return Err(EFAULT);
        }
        Ok(Lent { base, bytes })
    }
    pub fn len(&self) -> usize {
        self.bytes
    }
    /// The bytes, to read.
    pub fn bytes(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: not NULL, and the caller of the C function promises `bytes` bytes there while the call lasts.
        unsafe { core::slice::from_raw_parts(self.base, self.bytes) }
    }
    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if self.bytes == 0 {
            return &mut [];
        }
        // SAFETY: as above, and nobody else holds them while the call lasts.
        unsafe { core::slice::from_raw_parts_mut(self.base, self.bytes) }
    }
}

/// The pieces of a scattered call.
pub(crate) fn pieces(vector: *const iovec, count: usize) -> Result<Vec<Lent>, i32> {
    if count > PIECES {
        return Err(EINVAL);
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    if vector.is_null() {
        return Err(EFAULT);
    }
    // SAFETY: not NULL, and the caller of the C function promises `count` entries there.
    let vector = unsafe { core::slice::from_raw_parts(vector, count) };
    vector.iter().map(|piece| Lent::new(piece.iov_base.cast(), piece.iov_len)).collect()
}

/// The value at `place`, or EFAULT for NULL.
pub(crate) fn read<T: Copy>(place: *const T) -> Result<T, i32> {
    if place.is_null() {
        return Err(EFAULT);
    }
    // SAFETY: not NULL, and the caller of the C function promises a value there; alignment is not relied on.
    Ok(unsafe { place.read_unaligned() })
}

/// Puts a value at `place`, or EFAULT for NULL.
pub(crate) fn write<T: Copy>(place: *mut T, value: T) -> Result<(), i32> {
    if place.is_null() {
        return Err(EFAULT);
    }
    // SAFETY: not NULL, and the caller of the C function promises room there; alignment is not relied on.
    unsafe { place.write_unaligned(value) };
    Ok(())
}
