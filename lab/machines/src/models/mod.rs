//! What work costs on each machine.

pub(crate) mod ibm_pc;
