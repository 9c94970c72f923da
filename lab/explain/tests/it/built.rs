//! Captures built packet by packet.
