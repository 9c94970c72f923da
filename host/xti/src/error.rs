//! Errors and events. One error type stands for `t_errno`: an endpoint's calls share it, as the standard has it.

use core::fmt;

use inhost_ip::RouteError;
use inhost_socket::errno::Errno;
use inhost_socket::{BindError, ConnectError, DatagramError, ListenError};
use inhost_stack as stack;

/// An event of an endpoint that a call must receive: what `t_look` gives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Look {
    /// `T_LISTEN`: a caller waits; `t_listen` receives it.
    Listen,
    /// `T_CONNECT`: the other end has answered; `t_rcvconnect` receives it.
    Connect,
    /// `T_DATA`: data came; `t_rcv` or `t_rcvudata` receives it.
    Data,
    /// `T_EXDATA`: urgent data is ahead; `t_rcv` receives it.
    ExpeditedData,
    /// `T_DISCONNECT`: a connection, a call or a connect indication was aborted; `t_rcvdis` receives it.
    Disconnect,
    /// `T_UDERR`: a datagram met an error; `t_rcvuderr` receives it.
    DatagramError,
    /// `T_ORDREL`: the other end has released, and its data was read; `t_rcvrel` receives it.
    OrderlyRelease,
    /// `T_GODATA`: there is room again after [`Error::Flow`].
    GoData,
}

impl Look {
    /// Its name in the standard.
    pub const fn name(self) -> &'static str {
        match self {
            Look::Listen => "T_LISTEN",
            Look::Connect => "T_CONNECT",
            Look::Data => "T_DATA",
            Look::ExpeditedData => "T_EXDATA",
            Look::Disconnect => "T_DISCONNECT",
            Look::DatagramError => "T_UDERR",
            Look::OrderlyRelease => "T_ORDREL",
            Look::GoData => "T_GODATA",
        }
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a call failed: the values of `t_errno` that can come. Flags, options and structures have types here, so
/// `TBADFLAG`, `TBADOPT`, `TBUFOVFLW` and `TNOSTRUCTYPE` cannot come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// `TBADADDR`: the address cannot be bound or called.
    BadAddress,
    /// `TNOADDR`: the host has no address or port left to give.
    NoAddress,
    /// `TADDRBUSY`: the address, or the pair of addresses, is in use.
    AddressBusy,
    /// `TBADF`: the endpoint is closed.
    BadEndpoint,
    /// `TBADNAME`: no transport provider has this name.
    BadName,
    /// `TOUTSTATE`: the state does not allow this call.
    OutState,
    /// `TLOOK`: an event has to be received first.
    Look(Look),
    /// `TNODATA`: nothing is there yet, and the call does not wait.
    NoData,
    /// `TFLOW`: there is no room yet, and the call does not wait.
    Flow,
    /// `TNODIS`: no disconnect is there to receive.
    NoDisconnect,
    /// `TNOREL`: no orderly release is there to receive.
    NoRelease,
    /// `TNOUDERR`: no datagram met an error.
    NoDatagramError,
    /// `TBADDATA`: no bytes to send, or more than fit a datagram.
    BadData,
    /// `TBADSEQ`: no outstanding indication has this number.
    BadSequence,
    /// `TBADQLEN`: the endpoint was bound without a queue of indications.
    BadQueueLength,
    /// `TQFULL`: as many indications are outstanding as the queue is long.
    QueueFull,
    /// `TINDOUT`: other indications are outstanding, and the connection would take their endpoint.
    IndicationsOutstanding,
    /// `TRESQLEN`: the endpoint that would take the connection has a queue of its own.
    ResponderQueueLength,
    /// `TPROVMISMATCH`: the two endpoints are not of the same provider.
    ProviderMismatch,
    /// `TNOTSUPPORT`: the provider does not have this call.
    NotSupported,
    /// `TSTATECHNG`: a call of another task is about to change the state.
    StateChanging,
    /// `TSYSERR`: the system failed, with this number.
    System(i32),
}

