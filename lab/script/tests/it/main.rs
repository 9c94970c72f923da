//! Integration tests, one program for all: a program costs more to link than to run.

mod choices;
mod differ;
mod judging;
mod kernel;
mod mistakes;
mod mutations;
mod ours;
