//! The meter and its account.

mod account;
mod hosts;
mod picture;
