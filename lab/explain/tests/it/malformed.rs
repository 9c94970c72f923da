//! Damaged captures.
