//! Who may come from where as whom.

use inhost_base::{Cidr, IpAddr};

/// Ports that only a superuser of the caller's host can use, and that these protocols take for a proof of that.
const RESERVED: std::ops::RangeInclusive<u16> = 512..=1023;

/// Whether a caller's port is one from which clients of rlogin and rsh come.
pub fn is_reserved(port: u16) -> bool {
    RESERVED.contains(&port)
}

/// One line of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Rule {
    /// From where.
    pub from: Vec<Cidr>,
    /// Users of the caller's host; `*` is every one.
    pub users: Vec<String>,
    /// As whom they may come; none is each as the user of the same name.
    pub names: Vec<String>,
}

impl Rule {
    /// All users of these networks, each under its own name.
    pub fn new(from: Vec<Cidr>) -> Rule {
        Rule { from, users: vec!["*".into()], names: Vec::new() }
    }
    fn lets_in(&self, address: IpAddr, client_user: &str, server_user: &str) -> bool {
        let is_from = self.from.iter().any(|network| network.contains(address));
        let is_user = self.users.iter().any(|user| user == "*" || user == client_user);
        let is_as = match self.names.is_empty() {
            true => client_user == server_user,
            false => self.names.iter().any(|name| name == server_user),
        };
        is_from && is_user && is_as
    }
}

/// The table. A user whom none of its lines lets in gives a password, or is refused.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Table {
    rules: Vec<Rule>,
}

impl Table {
    /// These lines.
    pub fn new(rules: Vec<Rule>) -> Table {
        Table { rules }
    }
    /// Whether `client_user` of the host at `address` is let in as `server_user` without a password.
    pub fn lets_in(&self, address: IpAddr, client_user: &str, server_user: &str) -> bool {
        self.rules.iter().any(|rule| rule.lets_in(address, client_user, server_user))
    }
}
