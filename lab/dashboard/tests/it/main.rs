//! Integration tests, one program for all: a program costs more to link than to run.

mod browser;
mod interface;
mod load;
mod place;
