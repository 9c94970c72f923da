//! Remote procedure calls (RFC 5531): calls, replies, credentials.

use super::xdr::{Decoder, Encoder, Malformed, Xdr, to_octets, xdr_octets};

/// The version of the message protocol.
pub const RPC_VERSION: u32 = 2;
/// Octets of credentials and verifiers (RFC 5531 §8.2).
pub const AUTH_BYTES: usize = 400;
/// Groups in credentials of AUTH_SYS (RFC 5531 appendix A).
pub const GROUPS_LIMIT: usize = 16;
/// Octets of a host's name in credentials of AUTH_SYS.
pub const MACHINE_BYTES: usize = 255;

const CALL: u32 = 0;
const REPLY: u32 = 1;
const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;
const AUTH_SHORT: u32 = 2;

xdr_octets! {
    /// A host's name in credentials.
    Machine, MACHINE_BYTES
}

/// Who a caller says that he is, by AUTH_SYS (RFC 5531 appendix A). Nothing proves it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuthSys {
    /// Any number.
    pub stamp: u32,
    /// The caller's host.
    pub machine: Machine,
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Other groups.
    pub groups: Vec<u32>,
}

impl Xdr for AuthSys {
    fn encode(&self, to: &mut Encoder) {
        to.u32(self.stamp);
        to.value(&self.machine);
        to.u32(self.uid);
        to.u32(self.gid);
        let groups = &self.groups[..self.groups.len().min(GROUPS_LIMIT)];
        to.u32(groups.len() as u32);
        groups.iter().for_each(|&group| to.u32(group));
    }
    fn decode(from: &mut Decoder<'_>) -> Result<AuthSys, Malformed> {
        let (stamp, machine, uid, gid) = (from.u32()?, from.value()?, from.u32()?, from.u32()?);
        let count = from.u32()? as usize;
        if count > GROUPS_LIMIT {
            return Err(Malformed::Long);
        }
        let groups = (0..count).map(|_| from.u32()).collect::<Result<_, _>>()?;
        Ok(AuthSys { stamp, machine, uid, gid, groups })
    }
}

/// Credentials of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Credentials {
    /// Nobody in particular.
    None,
    /// Numbers of a user and of groups.
    Sys(AuthSys),
}

impl Xdr for Credentials {
    fn encode(&self, to: &mut Encoder) {
        match self {
            Credentials::None => {
                to.u32(AUTH_NONE);
                to.opaque(&[]);
            }
            Credentials::Sys(sys) => {
                to.u32(AUTH_SYS);
                to.opaque(&to_octets(sys));
            }
        }
    }
    fn decode(from: &mut Decoder<'_>) -> Result<Credentials, Malformed> {
        let (flavor, body) = (from.u32()?, from.opaque(AUTH_BYTES)?);
        match flavor {
            AUTH_NONE => Ok(Credentials::None),
            AUTH_SYS => super::xdr::from_octets(body).map(Credentials::Sys),
            _ => Err(Malformed::Value),
        }
    }
}

/// Why credentials are not taken (RFC 5531 §9, auth_stat).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuthError(pub u32);

impl AuthError {
    /// Credentials that are not well formed.
    pub const BAD_CREDENTIALS: AuthError = AuthError(1);
    /// Credentials that have to be given anew, as those of a flavor that is not known.
    pub const REJECTED: AuthError = AuthError(2);
    /// The verifier is not well formed.
    pub const BAD_VERIFIER: AuthError = AuthError(3);
    /// They prove too little.
    pub const TOO_WEAK: AuthError = AuthError(5);
}

/// What a call asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Target {
    /// Program number.
    pub program: u32,
    /// Version of the program.
    pub version: u32,
    /// Procedure number.
    pub procedure: u32,
}

/// A call; its arguments are behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallHeader {
    /// The number by which a reply is found.
    pub xid: u32,
    /// What is asked for.
    pub target: Target,
    /// Who asks.
    pub credentials: Credentials,
}

/// Why a message is not taken for a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotCall {
    /// It is none, or cut off: nothing can be answered.
    Ignore,
    /// Another version of RPC.
    Version {
        /// Number of the call.
        xid: u32,
    },
    /// Credentials that are not taken.
    Auth {
        /// Number of the call.
        xid: u32,
        /// Why.
        why: AuthError,
    },
}

