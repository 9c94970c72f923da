//! The server's end of a control connection.

use super::frame::{Inbox, json};
use super::{
    COOKIE_BYTES, Cookie, PARAMETERS_MAX_BYTES, Parameters, ProtocolError, RESULTS_MAX_BYTES, Results, State,
    Step,
};

/// What the server's driver is told.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ServerEvent {
    /// What the client asks for: answer with [`Server::accept`] or [`Server::refuse`].
    Parameters(Box<Parameters>),
    /// The client ends the test; nothing more is to be sent or counted.
    End,
    /// What the client found: answer with [`Server::results`].
    Results(Results),
    /// The end.
    Done,
    /// The client's user stopped it.
    Terminated,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ServerState {
    Cookie,
    Parameters,
    /// The driver has the parameters and decides.
    Deciding,
    Creating,
    Running,
    Results,
    /// The driver has the client's results and gives its own.
    Giving,
    Displaying,
    Done,
}

/// The server's end: bytes in, bytes and events out. Every call but [`Server::receive`] gives bytes to send.
#[derive(Debug)]
pub struct Server {
    state: ServerState,
    cookie: Cookie,
    inbox: Inbox,
}

impl Default for Server {
    fn default() -> Self {
        Server { state: ServerState::Cookie, cookie: [0; COOKIE_BYTES], inbox: Inbox::default() }
    }
}

impl Server {
    /// The client's cookie, with which its streams begin.
    pub fn cookie(&self) -> &Cookie {
        &self.cookie
    }
    /// Takes what came from the client.
    ///
    /// # Errors
    /// When the client says what has no place. The connection is then to be closed.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Step<ServerEvent>>, ProtocolError> {
        self.inbox.put(bytes);
        let mut steps = Vec::new();
        while self.step(&mut steps)? {}
        Ok(steps)
    }
    fn step(&mut self, steps: &mut Vec<Step<ServerEvent>>) -> Result<bool, ProtocolError> {
        match self.state {
            ServerState::Cookie => {
                let Some(cookie) = self.inbox.array() else { return Ok(false) };
                self.cookie = cookie;
                self.state = ServerState::Parameters;
                steps.push(Step::Send(vec![State::ParameterExchange.byte()]));
            }
            ServerState::Parameters => {
                let Some(parameters) = self.inbox.json(PARAMETERS_MAX_BYTES, "parameters")? else {
                    return Ok(false);
                };
                self.state = ServerState::Deciding;
                steps.push(Step::Event(ServerEvent::Parameters(Box::new(parameters))));
            }
            ServerState::Results => {
                let Some(results) = self.inbox.json(RESULTS_MAX_BYTES, "results")? else { return Ok(false) };
                self.state = ServerState::Giving;
                steps.push(Step::Event(ServerEvent::Results(results)));
            }
            _ => {
                let Some(byte) = self.inbox.byte() else { return Ok(false) };
                self.take_state(byte, steps)?;
            }
        }
        Ok(true)
    }
    fn take_state(&mut self, byte: u8, steps: &mut Vec<Step<ServerEvent>>) -> Result<(), ProtocolError> {
        let unexpected = ProtocolError::Unexpected { byte, state: self.where_it_is() };
        match (self.state, State::from_byte(byte).ok_or(unexpected.clone())?) {
            (ServerState::Done, _) => return Err(unexpected),
            (_, State::ClientTerminate) => {
                self.state = ServerState::Done;
                steps.push(Step::Event(ServerEvent::Terminated));
            }
            // iperf3 has a meaning for it, and does nothing.
            (ServerState::Creating | ServerState::Running, State::TestStart) => {}
            (ServerState::Running, State::TestEnd) => {
                self.state = ServerState::Results;
                steps.push(Step::Event(ServerEvent::End));
                steps.push(Step::Send(vec![State::ExchangeResults.byte()]));
            }
            (ServerState::Displaying, State::Done) => {
                self.state = ServerState::Done;
                steps.push(Step::Event(ServerEvent::Done));
            }
            _ => return Err(unexpected),
        }
        Ok(())
    }
    /// The parameters are taken; streams, or connections of transactions, may come.
    pub fn accept(&mut self, are_transactions: bool) -> Vec<u8> {
        let (state, said) = match are_transactions {
            true => (ServerState::Running, State::Transactions),
            false => (ServerState::Creating, State::CreateStreams),
        };
        self.state = state;
        vec![said.byte()]
    }
    /// The test cannot be, or cannot go on; the connection is then to be closed.
    pub fn refuse(&mut self, code: i32, errno: i32) -> Vec<u8> {
        self.state = ServerState::Done;
        let mut bytes = vec![State::ServerError.byte()];
        bytes.extend_from_slice(&code.to_be_bytes());
        bytes.extend_from_slice(&errno.to_be_bytes());
        bytes
    }
    /// Every stream is open: the test starts.
    pub fn start(&mut self) -> Vec<u8> {
        self.state = ServerState::Running;
        vec![State::TestStart.byte(), State::TestRunning.byte()]
    }
    /// What this end found, after [`ServerEvent::Results`].
    pub fn results(&mut self, results: &Results) -> Vec<u8> {
        self.state = ServerState::Displaying;
        let mut bytes = json(results);
        bytes.push(State::DisplayResults.byte());
        bytes
    }
    /// The server is stopped; the connection is then to be closed.
    pub fn terminate(&mut self) -> Vec<u8> {
        self.state = ServerState::Done;
        vec![State::ServerTerminate.byte()]
    }
    fn where_it_is(&self) -> &'static str {
        match self.state {
            ServerState::Cookie | ServerState::Parameters | ServerState::Deciding => {
                "before the parameters are answered"
            }
            ServerState::Creating => "while streams are opened",
            ServerState::Running => "during the test",
            ServerState::Results | ServerState::Giving | ServerState::Displaying | ServerState::Done => {
                "at the end of the test"
            }
        }
    }
}
