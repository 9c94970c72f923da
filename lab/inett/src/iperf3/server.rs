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
enum Phase {
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
    phase: Phase,
    cookie: Cookie,
    inbox: Inbox,
}

impl Default for Server {
    fn default() -> Self {
        Server { phase: Phase::Cookie, cookie: [0; COOKIE_BYTES], inbox: Inbox::default() }
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
        match self.phase {
            Phase::Cookie => {
                let Some(cookie) = self.inbox.array() else { return Ok(false) };
                self.cookie = cookie;
                self.phase = Phase::Parameters;
                steps.push(Step::Send(vec![State::ParameterExchange.byte()]));
            }
            Phase::Parameters => {
                let Some(parameters) = self.inbox.json(PARAMETERS_MAX_BYTES, "parameters")? else {
                    return Ok(false);
                };
                self.phase = Phase::Deciding;
                steps.push(Step::Event(ServerEvent::Parameters(Box::new(parameters))));
            }
            Phase::Results => {
                let Some(results) = self.inbox.json(RESULTS_MAX_BYTES, "results")? else { return Ok(false) };
                self.phase = Phase::Giving;
                steps.push(Step::Event(ServerEvent::Results(results)));
            }
            _ => {
                let Some(byte) = self.inbox.byte() else { return Ok(false) };
                self.state(byte, steps)?;
            }
        }
        Ok(true)
    }
    fn state(&mut self, byte: u8, steps: &mut Vec<Step<ServerEvent>>) -> Result<(), ProtocolError> {
        let unexpected = ProtocolError::Unexpected { byte, phase: self.where_it_is() };
        match (self.phase, State::from_byte(byte).ok_or(unexpected.clone())?) {
            (Phase::Done, _) => return Err(unexpected),
            (_, State::ClientTerminate) => {
                self.phase = Phase::Done;
                steps.push(Step::Event(ServerEvent::Terminated));
            }
            // iperf3 has a meaning for it, and does nothing.
            (Phase::Creating | Phase::Running, State::TestStart) => {}
            (Phase::Running, State::TestEnd) => {
                self.phase = Phase::Results;
                steps.push(Step::Event(ServerEvent::End));
                steps.push(Step::Send(vec![State::ExchangeResults.byte()]));
            }
            (Phase::Displaying, State::Done) => {
                self.phase = Phase::Done;
                steps.push(Step::Event(ServerEvent::Done));
            }
            _ => return Err(unexpected),
        }
        Ok(())
    }
    /// The parameters are taken; streams, or connections of transactions, may come.
    pub fn accept(&mut self, are_transactions: bool) -> Vec<u8> {
        let (phase, state) = match are_transactions {
            true => (Phase::Running, State::Transactions),
            false => (Phase::Creating, State::CreateStreams),
        };
        self.phase = phase;
        vec![state.byte()]
    }
    /// The test cannot be, or cannot go on; the connection is then to be closed.
    pub fn refuse(&mut self, code: i32, errno: i32) -> Vec<u8> {
        self.phase = Phase::Done;
        let mut bytes = vec![State::ServerError.byte()];
        bytes.extend_from_slice(&code.to_be_bytes());
        bytes.extend_from_slice(&errno.to_be_bytes());
        bytes
    }
    /// Every stream is open: the test starts.
    pub fn start(&mut self) -> Vec<u8> {
        self.phase = Phase::Running;
        vec![State::TestStart.byte(), State::TestRunning.byte()]
    }
    /// What this end found, after [`ServerEvent::Results`].
    pub fn results(&mut self, results: &Results) -> Vec<u8> {
        self.phase = Phase::Displaying;
        let mut bytes = json(results);
        bytes.push(State::DisplayResults.byte());
        bytes
    }
    /// The server is stopped; the connection is then to be closed.
    pub fn terminate(&mut self) -> Vec<u8> {
        self.phase = Phase::Done;
        vec![State::ServerTerminate.byte()]
    }
    fn where_it_is(&self) -> &'static str {
        match self.phase {
            Phase::Cookie | Phase::Parameters | Phase::Deciding => "before the parameters are answered",
            Phase::Creating => "while streams are opened",
            Phase::Running => "during the test",
            Phase::Results | Phase::Giving | Phase::Displaying | Phase::Done => "at the end of the test",
        }
    }
}
