//! The causes of waiting: the rows of a connection's two time ledgers.

use core::fmt;

macro_rules! causes {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// Every cause, in the order of display.
            pub const ALL: &[$name] = &[$($name::$variant),*];
            /// How many causes there are.
            pub const COUNT: usize = $name::ALL.len();
            /// The cause in words, as instruments print it.
            pub const fn text(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.text())
            }
        }
    };
}

causes! {
    /// Why the sending side of a connection is not sending more right now. At each moment exactly one holds.
    SendCause {
        /// The three-way handshake is not done.
        #[default]
        Opening => "opening",
        /// The application has given nothing to send, and nothing is unacknowledged.
        ApplicationIdle => "application idle",
        /// What may be sent is sent; its acknowledgment is awaited.
        AwaitingAcknowledgment => "awaiting acknowledgment",
        /// The peer's window is open but full.
        ReceiverWindow => "receiver's window",
        /// The peer closed its window.
        ClosedWindow => "closed window",
        /// The congestion window is full.
        CongestionWindow => "congestion window",
        /// The pacer holds the next segment back.
        Pacing => "pacing",
        /// A loss was detected and is being repaired.
        LossRecovery => "loss recovery",
        /// A retransmission time-out expired and its repair is not acknowledged yet, or the timer is backing off.
        Timeout => "time-out",
        /// Too little data for a full segment: Nagle, cork or sender-side silly-window avoidance waits for more.
        SmallData => "gathering small data",
        /// The send buffer is full, or no buffer memory is left.
        SendBuffer => "send buffer",
        /// The link, or the neighbour's address, is waited for.
        Link => "waiting for the link",
        /// Our side is closed and acknowledged: nothing is left to send.
        Closed => "closed",
    }
}

causes! {
    /// Why the receiving side of a connection is not delivering more right now. At each moment exactly one holds.
    ReceiveCause {
        /// The three-way handshake is not done.
        #[default]
        Opening => "opening",
        /// Everything that came was delivered; the peer sends nothing.
        AwaitingData => "waiting for data",
        /// Data waits for the application to read it, and the window is open.
        ApplicationSlow => "data waiting for the application",
        /// The application has not read, and our window is closed for it.
        WindowClosed => "our window closed",
        /// Out-of-order data waits for the missing bytes.
        Hole => "hole in the data",
        /// The peer has closed its side and everything was delivered.
        Closed => "closed",
    }
}
