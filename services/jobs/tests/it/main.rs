//! Integration tests, one program for all.

mod local;
