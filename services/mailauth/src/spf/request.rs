//! What is asked of SPF: a client, and the names that it gives (RFC 7208 §4.1).

use inhost_base::IpAddr;

/// Arguments of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpfRequest<'a> {
    pub(crate) client: IpAddr,
    /// Domain whose record decides.
    pub(crate) domain: &'a str,
    /// The sender's address, or that of `postmaster` at the HELO name.
    pub(crate) sender: &'a str,
    pub(crate) helo: &'a str,
    pub(crate) receiver: &'a str,
    pub(crate) now_seconds: u64,
}
