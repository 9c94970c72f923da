//! Programs of others that `lab/interop/peers` unpacks without installing them.

use crate::left_out;
use std::path::PathBuf;

/// A file of an unpacked peer. `None`: without root the test of this thread is left out.
///
/// # Panics
/// When root has not unpacked it.
pub fn peer(name: &str, file: &str) -> Option<PathBuf> {
    let peers = std::env::var_os("INHOST_PEERS").map_or_else(|| "/opt/inhost-peers".into(), PathBuf::from);
    let path = peers.join(name).join(file);
    if !path.exists() && !rustix::process::geteuid().is_root() {
        left_out(&format!("{} missing; lab/interop/peers as root unpacks it", path.display()));
        return None;
    }
    assert!(path.exists(), "{} is needed; lab/interop/peers unpacks it", path.display());
    Some(path)
}
