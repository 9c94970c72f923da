//! The address of the next data connection: PORT, PASV, EPRT, EPSV.

use inhost_base::{Endpoint, Instant, IpAddr};

use super::action::{Action, Channel};
use super::machine::Session;
use super::state::Waiting;
use crate::codec::{
    AddressError, Command, Family, Verb, epsv_text, parse_extended, parse_long, parse_port, pasv_text,
};

/// Ports below this are services of somebody, and no client's (RFC 2577 §3).
const LEAST_PORT: u16 = 1024;
/// Reply to a client behind a gateway. A data connection to it would end at the gateway, and reach what listens on the
/// gateway's own machine.
pub(super) const FORWARDED: &str =
    "You come through a forwarded port, where no data connection leads back; use EPSV or PASV.";

impl Session {
    /// PORT, EPRT, LPRT.
    pub(super) fn active(&mut self, command: &Command) {
        if self.settings.data.extended_only {
            return self.reply(503, "EPSV ALL was said.");
        }
        if self.running.is_some() {
            return self.reply(503, "A transfer runs.");
        }
        let parsed = match command.verb {
            Verb::Port => parse_port(&command.argument),
            Verb::Eprt => parse_extended(&command.argument),
            _ => parse_long(&command.argument),
        };
        let endpoint = match parsed {
            Ok(endpoint) => endpoint,
            Err(AddressError::Syntax) => return self.reply(501, "That is not an address."),
            Err(AddressError::Family) => {
                let code = if command.verb == Verb::Lprt { 521 } else { 522 };
                return self.reply(code, &format!("{}.", AddressError::Family));
            }
        };
        if let Err(why) = self.may_call(endpoint) {
            return self.reply(504, why);
        }
        self.act(Action::StopListening);
        self.settings.data.channel = Some(Channel::Active(endpoint));
        self.reply(200, "The data connection will go there.");
    }

    /// RFC 2577 §3: a server that connects to any requested address can be used to attack others (FTP bounce).
    fn may_call(&self, to: Endpoint) -> Result<(), &'static str> {
        if self.outer.is_some() {
            return Err(FORWARDED);
        }
        let (address, own) = (to.address.to_canonical(), self.peer.address.to_canonical());
        if to.port < LEAST_PORT {
            return Err("Data connections go to no port below 1024.");
        }
        if address == own {
            return Ok(());
        }
        if !self.config.third_party {
            return Err("Data connections go to your own address only.");
        }
        let is_host = match address {
            IpAddr::V4(a) => {
                !(a.is_unspecified() || a.is_broadcast() || a.is_loopback() || a.is_link_local())
            }
            IpAddr::V6(a) => !(a.is_unspecified() || a.is_loopback() || a.is_unicast_link_local()),
        };
        match is_host && !address.is_multicast() {
            true => Ok(()),
            false => Err("That is not another host's address."),
        }
    }

    /// PASV and EPSV.
    pub(super) fn passive(&mut self, command: &Command) {
        if self.running.is_some() {
            return self.reply(503, "A transfer runs.");
        }
        let own = Family::of(self.local.address);
        let family = match (command.verb, command.argument.trim()) {
            (Verb::Pasv, _) if self.settings.data.extended_only => {
                return self.reply(503, "EPSV ALL was said.");
            }
            // RFC 2428 §1: PASV cannot tell an address of IPv6.
            (Verb::Pasv, _) if own == Family::V6 => return self.reply(425, "Say EPSV: this is IPv6."),
            (Verb::Pasv, _) | (_, "") => own,
            (_, "1") => Family::V4,
            (_, "2") => Family::V6,
            (_, all) if all.eq_ignore_ascii_case("ALL") => {
                self.settings.data.extended_only = true;
                return self.reply(200, "EPSV it is, for ever.");
            }
            (_, number) if number.bytes().all(|b| b.is_ascii_digit()) => {
                return self.reply(522, &format!("{}.", AddressError::Family));
            }
            _ => return self.reply(501, "EPSV takes 1, 2 or ALL."),
        };
        // The control connection's address is the data connection's, so its family is too.
        if family != own {
            return self.reply(522, &format!("Network protocol not supported, use ({}).", own.number()));
        }
        self.settings.data.channel = None;
        self.waiting = Waiting::Port(command.verb);
        self.act(Action::Listen(family));
    }

    /// The passive endpoint, or an error without a free port.
    pub fn listening(&mut self, at: Option<Endpoint>, now: Instant) {
        let Waiting::Port(verb) = self.waiting else { return };
        self.waiting = Waiting::Nothing;
        match at {
            Some(at) => {
                self.settings.data.channel = Some(Channel::Passive);
                // Behind a NAT only the operator knows by what address clients come in.
                let seen = self.config.passive_address.map_or(self.local.address, IpAddr::V4);
                match (verb, pasv_text(Endpoint::new(seen, at.port))) {
                    (Verb::Pasv, Some(text)) => self.reply(227, &text),
                    _ => self.reply(229, &epsv_text(at.port)),
                }
            }
            None => self.reply(425, "No port is free for a data connection, try later."),
        }
        self.process(now);
    }
}
