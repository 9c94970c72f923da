//! The state table: which call and which indication is allowed in which state, and where it leads (XNS 5.2 §4, tables of
//! states and events). Pure; the endpoint asks it before it does anything.

use core::fmt;

/// The state of a transport endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// `T_UNINIT`: not opened, or closed.
    Uninit,
    /// `T_UNBND`: opened, without an address.
    Unbnd,
    /// `T_IDLE`: bound, without a connection.
    Idle,
    /// `T_OUTCON`: a call to the other end is not answered yet.
    Outcon,
    /// `T_INCON`: connect indications were received, and are not answered yet.
    Incon,
    /// `T_DATAXFER`: connected.
    Dataxfer,
    /// `T_OUTREL`: this end has released; the other end may still send.
    Outrel,
    /// `T_INREL`: the other end has released; this end may still send.
    Inrel,
}

impl State {
    /// Every state.
    pub const ALL: [State; 8] = [
        State::Uninit,
        State::Unbnd,
        State::Idle,
        State::Outcon,
        State::Incon,
        State::Dataxfer,
        State::Outrel,
        State::Inrel,
    ];

    /// Its name in the standard.
    pub const fn name(self) -> &'static str {
        match self {
            State::Uninit => "T_UNINIT",
            State::Unbnd => "T_UNBND",
            State::Idle => "T_IDLE",
            State::Outcon => "T_OUTCON",
            State::Incon => "T_INCON",
            State::Dataxfer => "T_DATAXFER",
            State::Outrel => "T_OUTREL",
            State::Inrel => "T_INREL",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What moves an endpoint from state to state: a call that succeeded, or an indication that was received. The names are the
/// standard's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// `t_open`.
    Opened,
    /// `t_bind`.
    Bind,
    /// `t_optmgmt`.
    Optmgmt,
    /// `t_unbind`.
    Unbind,
    /// `t_close`.
    Closed,
    /// `t_connect` that waited for the answer.
    Connect1,
    /// `t_connect` that did not wait, or that met a disconnect.
    Connect2,
    /// `t_accept` of the only indication, on the endpoint that listens.
    Accept1,
    /// `t_accept` of the only indication, on another endpoint.
    Accept2,
    /// `t_accept` of one of several indications, on another endpoint.
    Accept3,
    /// `t_snd`.
    Snd,
    /// `t_snddis` of a connection, a call, or the only indication.
    Snddis1,
    /// `t_snddis` of one of several indications.
    Snddis2,
    /// `t_sndrel`.
    Sndrel,
    /// `t_sndudata`.
    Sndudata,
    /// `t_rcvudata`.
    Rcvudata,
    /// `t_rcvuderr`.
    Rcvuderr,
    /// `t_rcvconnect`.
    Rcvconnect,
    /// `t_listen`.
    Listen,
    /// `t_rcv`.
    Rcv,
    /// `t_rcvdis` of a connection or a call.
    Rcvdis1,
    /// `t_rcvdis` of the only indication.
    Rcvdis2,
    /// `t_rcvdis` of one of several indications.
    Rcvdis3,
    /// `t_rcvrel`.
    Rcvrel,
    /// Another endpoint accepted a connection onto this one.
    PassConn,
}

impl Event {
    /// Every event.
    pub const ALL: [Event; 25] = [
        Event::Opened,
        Event::Bind,
        Event::Optmgmt,
        Event::Unbind,
        Event::Closed,
        Event::Connect1,
        Event::Connect2,
        Event::Accept1,
        Event::Accept2,
        Event::Accept3,
        Event::Snd,
        Event::Snddis1,
        Event::Snddis2,
        Event::Sndrel,
        Event::Sndudata,
        Event::Rcvudata,
        Event::Rcvuderr,
        Event::Rcvconnect,
        Event::Listen,
        Event::Rcv,
        Event::Rcvdis1,
        Event::Rcvdis2,
        Event::Rcvdis3,
        Event::Rcvrel,
        Event::PassConn,
    ];

