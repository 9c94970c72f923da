//! What a connection costs while it does nothing.

use super::trial::{ACK, Trial, lend, plain, segment};
use crate::Connection;

/// Bytes of a connection in its slab entry. The whole of an idle connection, entry, look-up and timer in the stack
/// included, shall stay within 512.
const CONNECTION_BYTES: usize = 360;

#[test]
fn a_connection_is_small() {
    let bytes = size_of::<Connection>();
    println!("size_of::<Connection>() = {bytes}");
    assert!(bytes <= CONNECTION_BYTES, "{bytes}");
}

#[test]
fn an_idle_connection_holds_no_box_and_no_buffer() {
    let mut trial = Trial::established(plain());
    assert!(trial.connection.buffers.is_none());
    trial.write(b"question");
    trial.expect();
    trial.give(segment(1, ACK, 9), b"answer");
    trial.read(100);
    trial.pass_ms(3000);
    trial.expect();
    trial.nothing();
    assert!(trial.connection.buffers.is_none());
    assert_eq!(trial.pool.outstanding_bytes(), 0);
    assert_eq!(trial.connection.deadline(), inhost_base::Instant::FAR_FUTURE);
}

#[test]
fn clear_gives_everything_back() {
    let mut trial = Trial::established(plain());
    trial.write(&[1; 5000]);
    trial.give(segment(1, ACK, 1), b"in order");
    trial.give(segment(20, ACK, 1), b"ahead");
    assert!(trial.pool.outstanding_bytes() > 0);
    trial.connection.clear(&mut trial.pool);
    assert_eq!(trial.pool.outstanding_bytes(), 0);
    trial.connection.timeout(lend!(trial));
}
