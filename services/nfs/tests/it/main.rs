//! Integration tests, one program for all: a program costs more to link than to run.

#[path = "../../examples/nfs_kernel/sockets.rs"]
mod sockets;

mod corpus;
mod ends;
mod ganesha;
mod host;
mod hostile;
mod kernel;
mod kernel_client;
mod libnfs;
mod long;
mod lying;
mod network;
mod place;
mod restart;
mod threads;
