//! Tests that speak packets: one connection against scripted segments (`trial`), and two connections over a pipe
//! with seeded faults (`pipe`).

mod closing;
mod data;
mod defence;
mod detail;
mod fast_open;
mod ledger;
mod linux;
mod loss;
mod numbers;
mod opening;
mod pipe;
mod rfc4821;
mod rfc6298;
mod rfc6675;
mod rfc7323;
mod rfc8985;
mod rfc9293;
mod rfc9438;
mod search;
mod sizes;
mod timers;
mod trial;
mod urgent;
mod windows;
