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
enum ClientState {
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
    state: ClientState,
    parameters: Parameters,
    inbox: Inbox,
}

impl Client {
    /// A client that is connected, and the first bytes to send.
    pub fn new(cookie: &Cookie, parameters: Parameters) -> (Client, Vec<u8>) {
        (Client { state: ClientState::Connected, parameters, inbox: Inbox::default() }, cookie.to_vec())
    }
    /// Takes what came from the server.
    ///
    /// # Errors
    /// When the server refuses, or says what has no place. The connection is then to be closed.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Step<ClientEvent>>, ProtocolError> {
        self.inbox.put(bytes);
        let mut steps = Vec::new();
        loop {
            let went = match self.state {
                ClientState::Results => self.take_results(&mut steps)?,
                ClientState::Failing => match self.inbox.array::<8>() {
                    Some(words) => {
                        let word = |at: usize| i32::from_be_bytes([0, 1, 2, 3].map(|i| words[at + i]));
                        return Err(ProtocolError::Server { code: word(0), errno: word(4) });
                    }
                    None => false,
                },
                _ => match self.inbox.byte() {
                    Some(byte) => {
                        self.take_state(byte, &mut steps)?;
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
    fn take_state(&mut self, byte: u8, steps: &mut Vec<Step<ClientEvent>>) -> Result<(), ProtocolError> {
        let unexpected = ProtocolError::Unexpected { byte, state: self.where_it_is() };
        let (state, step) = match (self.state, State::from_byte(byte).ok_or(unexpected.clone())?) {
            (ClientState::Done, _) => return Err(unexpected),
            (_, State::AccessDenied) => return Err(ProtocolError::Busy),
            (_, State::ServerTerminate) => return Err(ProtocolError::ServerTerminated),
            (_, State::ServerError) => {
                self.state = ClientState::Failing;
                return Ok(());
            }
            (ClientState::Connected, State::ParameterExchange) => {
                (ClientState::Parameters, Step::Send(json(&self.parameters)))
            }
            (ClientState::Parameters, State::CreateStreams) => match self.parameters.inett {
                Some(_) => return Err(ProtocolError::OnlyStreams),
                None => (ClientState::Creating, Step::Event(ClientEvent::OpenStreams)),
            },
            (ClientState::Parameters, State::Transactions) if self.parameters.inett.is_some() => {
                (ClientState::Running, Step::Event(ClientEvent::OpenTransactions))
            }
            (ClientState::Creating, State::TestStart) => {
                (ClientState::Starting, Step::Event(ClientEvent::Start))
            }
            (ClientState::Starting, State::TestRunning) => {
                (ClientState::Running, Step::Event(ClientEvent::Run))
            }
            (ClientState::Ending, State::ExchangeResults) => {
                (ClientState::Results, Step::Event(ClientEvent::GiveResults))
            }
            (ClientState::Displaying, State::DisplayResults) => {
                steps.push(Step::Send(vec![State::Done.byte()]));
                (ClientState::Done, Step::Event(ClientEvent::Done))
            }
            _ => return Err(unexpected),
        };
        self.state = state;
        steps.push(step);
        Ok(())
    }
    fn take_results(&mut self, steps: &mut Vec<Step<ClientEvent>>) -> Result<bool, ProtocolError> {
        let Some(results) = self.inbox.json(RESULTS_MAX_BYTES, "results")? else { return Ok(false) };
        self.state = ClientState::Displaying;
        steps.push(Step::Event(ClientEvent::Results(results)));
        Ok(true)
    }
    /// The test is over: what to send.
    pub fn end(&mut self) -> Vec<u8> {
        self.state = ClientState::Ending;
        vec![State::TestEnd.byte()]
    }
    /// What this end found, after [`ClientEvent::GiveResults`].
    pub fn results(&mut self, results: &Results) -> Vec<u8> {
        json(results)
    }
    /// The user stops it: what to send before the connection is closed.
    pub fn terminate(&mut self) -> Vec<u8> {
        self.state = ClientState::Done;
        vec![State::ClientTerminate.byte()]
    }
    fn where_it_is(&self) -> &'static str {
        match self.state {
            ClientState::Connected => "after the cookie",
            ClientState::Parameters => "after the parameters",
            ClientState::Creating | ClientState::Starting => "while streams are opened",
            ClientState::Running => "during the test",
            ClientState::Ending | ClientState::Results => "at the end of the test",
            ClientState::Displaying | ClientState::Done | ClientState::Failing => "after the results",
        }
    }
}