    /// The event of a `t_accept` where `outstanding` indications wait.
    pub const fn accept(outstanding: usize, is_same_endpoint: bool) -> Event {
        match (outstanding, is_same_endpoint) {
            (0 | 1, true) => Event::Accept1,
            (0 | 1, false) => Event::Accept2,
            _ => Event::Accept3,
        }
    }
    /// The event of a `t_snddis` where `outstanding` indications wait.
    pub const fn snddis(outstanding: usize) -> Event {
        if outstanding > 1 { Event::Snddis2 } else { Event::Snddis1 }
    }
    /// The event of a `t_rcvdis` where `outstanding` indications wait.
    pub const fn rcvdis(outstanding: usize) -> Event {
        match outstanding {
            0 => Event::Rcvdis1,
            1 => Event::Rcvdis2,
            _ => Event::Rcvdis3,
        }
    }
}

/// The state with what it counts.
///
/// ```
/// use inhost_xti::{Event, Position, State};
///
/// let mut at = Position::default();
/// for event in [Event::Opened, Event::Bind, Event::Listen, Event::Listen] {
///     at = at.after(event).unwrap();
/// }
/// assert_eq!((at.state, at.outstanding), (State::Incon, 2));
/// assert_eq!(at.after(Event::Snd), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The state.
    pub state: State,
    /// Connect indications that were received and not answered: the standard's `ocnt`.
    pub outstanding: usize,
}

impl Default for Position {
    fn default() -> Self {
        Position { state: State::Uninit, outstanding: 0 }
    }
}

impl Position {
    /// Where `event` leads; `None` where the table has no entry.
    pub fn after(self, event: Event) -> Option<Position> {
        let Position { state, outstanding } = self;
        let fits = match event {
            Event::Accept1 | Event::Accept2 | Event::Rcvdis2 => outstanding == 1,
            Event::Accept3 | Event::Snddis2 | Event::Rcvdis3 => outstanding > 1,
            Event::Snddis1 => outstanding <= 1,
            Event::Rcvdis1 => outstanding == 0,
            _ => true,
        };
        let next = fits.then(|| next_state(state, event)).flatten()?;
        let outstanding = match event {
            Event::Listen => outstanding + 1,
            Event::Accept1 | Event::Accept2 | Event::Accept3 => outstanding - 1,
            Event::Snddis1 | Event::Snddis2 if state == State::Incon => outstanding - 1,
            Event::Rcvdis2 | Event::Rcvdis3 => outstanding - 1,
            Event::Bind | Event::Closed => 0,
            _ => outstanding,
        };
        Some(Position { state: next, outstanding })
    }
}

fn next_state(state: State, event: Event) -> Option<State> {
    use State::{Dataxfer, Idle, Incon, Inrel, Outcon, Outrel, Unbnd, Uninit};
    Some(match (event, state) {
        (Event::Opened, Uninit) => Unbnd,
        (_, Uninit) => return None,
        (Event::Bind, Unbnd) => Idle,
        (Event::Unbind, Idle) => Unbnd,
        (Event::Optmgmt, state) => state,
        (Event::Closed, _) => Uninit,
        (Event::Connect1, Idle) => Dataxfer,
        (Event::Connect2, Idle) => Outcon,
        (Event::Rcvconnect, Outcon) => Dataxfer,
        (Event::Listen, Idle | Incon) => Incon,
        (Event::Accept1, Incon) => Dataxfer,
        (Event::Accept2, Incon) => Idle,
        (Event::Accept3, Incon) => Incon,
        (Event::PassConn, Idle | Unbnd) => Dataxfer,
        (Event::Snd, Dataxfer | Inrel) | (Event::Rcv, Dataxfer | Outrel) => state,
        (Event::Snddis1, Outcon | Incon | Dataxfer | Outrel | Inrel) => Idle,
        (Event::Rcvdis1, Outcon | Dataxfer | Outrel | Inrel) => Idle,
        (Event::Snddis2 | Event::Rcvdis3, Incon) => Incon,
        (Event::Rcvdis2, Incon) => Idle,
        (Event::Sndrel, Dataxfer) => Outrel,
        (Event::Rcvrel, Dataxfer) => Inrel,
        (Event::Sndrel, Inrel) | (Event::Rcvrel, Outrel) => Idle,
        (Event::Sndudata | Event::Rcvudata | Event::Rcvuderr, Idle) => Idle,
        _ => return None,
    })
}
