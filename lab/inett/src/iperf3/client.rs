//! The client's end of a control connection.

use super::frame::{Inbox, json};
use super::{Cookie, Parameters, ProtocolError, RESULTS_MAX_BYTES, Results, State, Step};

/// What the client's driver is told.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ClientEvent {
    /// Open the streams: those that send first.
    OpenStreams,
    /// Open the connections of transactions; the test runs as soon as they are open.
    OpenTransactions,
    /// Every stream is open at the server: times count from here.
    Start,
    /// Send.
    Run,
    /// Say what was found: [`Client::results`].
    GiveResults,
    /// What the server found.
    Results(Results),
    /// The end; the connection may be closed once everything is sent.
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Connected,
    Parameters,
    Creating,
    Starting,
    Running,
    Ending,
    /// Our results are sent; the server's are awaited.
    Results,
    Displaying,
    Done,
    /// The server gave up and says why.
    Failing,
}

/// The client's end: bytes in, bytes and events out. Every call but [`Client::receive`] gives bytes to send.
#[derive(Debug)]
pub struct Client {
    phase: Phase,
    parameters: Parameters,
    inbox: Inbox,
}

impl Client {
    /// A client that is connected, and the first bytes to send.
    pub fn new(cookie: &Cookie, parameters: Parameters) -> (Client, Vec<u8>) {
        (Client { phase: Phase::Connected, parameters, inbox: Inbox::default() }, cookie.to_vec())
    }
    /// Takes what came from the server.
    ///
    /// # Errors
    /// When the server refuses, or says what has no place. The connection is then to be closed.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Step<ClientEvent>>, ProtocolError> {
        self.inbox.put(bytes);
        let mut steps = Vec::new();
        loop {
            let went = match self.phase {
                Phase::Results => self.take_results(&mut steps)?,
                Phase::Failing => match self.inbox.array::<8>() {
                    Some(words) => {
                        let word = |at: usize| i32::from_be_bytes([0, 1, 2, 3].map(|i| words[at + i]));
                        return Err(ProtocolError::Server { code: word(0), errno: word(4) });
                    }
                    None => false,
                },
                _ => match self.inbox.byte() {
                    Some(byte) => {
                        self.state(byte, &mut steps)?;
                        true
                    }
                    None => false,
                },
            };
            if !went {
                return Ok(steps);
            }
        }
    }
    fn state(&mut self, byte: u8, steps: &mut Vec<Step<ClientEvent>>) -> Result<(), ProtocolError> {
        let unexpected = ProtocolError::Unexpected { byte, phase: self.where_it_is() };
        let (phase, step) = match (self.phase, State::from_byte(byte).ok_or(unexpected.clone())?) {
            (Phase::Done, _) => return Err(unexpected),
            (_, State::AccessDenied) => return Err(ProtocolError::Busy),
            (_, State::ServerTerminate) => return Err(ProtocolError::ServerTerminated),
            (_, State::ServerError) => {
                self.phase = Phase::Failing;
                return Ok(());
            }
            (Phase::Connected, State::ParameterExchange) => {
                (Phase::Parameters, Step::Send(json(&self.parameters)))
            }
            (Phase::Parameters, State::CreateStreams) => match self.parameters.inett {
                Some(_) => return Err(ProtocolError::OnlyStreams),
                None => (Phase::Creating, Step::Event(ClientEvent::OpenStreams)),
            },
            (Phase::Parameters, State::Transactions) if self.parameters.inett.is_some() => {
                (Phase::Running, Step::Event(ClientEvent::OpenTransactions))
            }
            (Phase::Creating, State::TestStart) => (Phase::Starting, Step::Event(ClientEvent::Start)),
            (Phase::Starting, State::TestRunning) => (Phase::Running, Step::Event(ClientEvent::Run)),
            (Phase::Ending, State::ExchangeResults) => {
                (Phase::Results, Step::Event(ClientEvent::GiveResults))
            }
            (Phase::Displaying, State::DisplayResults) => {
                steps.push(Step::Send(vec![State::Done.byte()]));
                (Phase::Done, Step::Event(ClientEvent::Done))
            }
            _ => return Err(unexpected),
        };
        self.phase = phase;
        steps.push(step);
        Ok(())
    }
    fn take_results(&mut self, steps: &mut Vec<Step<ClientEvent>>) -> Result<bool, ProtocolError> {
        let Some(results) = self.inbox.json(RESULTS_MAX_BYTES, "results")? else { return Ok(false) };
        self.phase = Phase::Displaying;
        steps.push(Step::Event(ClientEvent::Results(results)));
        Ok(true)
    }
    /// The test is over: what to send.
    pub fn end(&mut self) -> Vec<u8> {
        self.phase = Phase::Ending;
        vec![State::TestEnd.byte()]
    }
    /// What this end found, after [`ClientEvent::GiveResults`].
    pub fn results(&mut self, results: &Results) -> Vec<u8> {
        json(results)
    }
    /// The user stops it: what to send before the connection is closed.
    pub fn terminate(&mut self) -> Vec<u8> {
        self.phase = Phase::Done;
        vec![State::ClientTerminate.byte()]
    }
    fn where_it_is(&self) -> &'static str {
        match self.phase {
            Phase::Connected => "after the cookie",
            Phase::Parameters => "after the parameters",
            Phase::Creating | Phase::Starting => "while streams are opened",
            Phase::Running => "during the test",
            Phase::Ending | Phase::Results => "at the end of the test",
            Phase::Displaying | Phase::Done | Phase::Failing => "after the results",
        }
    }
}