impl Error {
    /// Its name in the standard.
    pub const fn name(self) -> &'static str {
        match self {
            Error::BadAddress => "TBADADDR",
            Error::NoAddress => "TNOADDR",
            Error::AddressBusy => "TADDRBUSY",
            Error::BadEndpoint => "TBADF",
            Error::BadName => "TBADNAME",
            Error::OutState => "TOUTSTATE",
            Error::Look(_) => "TLOOK",
            Error::NoData => "TNODATA",
            Error::Flow => "TFLOW",
            Error::NoDisconnect => "TNODIS",
            Error::NoRelease => "TNOREL",
            Error::NoDatagramError => "TNOUDERR",
            Error::BadData => "TBADDATA",
            Error::BadSequence => "TBADSEQ",
            Error::BadQueueLength => "TBADQLEN",
            Error::QueueFull => "TQFULL",
            Error::IndicationsOutstanding => "TINDOUT",
            Error::ResponderQueueLength => "TRESQLEN",
            Error::ProviderMismatch => "TPROVMISMATCH",
            Error::NotSupported => "TNOTSUPPORT",
            Error::StateChanging => "TSTATECHNG",
            Error::System(_) => "TSYSERR",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Error::BadAddress => "the address cannot be used",
            Error::NoAddress => "no address or port is free",
            Error::AddressBusy => "the address is in use",
            Error::BadEndpoint => "the endpoint is closed",
            Error::BadName => "no transport provider has this name",
            Error::OutState => "the state does not allow this call",
            Error::Look(event) => return write!(f, "{event} has to be received first (TLOOK)"),
            Error::NoData => "nothing is there yet",
            Error::Flow => "there is no room yet",
            Error::NoDisconnect => "no disconnect is there",
            Error::NoRelease => "no orderly release is there",
            Error::NoDatagramError => "no datagram met an error",
            Error::BadData => "the number of bytes is not allowed",
            Error::BadSequence => "no outstanding indication has this number",
            Error::BadQueueLength => "the endpoint has no queue of indications",
            Error::QueueFull => "the queue of indications is full",
            Error::IndicationsOutstanding => "other indications are outstanding",
            Error::ResponderQueueLength => "the other endpoint has a queue of its own",
            Error::ProviderMismatch => "the endpoints have different providers",
            Error::NotSupported => "the provider does not have this call",
            Error::StateChanging => "the state is changing",
            Error::System(number) => return write!(f, "the system failed with error {number} (TSYSERR)"),
        };
        write!(f, "{text} ({})", self.name())
    }
}
impl core::error::Error for Error {}

impl From<ListenError> for Error {
    fn from(why: ListenError) -> Self {
        match why {
            ListenError::Bind(BindError::InUse) => Error::AddressBusy,
            ListenError::Bind(BindError::NotOurs) => Error::BadAddress,
            ListenError::Bind(BindError::NoPort) => Error::NoAddress,
            why => Error::System(why.errno()),
        }
    }
}

impl Error {
    /// Why a call was not begun.
    pub(crate) fn of_call(why: &ConnectError) -> Error {
        match why {
            ConnectError::Begin(
                stack::ConnectError::BadRemote | stack::ConnectError::Route(RouteError::BadDestination),
            ) => Error::BadAddress,
            ConnectError::Begin(stack::ConnectError::InUse) => Error::AddressBusy,
            ConnectError::Begin(stack::ConnectError::NoPort) => Error::NoAddress,
            why => Error::System(why.errno()),
        }
    }
    /// Why a datagram was not sent. An error of an earlier one is not among them: it is a `T_UDERR`.
    pub(crate) fn of_datagram(why: &DatagramError) -> Error {
        match why {
            DatagramError::Stack(stack::DatagramError::TooLong) => Error::BadData,
            DatagramError::Stack(
                stack::DatagramError::NoDestination
                | stack::DatagramError::Broadcast
                | stack::DatagramError::Route(RouteError::BadDestination),
            ) => Error::BadAddress,
            why => Error::System(why.errno()),
        }
    }
}