impl CallHeader {
    /// Reads a call; also gives its arguments.
    pub fn parse(message: &[u8]) -> Result<(CallHeader, &[u8]), NotCall> {
        let mut from = Decoder::new(message);
        let ignore = |_| NotCall::Ignore;
        let xid = from.u32().map_err(ignore)?;
        if from.u32().map_err(ignore)? != CALL {
            return Err(NotCall::Ignore);
        }
        if from.u32().map_err(ignore)? != RPC_VERSION {
            return Err(NotCall::Version { xid });
        }
        let target = Target {
            program: from.u32().map_err(ignore)?,
            version: from.u32().map_err(ignore)?,
            procedure: from.u32().map_err(ignore)?,
        };
        let flavor = from.clone().u32().map_err(ignore)?;
        let credentials = from.value().map_err(|why| match (why, flavor) {
            (Malformed::Short, _) => NotCall::Ignore,
            (_, AUTH_NONE | AUTH_SYS) => NotCall::Auth { xid, why: AuthError::BAD_CREDENTIALS },
            _ => NotCall::Auth { xid, why: AuthError::REJECTED },
        })?;
        let bad_verifier = |_| NotCall::Auth { xid, why: AuthError::BAD_VERIFIER };
        from.u32().and_then(|_| from.opaque(AUTH_BYTES)).map_err(bad_verifier)?;
        Ok((CallHeader { xid, target, credentials }, from.rest()))
    }
    /// The octets before the arguments.
    pub fn encode(&self, to: &mut Encoder) {
        let Target { program, version, procedure } = self.target;
        for number in [self.xid, CALL, RPC_VERSION, program, version, procedure] {
            to.u32(number);
        }
        to.value(&self.credentials);
        to.value(&Credentials::None);
    }
}

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyStatus {
    /// It was done; results are behind this.
    Success,
    /// There is no such program.
    ProgramUnavailable,
    /// Only these versions of the program are there.
    ProgramMismatch {
        /// The lowest.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// There is no such procedure.
    ProcedureUnavailable,
    /// The arguments are not well formed.
    GarbageArguments,
    /// The server failed.
    SystemError,
    /// Only these versions of RPC are there.
    RpcMismatch {
        /// The lowest.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// The credentials are not taken.
    Auth(AuthError),
}

impl core::fmt::Display for ReplyStatus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ReplyStatus::Success => f.write_str("done"),
            ReplyStatus::ProgramUnavailable => f.write_str("the server does not have the program"),
            ReplyStatus::ProgramMismatch { low, high } => {
                write!(f, "the server has versions {low} to {high} of the program")
            }
            ReplyStatus::ProcedureUnavailable => f.write_str("the server does not have the procedure"),
            ReplyStatus::GarbageArguments => f.write_str("the server does not understand the arguments"),
            ReplyStatus::SystemError => f.write_str("the server failed"),
            ReplyStatus::RpcMismatch { low, high } => {
                write!(f, "the server has RPC versions {low} to {high}")
            }
            ReplyStatus::Auth(why) => write!(f, "the server refuses the credentials (error {})", why.0),
        }
    }
}

/// A reply; its results are behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplyHeader {
    /// The number of the call.
    pub xid: u32,
    /// What became of it.
    pub status: ReplyStatus,
}

