//! Integration tests, one program for all: a program costs more to link than to run.

mod corpus;
mod faces;
mod faults;
mod hostile;
mod iperf3;
mod kernel;
mod limits;
mod remote;
mod simulated;
mod sweeps;
