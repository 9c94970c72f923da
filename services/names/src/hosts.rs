//! The table of hosts that a person keeps: `address name alias …`, as hosts(5) has it.

use inhost_base::IpAddr;
use std::collections::BTreeMap;

/// Names kept from one table; what comes after is left out, and [`Hosts::left_out`] counts it.
pub const NAMES_LIMIT: usize = 100_000;
/// Addresses kept for one name, and names for one address.
pub const ADDRESSES_LIMIT: usize = 32;

/// Names with the addresses that a hosts file gives them. Names are compared without regard to case and to a final dot.
///
/// ```
/// use inhost_base::IpAddr;
/// use inhost_names::Hosts;
/// let hosts = Hosts::parse("10.9.0.7 printer.lan printer  # on the second floor");
/// let address = IpAddr::from([10, 9, 0, 7]);
/// assert_eq!(hosts.look_up("PRINTER.lan"), Some(&[address][..]));
/// assert_eq!(hosts.names_of(address), ["printer.lan", "printer"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    addresses: BTreeMap<String, Vec<IpAddr>>,
    names: BTreeMap<IpAddr, Vec<String>>,
    left_out: usize,
}

impl Hosts {
    /// Reads a table. Lines that give no address are passed over, since one bad line must not cost the others;
    /// an address with a zone (`fe80::1%eth0`) is one of them, for the zone names a card of another host stack.
    pub fn parse(text: &str) -> Hosts {
        let mut hosts = Hosts::default();
        for line in text.lines() {
            let line = line.split_once('#').map_or(line, |(before, _)| before);
            let mut words = line.split_ascii_whitespace();
            let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>) else {
                continue;
            };
            for name in words {
                hosts.add(name, address);
            }
        }
        hosts
    }
    /// The addresses of `name`, in the order of the table; `None` where the table does not know it.
    pub fn look_up(&self, name: &str) -> Option<&[IpAddr]> {
        self.addresses.get(&folded(name)).map(Vec::as_slice)
    }
    /// The names that the table gives to `address`, in their order there; the first line's first name is the usual one.
    pub fn names_of(&self, address: IpAddr) -> Vec<String> {
        self.names.get(&address).cloned().unwrap_or_default()
    }
    /// Adds one name with one address.
    pub fn add(&mut self, name: &str, address: IpAddr) {
        let name = folded(name);
        if self.addresses.len() >= NAMES_LIMIT && !self.addresses.contains_key(&name) {
            self.left_out += 1;
            return;
        }
        let addresses = self.addresses.entry(name.clone()).or_default();
        if addresses.contains(&address) {
            return;
        }
        if addresses.len() >= ADDRESSES_LIMIT {
            self.left_out += 1;
            return;
        }
        addresses.push(address);
        let names = self.names.entry(address).or_default();
        if names.len() < ADDRESSES_LIMIT {
            names.push(name);
        }
    }
    /// Entries that the limits left out.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
    /// Names in the table.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }
    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }
}

/// The form under which a name is kept and compared.
pub(crate) fn folded(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_as_people_write_them() {
        let hosts = Hosts::parse(
            "127.0.0.1 localhost\n::1\tlocalhost ip6-localhost # loopback\n\n# 10.0.0.9 hidden\n\
             10.0.0.7   Multics.MIT.edu multics\nnonsense here\nfe80::1%eth0 zoned\n10.0.0.8 multics multics\n",
        );
        let look = |name| hosts.look_up(name).map(|a| a.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(look("localhost"), Some(vec!["127.0.0.1".into(), "::1".into()]));
        assert_eq!(look("multics.mit.EDU."), Some(vec!["10.0.0.7".into()]));
        assert_eq!(look("multics"), Some(vec!["10.0.0.7".into(), "10.0.0.8".into()]));
        assert_eq!((look("hidden"), look("here"), look("zoned")), (None, None, None));
        assert_eq!(hosts.left_out(), 0);
    }

    #[test]
    fn limits_hold_and_are_counted() {
        let mut hosts = Hosts::default();
        for n in 0..40u8 {
            hosts.add("many", IpAddr::from([10, 0, 0, n]));
        }
        assert_eq!(hosts.look_up("many").unwrap().len(), ADDRESSES_LIMIT);
        assert_eq!(hosts.left_out(), 8);
    }
}
