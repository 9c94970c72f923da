//! The parser of a SPEC.

use super::error::KEYS;
use super::{Framing, Kind, SERIAL_MTU_BYTES, Spec, SpecError};
use crate::faults::Rates;
use core::str::FromStr;
use inhost_base::Cidr;

/// Default rate of a serial line.
const DEFAULT_BAUD: u32 = 9600;
/// IPv6 needs 1280; below 68 no IPv4 host works (RFC 791).
const MTU_BYTES: core::ops::RangeInclusive<usize> = 68..=65535;

impl FromStr for Spec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut parts = text.split(',').map(str::trim);
        let mut spec = head(parts.next().unwrap_or_default())?;
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(|| SpecError::NotAPair(part.to_owned()))?;
            spec = spec.with(key.trim(), value.trim())?;
        }
        spec.check()?;
        Ok(spec)
    }
}

fn head(text: &str) -> Result<Spec, SpecError> {
    let (kind_name, device) = text.split_once(':').unwrap_or((text, ""));
    let kind = Kind::NAMES
        .iter()
        .find(|(name, _)| *name == kind_name)
        .map(|(_, kind)| *kind)
        .ok_or_else(|| SpecError::Kind(kind_name.to_owned()))?;
    let example = match kind {
        Kind::User => "user, without a device",
        Kind::Tap => "tap:NAME, such as tap:in0",
        Kind::Tun => "tun:NAME, such as tun:in0",
        Kind::Serial => "serial:PATH, such as serial:/dev/ttyS0",
        Kind::Memory => "memory:NAME",
    };
    // Linux: at most 15 octets, no slash, no white space.
    let is_interface = device.len() <= 15 && !device.contains(|c: char| c == '/' || c.is_whitespace());
    let fits = match kind {
        Kind::User => device.is_empty(),
        Kind::Tap | Kind::Tun => !device.is_empty() && is_interface,
        Kind::Serial | Kind::Memory => !device.is_empty(),
    };
    if !fits {
        return Err(SpecError::Device { kind: kind.name(), example });
    }
    Ok(Spec {
        kind,
        device: device.to_owned(),
        addresses: Vec::new(),
        dhcp: false,
        gateways: Vec::new(),
        mtu_bytes: None,
        forwards: Vec::new(),
        connections_per_caller: None,
        host_addresses: Vec::new(),
        offload: true,
        gso: true,
        gro: true,
        reach_loopback: false,
        baud: DEFAULT_BAUD,
        framing: Framing::default(),
        offer: None,
        noise: 0.0,
        faults: Rates::default(),
    })
}

