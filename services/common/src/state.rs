//! Where a host keeps what outlives it.

use std::path::PathBuf;

/// A folder of the user's state: `$XDG_STATE_HOME/inhost/NAME`, else `~/.local/state/inhost/NAME`.
pub fn state_folder(name: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let base = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    base.or_else(home).unwrap_or_else(|| PathBuf::from("/var/lib")).join("inhost").join(name)
}
