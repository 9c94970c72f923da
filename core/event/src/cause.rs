//! The causes of waiting, and the two ledgers of a connection's time, whose rows they are.

use core::fmt;
use inhost_base::Duration;

macro_rules! causes {
    ($(#[$doc:meta])* $name:ident in $(#[$ledger_doc:meta])* $ledger:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)* }) => {
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

        $(#[$ledger_doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
        pub struct $ledger([Duration; $name::COUNT]);

        impl $ledger {
            /// Time spent on `cause`.
            pub fn of(&self, cause: $name) -> Duration {
                self.0[cause as usize]
            }
            /// `time` more was spent on `cause`.
            pub fn add(&mut self, cause: $name, time: Duration) {
                self.0[cause as usize] += time;
            }
            /// The times by cause, in the order of display.
            pub fn times(&self) -> [Duration; $name::COUNT] {
                self.0
            }
            /// Every cause with its time, in the order of display.
            pub fn iter(&self) -> impl Iterator<Item = ($name, Duration)> + '_ {
                $name::ALL.iter().map(|&cause| (cause, self.of(cause)))
            }
            /// All of it: the connection's age.
            pub fn total(&self) -> Duration {
                self.0.iter().fold(Duration::ZERO, |sum, &time| sum + time)
            }
        }
    };
}

causes! {
    /// Why the sending side of a connection is not sending more right now. At each moment exactly one holds.
    SendCause in
    /// Time by cause of the sending side.
    SendLedger {
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
    ReceiveCause in
    /// Time by cause of the receiving side.
    ReceiveLedger {
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

/// Both ledgers as they stand at one instant. Each sums to the connection's age.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Ledgers {
    /// Of the sending side.
    pub send: SendLedger,
    /// Of the receiving side.
    pub receive: ReceiveLedger,
}