impl Spec {
    /// Checks that need all keys.
    fn check(&self) -> Result<(), SpecError> {
        if self.dhcp && self.addresses.iter().any(|own| own.address().is_ipv4()) {
            let allowed = "it, or an IPv4 address of your own, not both";
            return Err(SpecError::Value { key: "address".into(), value: "dhcp".into(), allowed });
        }
        // RFC 8200 §5
        let least = inhost_wire::ipv6::MINIMUM_MTU_BYTES;
        let mtu_bytes =
            self.mtu_bytes.unwrap_or(if self.kind == Kind::Serial { SERIAL_MTU_BYTES } else { least });
        if let Some(own) = self.addresses.iter().find(|own| own.address().is_ipv6())
            && mtu_bytes < least
        {
            let allowed = "it with mtu=1280 or more, as IPv6 needs";
            return Err(SpecError::Value { key: "address".into(), value: own.to_string(), allowed });
        }
        let Some(offer) = self.offer else { return Ok(()) };
        let wrong =
            |allowed| Err(SpecError::Value { key: "offer".into(), value: offer.to_string(), allowed });
        if self.framing != Framing::Llp {
            return wrong("it with framing=llp");
        }
        if !self.addresses.iter().any(|own| own.address().is_ipv4()) {
            return wrong("it with an IPv4 address= of this end");
        }
        Ok(())
    }
    fn with(mut self, key: &str, value: &str) -> Result<Spec, SpecError> {
        if !KEYS.contains(&key) {
            return Err(SpecError::Key(key.to_owned()));
        }
        let kind = self.kind;
        let only = |kinds: &[Kind]| match kinds.contains(&kind) {
            true => Ok(()),
            false => Err(SpecError::Misplaced { key: key.to_owned(), kind: kind.name() }),
        };
        let wrong = |allowed: &'static str| SpecError::Value {
            key: key.to_owned(),
            value: value.to_owned(),
            allowed,
        };
        match key {
            "address" if value == "dhcp" => {
                only(&[Kind::Tap])?;
                self.dhcp = true;
            }
            "address" => self.addresses.push(value.parse().map_err(|_| {
                wrong("an address with a prefix length, such as 10.9.0.2/24, or on a tap link dhcp")
            })?),
            "gateway" => self.gateways.push(value.parse().map_err(|_| wrong("an IP address"))?),
            "mtu" => {
                let mtu = value.parse().ok().filter(|mtu| MTU_BYTES.contains(mtu));
                self.mtu_bytes = Some(mtu.ok_or_else(|| wrong("bytes from 68 to 65535"))?);
            }
            "forward" => {
                only(&[Kind::User])?;
                let allowed = "127.0.0.1:2323->23, or udp:127.0.0.1:2007->7";
                self.forwards.push(value.parse().map_err(|()| wrong(allowed))?);
            }
            "per-caller" => {
                only(&[Kind::User])?;
                let limit = value.parse().ok().filter(|limit| (1..=65_535).contains(limit));
                self.connections_per_caller = Some(limit.ok_or_else(|| wrong("a number from 1 to 65535"))?);
            }
            "host" => {
                only(&[Kind::Tap, Kind::Tun])?;
                let allowed = "the kernel's address with a prefix length, such as 10.9.0.1/24";
                let address: Cidr = value.parse().map_err(|_| wrong(allowed))?;
                let is_second = |other: &Cidr| address.address().is_ipv4() && other.address().is_ipv4();
                if self.host_addresses.iter().any(is_second) {
                    return Err(wrong("at most one IPv4 address for the kernel's end"));
                }
                self.host_addresses.push(address);
            }
            "offload" | "gso" | "gro" => {
                let on = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(wrong("on or off")),
                };
                match key {
                    "gso" => self.gso = on,
                    "gro" => self.gro = on,
                    _ => {
                        only(&[Kind::Tap, Kind::Tun])?;
                        self.offload = on;
                    }
                }
            }
            "loopback" => {
                only(&[Kind::User])?;
                self.reach_loopback = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(wrong("yes or no")),
                };
            }
            "baud" => {
                only(&[Kind::Serial])?;
                let baud = value.parse().ok().filter(|baud| (50..=50_000_000).contains(baud));
                self.baud = baud.ok_or_else(|| wrong("bits a second from 50 to 50000000"))?;
            }
            "framing" => {
                only(&[Kind::Serial])?;
                self.framing = match value {
                    "slip" => Framing::Slip,
                    "llp" => Framing::Llp,
                    _ => return Err(wrong("slip or llp")),
                };
            }
            "offer" => {
                only(&[Kind::Serial])?;
                self.offer = Some(value.parse().map_err(|_| wrong("an IPv4 address"))?);
            }
            "noise" => {
                only(&[Kind::Serial])?;
                self.noise = crate::faults::share(value).map_err(wrong)?;
            }
            "loss" | "corrupt" | "duplicate" | "reorder" | "delay" | "seed" => {
                self.faults = self.faults.with(key, value).map_err(wrong)?;
            }
            _ => return Err(SpecError::Key(key.to_owned())),
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Forward, Transport};
    use inhost_base::{Duration, Ipv4Addr, Random};

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "user",
            "user,forward=127.0.0.1:2323->23,forward=udp:[::1]:2007->7,per-caller=8,loopback=yes,loss=5%,seed=7",
            "tap:in0,address=10.9.0.2/24,address=fd00::2/64,gateway=10.9.0.1,mtu=1500,host=10.9.0.1/24",
            "tun:in2,host=10.9.0.1/24,offload=off,gso=off,gro=off",
            "user,gso=off",
            "tun:in1,address=10.9.1.2/30,loss=0.1%,delay=20ms,corrupt=1%,duplicate=2%,reorder=3%,seed=42",
            "serial:/dev/ttyS0,address=10.0.5.2/24,baud=9600,framing=llp,offer=10.0.5.3",
            "serial:/dev/ptmx,baud=300,framing=slip,noise=0.1%,seed=9",
            "memory:wire",
        ] {
            let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(spec.to_string(), text);
        }
        let spec: Spec = "user,loss=0.05".parse().unwrap();
        assert_eq!(spec.faults.loss, 0.05);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("tab:in0", "user, tap, tun"),
            ("tap", "tap:in0"),
            ("tap:a-name-that-is-too-long", "tap:in0"),
            ("user:x", "without a device"),
            ("user,loss", "key=value"),
            ("user,color=red", "color"),
            ("user,color=red", "host, offload, gso, gro, loopback"),
            ("user,baud=9600", "does not go with"),
            ("serial:/dev/ttyS0,framing=hdlc", "slip or llp"),
            ("tap:in0,address=10.9.0.2", "prefix"),
            ("user,loss=150%", "loss"),
            ("user,mtu=12", "68"),
            ("serial:/dev/ptmx,address=fd00::1/64", "mtu=1280"),
            ("tap:in0,address=fd00::1/64,mtu=576", "mtu=1280"),
            ("user,offload=off", "does not go with"),
            ("tun:a,offload=maybe", "on or off"),
            ("user,noise=1%", "does not go with"),
            ("tap:a,host=10.0.0.1/24,host=10.0.1.1/24", "at most one IPv4"),
            ("serial:/dev/ttyS0,framing=llp,offer=10.0.5.3", "address="),
            ("serial:/dev/ttyS0,address=10.0.5.2/24,offer=10.0.5.3", "framing=llp"),
            ("serial:/dev/ttyS0,framing=llp,offer=::1", "an IPv4 address"),
            ("user,forward=2323->23", "127.0.0.1:2323->23"),
            ("tun:a,delay=fast", "20ms"),
            ("user,per-caller=0", "from 1 to 65535"),
            ("tap:a,per-caller=8", "does not go with"),
        ] {
            let error = text.parse::<Spec>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    /// A SPEC with everything that its kind allows, at random; shares are in thousandths of a per cent.
    fn any(random: &mut Random) -> Spec {
        let mut draw = |limit: u32| random.public_below(limit);
        let texts = ["user", "tap:in0", "tun:a", "serial:/dev/ttyS0", "memory:wire"];
        let mut spec: Spec = texts[draw(5) as usize].parse().unwrap();
        let cidr = |draw: &mut dyn FnMut(u32) -> u32| match draw(2) {
            0 => Cidr::new([10, draw(256) as u8, draw(256) as u8, draw(256) as u8], draw(33) as u8).unwrap(),
            _ => Cidr::new([draw(0xffff) as u16; 8], draw(129) as u8).unwrap(),
        };
        spec.addresses = (0..draw(4)).map(|_| cidr(&mut draw)).collect();
        spec.gateways = (0..draw(3)).map(|_| cidr(&mut draw).address()).collect();
        let has_ipv6 = spec.addresses.iter().any(|own| own.address().is_ipv6());
        let least = if has_ipv6 { 1280 } else { 68 };
        spec.mtu_bytes = (has_ipv6 || draw(2) == 0).then(|| (least + draw(65_536 - least)) as usize);
        let share = |draw: &mut dyn FnMut(u32) -> u32| match draw(2) {
            0 => 0.0,
            _ => format!("{}", f64::from(draw(100_001)) / 1e3).parse::<f64>().unwrap() / 100.0,
        };
        spec.faults = Rates {
            loss: share(&mut draw),
            delay: Duration::from_micros(u64::from(draw(10_000_000))),
            corrupt: share(&mut draw),
            duplicate: share(&mut draw),
            reorder: share(&mut draw),
            seed: u64::from(draw(u32::MAX)),
        };
        (spec.gso, spec.gro) = (draw(2) == 0, draw(2) == 0);
        match spec.kind {
            Kind::User => {
                spec.reach_loopback = draw(2) == 0;
                spec.connections_per_caller = (draw(2) == 0).then(|| 1 + draw(65_535) as usize);
                spec.forwards = (0..draw(4))
                    .map(|_| Forward {
                        transport: if draw(2) == 0 { Transport::Tcp } else { Transport::Udp },
                        from: (cidr(&mut draw).address(), draw(65536) as u16).into(),
                        to: 1 + draw(65535) as u16,
                    })
                    .collect();
            }
            Kind::Tap | Kind::Tun => {
                spec.host_addresses = (0..draw(2)).map(|_| cidr(&mut draw)).collect();
                spec.offload = draw(2) == 0;
            }
            Kind::Serial => {
                spec.baud = 50 + draw(49_999_951);
                spec.noise = share(&mut draw);
                spec.framing = if draw(2) == 0 { Framing::Slip } else { Framing::Llp };
                let may_offer =
                    spec.framing == Framing::Llp && spec.addresses.iter().any(|own| own.address().is_ipv4());
                spec.offer = may_offer.then(|| Ipv4Addr::from(draw(u32::MAX)));
            }
            Kind::Memory => {}
        }
        spec
    }

    #[test]
    fn any_spec_is_read_as_it_was_written() {
        let mut random = Random::from_number(1);
        for _ in 0..5000 {
            let spec = any(&mut random);
            let text = spec.to_string();
            assert_eq!(text.parse(), Ok(spec), "{text}");
        }
    }

    #[test]
    fn no_text_is_too_strange() {
        let mut random = Random::from_number(2);
        let pieces =
            ["user", "tap", ":", ",", "=", "loss", "host", "->", "5%", "nan", "1e999", "::1/64", "é", ""];
        for _ in 0..5000 {
            let text: String =
                (0..random.public_below(12)).map(|_| pieces[random.public_below(14) as usize]).collect();
            if let Ok(spec) = text.parse::<Spec>() {
                assert_eq!(spec.to_string().parse(), Ok(spec), "{text}");
            }
        }
    }
}
