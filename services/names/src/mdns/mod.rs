//! Names of the link, which end in `.local`: multicast DNS (RFC 6762).
//!
//! [`MdnsQuery`] is the machine that judges what comes; [`ask()`] runs one on a host's links. The first question is a
//! one-shot: it leaves from its own port, and the answer comes to it alone. What is asked again leaves from mDNS's own
//! port, with what is known already, and is answered to all; answers to others' questions count as well.

mod driver;
mod machine;

pub use driver::ask;
pub use machine::{Asking, GROUPS, MDNS_PORT, MdnsAction, MdnsQuery, MdnsReport};

use hickory_proto::rr::Name;

/// Whether a name is looked for by mDNS: `local` and what is below it, and the reverse names of link-local addresses
/// (RFC 6762 §3, §4).
pub fn is_of_the_link(name: &Name) -> bool {
    const TREES: [&str; 6] = [
        "local",
        "254.169.in-addr.arpa",
        "8.e.f.ip6.arpa",
        "9.e.f.ip6.arpa",
        "a.e.f.ip6.arpa",
        "b.e.f.ip6.arpa",
    ];
    let name = crate::hosts::folded(&name.to_ascii());
    TREES.iter().any(|tree| name == *tree || name.ends_with(&format!(".{tree}")))
}

#[cfg(test)]
mod tests;
