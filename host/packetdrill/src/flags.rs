//! The flags of `--so_flags`.

use inhost_base::{Cidr, IpAddr};

/// Which of the two named behaviours the connections have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Profile {
    /// The product's own defaults.
    #[default]
    Rfc,
    /// As a current Linux behaves with default settings; its `/proc/sys/net/ipv4` is read at every `socket()`.
    Linux,
}

/// `local=…,gateway=…,prefix=…,mtu=…,profile=linux`, each of them optional; `local` may come more than once, and
/// `prefix` is for those that follow and those before. Words that are not known are told on standard error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Flags {
    pub local: Vec<IpAddr>,
    pub gateway: Option<IpAddr>,
    pub prefix_bits: Option<u8>,
    pub mtu_bytes: Option<u16>,
    pub profile: Profile,
}

impl Flags {
    pub fn parse(words: &str) -> Flags {
        let mut flags = Flags {
            local: Vec::new(),
            gateway: None,
            prefix_bits: None,
            mtu_bytes: None,
            profile: Profile::Rfc,
        };
        for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let is_understood = match (name, value) {
                ("local", _) => {
                    let (address, prefix) = value.split_once('/').unwrap_or((value, ""));
                    flags.prefix_bits = prefix.parse().ok().or(flags.prefix_bits);
                    address.parse().map(|address| flags.local.push(address)).is_ok()
                }
                ("gateway", _) => value.parse().map(|gateway| flags.gateway = Some(gateway)).is_ok(),
                ("prefix", _) => {
                    let bits = value.rsplit('/').next().unwrap_or(value);
                    bits.parse().map(|bits| flags.prefix_bits = Some(bits)).is_ok()
                }
                ("mtu", _) => value.parse().map(|mtu| flags.mtu_bytes = Some(mtu)).is_ok(),
                ("profile", "linux") => {
                    flags.profile = Profile::Linux;
                    true
                }
                ("profile", "rfc") => {
                    flags.profile = Profile::Rfc;
                    true
                }
                _ => false,
            };
            if !is_understood {
                eprintln!("libinhost_packetdrill: `{word}` in the flags is not understood");
            }
        }
        flags
    }
    /// Our addresses with their prefixes.
    pub fn addresses(&self) -> Vec<Cidr> {
        self.local.iter().filter_map(|&address| self.with_prefix(address)).collect()
    }
    /// An address with the prefix that was given, or one that is usual.
    pub fn with_prefix(&self, address: IpAddr) -> Option<Cidr> {
        let (usual, most) = if address.is_ipv4() { (16, 32) } else { (64, 128) };
        Cidr::new(address, self.prefix_bits.filter(|&bits| bits <= most).unwrap_or(usual)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_taken_and_any_may_be_missing() {
        let flags = Flags::parse("local=192.168.0.1,gateway=192.168.0.1,prefix=24,mtu=1400,profile=linux");
        assert_eq!(flags.addresses(), vec!["192.168.0.1/24".parse().unwrap()]);
        assert_eq!((flags.mtu_bytes, flags.profile), (Some(1400), Profile::Linux));
        let flags = Flags::parse("local=fd3d:a0b:17d6::1/48");
        assert_eq!(flags.addresses(), vec!["fd3d:a0b:17d6::1/48".parse().unwrap()]);
        assert_eq!((flags.mtu_bytes, flags.gateway, flags.profile), (None, None, Profile::Rfc));
        assert!(Flags::parse("").addresses().is_empty());
    }
}
