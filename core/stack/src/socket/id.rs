//! Socket identifiers: one type for each kind of socket, and one for lists that hold any kind.

use core::fmt;
use inhost_base::Key;

/// Identifies a socket of any kind. The identifier of a closed socket finds nothing, ever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct SocketId(pub Key);

impl fmt::Display for SocketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.index())
    }
}

/// Defines the identifier of one kind of socket.
macro_rules! typed_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(Key);

        impl $name {
            /// Only for a key whose entry is of this kind.
            #[inline]
            pub(crate) const fn of(key: Key) -> $name {
                $name(key)
            }
            /// The key that events name the socket by.
            #[inline]
            pub const fn key(self) -> Key {
                self.0
            }
            /// The place in the socket table.
            #[inline]
            #[allow(dead_code)] // Not of every kind.
            pub(crate) const fn place(self) -> usize {
                self.0.index()
            }
        }
        impl From<$name> for SocketId {
            #[inline]
            fn from(id: $name) -> SocketId {
                SocketId(id.0)
            }
        }
        impl PartialEq<SocketId> for $name {
            fn eq(&self, other: &SocketId) -> bool {
                self.0 == other.0
            }
        }
        impl PartialEq<$name> for SocketId {
            fn eq(&self, other: &$name) -> bool {
                self.0 == other.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                SocketId(self.0).fmt(f)
            }
        }
    };
}

typed_id! {
    /// Identifies a TCP connection.
    ///
    /// A call for another kind of socket does not compile:
    ///
    /// ```compile_fail,E0308
    /// use inhost_base::{Endpoint, Instant, Ipv4Addr};
    /// use inhost_event::Ignore;
    /// use inhost_stack::{Stack, StackConfig, UdpOptions};
    ///
    /// let mut host = Stack::new(StackConfig::default(), [7; 32], Instant::ZERO);
    /// let local = Endpoint::new(Ipv4Addr::LOCALHOST, 7);
    /// let socket = host.udp(Instant::ZERO, &mut Ignore).bind(local, UdpOptions::default()).unwrap();
    /// host.tcp(Instant::ZERO, &mut Ignore).send(socket, b"hello").unwrap();
    /// ```
    TcpSocketId
}
typed_id! {
    /// Identifies a TCP listener.
    ListenerId
}
typed_id! {
    /// Identifies a UDP socket.
    UdpSocketId
}
typed_id! {
    /// Identifies an echo socket.
    EchoSocketId
}
typed_id! {
    /// Identifies a probe socket.
    ProbeSocketId
}

/// The typed identifier of a socket of any kind: see [`crate::Stack::typed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnySocketId {
    /// A TCP connection.
    Tcp(TcpSocketId),
    /// A TCP listener.
    Listener(ListenerId),
    /// A UDP socket.
    Udp(UdpSocketId),
    /// An echo socket.
    Echo(EchoSocketId),
    /// A probe socket.
    Probe(ProbeSocketId),
}

impl AnySocketId {
    /// The connection's identifier.
    pub fn tcp(self) -> Option<TcpSocketId> {
        match self {
            AnySocketId::Tcp(id) => Some(id),
            _ => None,
        }
    }
}

impl From<AnySocketId> for SocketId {
    #[inline]
    fn from(any: AnySocketId) -> SocketId {
        match any {
            AnySocketId::Tcp(id) => id.into(),
            AnySocketId::Listener(id) => id.into(),
            AnySocketId::Udp(id) => id.into(),
            AnySocketId::Echo(id) => id.into(),
            AnySocketId::Probe(id) => id.into(),
        }
    }
}
