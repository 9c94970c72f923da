//! Verdicts on connections whose truth is known.

mod built;
mod corpus;
mod malformed;
mod network;
mod situations;
