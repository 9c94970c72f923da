//! The service on a host of its own, with clients of others: curl for SMTP and HTTP, and a browser.

mod api;
mod browser;
mod corpus;
mod place;