impl ReplyHeader {
    /// Reads a reply; also gives its results.
    pub fn parse(message: &[u8]) -> Result<(ReplyHeader, &[u8]), Malformed> {
        let mut from = Decoder::new(message);
        let xid = from.u32()?;
        if from.u32()? != REPLY {
            return Err(Malformed::Value);
        }
        let status = match from.u32()? {
            0 => {
                // The verifier of AUTH_SYS may be AUTH_SHORT, of which no use is made.
                if !matches!(from.u32()?, AUTH_NONE | AUTH_SYS | AUTH_SHORT) {
                    return Err(Malformed::Value);
                }
                from.opaque(AUTH_BYTES)?;
                match from.u32()? {
                    0 => ReplyStatus::Success,
                    1 => ReplyStatus::ProgramUnavailable,
                    2 => ReplyStatus::ProgramMismatch { low: from.u32()?, high: from.u32()? },
                    3 => ReplyStatus::ProcedureUnavailable,
                    4 => ReplyStatus::GarbageArguments,
                    5 => ReplyStatus::SystemError,
                    _ => return Err(Malformed::Value),
                }
            }
            1 => match from.u32()? {
                0 => ReplyStatus::RpcMismatch { low: from.u32()?, high: from.u32()? },
                1 => ReplyStatus::Auth(AuthError(from.u32()?)),
                _ => return Err(Malformed::Value),
            },
            _ => return Err(Malformed::Value),
        };
        Ok((ReplyHeader { xid, status }, from.rest()))
    }
    /// The octets before the results.
    pub fn encode(&self, to: &mut Encoder) {
        to.u32(self.xid);
        to.u32(REPLY);
        let accepted = |to: &mut Encoder, number: u32| {
            to.u32(0);
            to.value(&Credentials::None);
            to.u32(number);
        };
        match self.status {
            ReplyStatus::Success => accepted(to, 0),
            ReplyStatus::ProgramUnavailable => accepted(to, 1),
            ReplyStatus::ProgramMismatch { low, high } => {
                accepted(to, 2);
                to.u32(low);
                to.u32(high);
            }
            ReplyStatus::ProcedureUnavailable => accepted(to, 3),
            ReplyStatus::GarbageArguments => accepted(to, 4),
            ReplyStatus::SystemError => accepted(to, 5),
            ReplyStatus::RpcMismatch { low, high } => [1, 0, low, high].into_iter().for_each(|n| to.u32(n)),
            ReplyStatus::Auth(why) => [1, 1, why.0].into_iter().for_each(|n| to.u32(n)),
        }
    }
    /// A whole reply without results.
    pub fn octets(xid: u32, status: ReplyStatus) -> Vec<u8> {
        let mut to = Encoder::default();
        ReplyHeader { xid, status }.encode(&mut to);
        to.into_octets()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_as_they_were_written() {
        let sys =
            AuthSys { machine: "here".into(), uid: 7, gid: 8, groups: vec![9, 10], ..AuthSys::default() };
        for credentials in [Credentials::None, Credentials::Sys(sys)] {
            let target = Target { program: 100_003, version: 3, procedure: 1 };
            let header = CallHeader { xid: 5, target, credentials };
            let mut to = Encoder::default();
            header.encode(&mut to);
            to.u32(0xdead_beef);
            let octets = to.into_octets();
            assert_eq!(CallHeader::parse(&octets), Ok((header, &[0xde, 0xad, 0xbe, 0xef][..])));
            for length in 0..octets.len() - 4 {
                assert!(CallHeader::parse(&octets[..length]).is_err());
            }
        }
    }

    #[test]
    fn what_cannot_be_served_is_told_apart() {
        let call = |version: u32, flavor: u32, body: &[u8]| {
            let mut to = Encoder::default();
            [3, CALL, version, 100_003, 3, 0, flavor].into_iter().for_each(|n| to.u32(n));
            to.opaque(body);
            to.value(&Credentials::None);
            to.into_octets()
        };
        assert_eq!(CallHeader::parse(&call(3, 0, b"")), Err(NotCall::Version { xid: 3 }));
        let auth = |why| Err(NotCall::Auth { xid: 3, why });
        assert_eq!(CallHeader::parse(&call(2, 6, b"")), auth(AuthError::REJECTED));
        assert_eq!(CallHeader::parse(&call(2, 1, b"abcd")).unwrap_err(), NotCall::Ignore);
        assert_eq!(CallHeader::parse(&call(2, 1, &[0; 24])), auth(AuthError::BAD_CREDENTIALS));
        assert_eq!(CallHeader::parse(&ReplyHeader::octets(3, ReplyStatus::Success)), Err(NotCall::Ignore));
    }

    #[test]
    fn replies_are_read_as_they_were_written() {
        for status in [
            ReplyStatus::Success,
            ReplyStatus::ProgramUnavailable,
            ReplyStatus::ProgramMismatch { low: 3, high: 3 },
            ReplyStatus::ProcedureUnavailable,
            ReplyStatus::GarbageArguments,
            ReplyStatus::SystemError,
            ReplyStatus::RpcMismatch { low: 2, high: 2 },
            ReplyStatus::Auth(AuthError::TOO_WEAK),
        ] {
            let octets = ReplyHeader::octets(9, status);
            assert_eq!(ReplyHeader::parse(&octets), Ok((ReplyHeader { xid: 9, status }, &[][..])));
            assert!((0..octets.len()).all(|length| ReplyHeader::parse(&octets[..length]).is_err()));
        }
    }
}
