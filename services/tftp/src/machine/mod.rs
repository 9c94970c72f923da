//! One transfer, as either end has it.

mod receiver;
mod sender;
pub(crate) mod timer;

mod outcome;
mod settings;

use std::collections::VecDeque;

use inhost_base::{Endpoint, Instant};

use crate::codec::options::{Limits, Options, Terms};
use crate::codec::{ErrorCode, Mode, Packet, Request};
use crate::machine::receiver::{Arrived, Receiver};
use crate::machine::sender::{Acknowledged, Sender};
use crate::machine::timer::Timer;

pub use outcome::{Summary, TransferError};
pub use settings::Settings;

/// Strangers whose packets are answered; a longer transfer has no more to say to them.
const UNKNOWN_PEERS_LIMIT: usize = 64;
/// Answers to unknown peers that wait to be sent.
const ANSWERS_LIMIT: usize = 4;
/// Datagrams that no request of ours calls for are longer than this answer; it makes nobody's flood.
const WRONG_PORT: &str = "This port belongs to another transfer";

/// State of the transfer.
#[derive(Debug)]
enum Phase {
    /// The client has asked, and nobody has answered.
    Asking,
    /// The server has told the options of a read request, and waits for ACK 0.
    Offering,
    /// Blocks go.
    Sending(Sender),
    /// Blocks come.
    Receiving(Receiver),
    /// All have come; the file gets its name before the last is acknowledged.
    Storing(Receiver),
    /// All are acknowledged; the sender may ask for that again (RFC 1350 §6).
    Dallying(Receiver),
    /// Nothing more is said.
    Over,
}

/// One transfer. It is driven, and knows neither socket nor clock nor file.
///
/// In: [`datagram`](Transfer::datagram) for all that comes to its port, [`timeout`](Transfer::timeout) at
/// [`deadline`](Transfer::deadline) or whenever, [`supply`](Transfer::supply) with the file's octets while
/// [`wants`](Transfer::wants) says so, and [`stored`](Transfer::stored) when the file that came is kept.
///
/// Out: [`transmit`](Transfer::transmit) until it has nothing, after every call in; [`file`](Transfer::file), the octets
/// that came; [`is_whole`](Transfer::is_whole), which asks for the file to be kept; [`outcome`](Transfer::outcome), which
/// may stand before [`is_over`](Transfer::is_over) says that nothing has to be sent or answered any more. Every call may
/// be spurious.
#[derive(Debug)]
pub struct Transfer {
    peer: Endpoint,
    /// Whether the peer's port is known for good.
    is_met: bool,
    request: Request,
    settings: Settings,
    agreed: Options,
    phase: Phase,
    timer: Timer,
    /// When the last packet was sent that waits for the first answer, if once.
    asked: Option<Instant>,
    /// The opening packet is due.
    opens: bool,
    answers: VecDeque<(Endpoint, Vec<u8>)>,
    unknown_peers: usize,
    outcome: Option<Result<Summary, TransferError>>,
}

impl Transfer {
    /// A client's: `request` goes to `server`, and what answers from there belongs to it.
    pub fn ask(request: Request, server: Endpoint, settings: Settings, now: Instant) -> Transfer {
        let timer = Timer::new(settings.give_up_after, now);
        Transfer::new(request, server, settings, Phase::Asking, timer)
    }
    /// A server's: `request` came from `client` and can be met. `size_bytes` is what the file to be read has.
    pub fn answer(
        request: Request,
        client: Endpoint,
        size_bytes: Option<u64>,
        limits: &Limits,
        settings: Settings,
        now: Instant,
    ) -> Transfer {
        // A peer known by one datagram only may be forged.
        let timer = Timer::new(settings.give_up_after.min(settings::UNMET_GIVE_UP_AFTER), now);
        let known = size_bytes.filter(|_| request.mode == Mode::Octet);
        let agreed = request.options.grant(limits, known, request.is_write);
        let terms = Terms::new(&agreed, settings.rollover);
        let phase = match (request.is_write, agreed.is_empty()) {
            (true, _) => Phase::Receiving(Receiver::new(&terms, request.mode)),
            (false, true) => Phase::Sending(Sender::new(&terms, request.mode, now)),
            (false, false) => Phase::Offering,
        };
        let mut transfer = Transfer::new(request, client, settings, phase, timer);
        transfer.is_met = true;
        transfer.agreed = agreed;
        transfer.timer.agree(terms.timeout);
        transfer
    }
    fn new(request: Request, peer: Endpoint, settings: Settings, phase: Phase, timer: Timer) -> Transfer {
        Transfer {
            peer,
            is_met: false,
            request,
            settings,
            agreed: Options::default(),
            opens: !matches!(phase, Phase::Sending(_)),
            phase,
            timer,
            asked: None,
            answers: VecDeque::new(),
            unknown_peers: 0,
            outcome: None,
        }
    }

    /// Takes a datagram that came to this transfer's port.
    pub fn datagram(&mut self, from: Endpoint, bytes: &[u8], now: Instant) {
        let is_peer = if self.is_met { from == self.peer } else { from.address == self.peer.address };
        let Ok(packet) = Packet::parse(bytes) else { return };
        if !is_peer {
            // RFC 1350 §4: a packet from another port is answered, and disturbs nothing.
            if !matches!(packet, Packet::Error(..)) && self.unknown_peers < UNKNOWN_PEERS_LIMIT {
                self.unknown_peers += 1;
                self.say_to(from, ErrorCode::UNKNOWN_TRANSFER, WRONG_PORT);
            }
            return;
        }
        match packet {
            Packet::Error(code, message) => self.error_received(from, code, message),
            Packet::OptionAck(options) => self.options(from, &options, now),
            Packet::Data(block, data) => self.data(from, block, data, now),
            Packet::Ack(block) => self.acknowledged(from, block, now),
            // The peer repeated itself; the lost packet is retransmitted at the time-out.
            Packet::Request(_) => {}
        }
    }
    /// The first answer has come from here.
    fn meet(&mut self, from: Endpoint, now: Instant) {
        (self.peer, self.is_met, self.opens) = (from, true, false);
        if let Some(asked) = self.asked.take() {
            self.timer.sample(now.since(asked));
        }
        self.timer.progress(now);
        self.timer.stop();
    }
    fn error_received(&mut self, from: Endpoint, code: ErrorCode, message: String) {
        let options_are_wrong = matches!(code, ErrorCode::OPTIONS | ErrorCode::ILLEGAL);
        if matches!(self.phase, Phase::Asking) && options_are_wrong && !self.request.options.is_empty() {
            // RFC 2347: without them, then; there are servers that know of none.
            self.request.options = Options::default();
            (self.opens, self.asked) = (true, None);
            self.timer.stop();
            return;
        }
        match self.phase {
            // The last block is kept and acknowledged; what is said now changes nothing.
            Phase::Dallying(_) => self.phase = Phase::Over,
            Phase::Over => {}
            _ => self.end(Err(TransferError::Refused { from, code, message })),
        }
    }
    fn options(&mut self, from: Endpoint, options: &Options, now: Instant) {
        match &mut self.phase {
            Phase::Asking => {
                if !self.request.options.allow(options) {
                    self.meet(from, now);
                    return self.refuse(ErrorCode::OPTIONS, "These options were not asked for");
                }
                self.meet(from, now);
                self.agreed = *options;
                self.begin(now);
            }
            // Our ACK 0 was lost.
            Phase::Receiving(receiver)
                if receiver.is_fresh() && !self.request.is_write && !self.agreed.is_empty() =>
            {
                self.opens = true;
            }
            _ => {}
        }
    }
    /// The client knows what holds.
    fn begin(&mut self, now: Instant) {
        let terms = Terms::new(&self.agreed, self.settings.rollover);
        self.timer.agree(terms.timeout);
        if self.request.is_write {
            self.phase = Phase::Sending(Sender::new(&terms, self.request.mode, now));
            return;
        }
        if terms.size_bytes.is_some_and(|bytes| bytes > self.settings.size_limit_bytes) {
            return self.refuse(ErrorCode::FULL, "The file is longer than this end takes");
        }
        self.phase = Phase::Receiving(Receiver::new(&terms, self.request.mode));
        self.opens = !self.agreed.is_empty();
    }
    fn data(&mut self, from: Endpoint, block: u16, data: &[u8], now: Instant) {
        if matches!(self.phase, Phase::Asking) && !self.request.is_write && block == 1 {
            // The server has no options, or wants none.
            self.meet(from, now);
            self.begin(now);
        }
        if let Phase::Dallying(receiver) = &mut self.phase {
            return receiver.after_the_last(block);
        }
        let Phase::Receiving(receiver) = &mut self.phase else { return };
        let was_fresh = receiver.is_fresh();
        match receiver.data(block, data, &mut self.timer, now) {
            Arrived::Nothing => {}
            Arrived::TooLong => self.refuse(ErrorCode::ILLEGAL, "The block is longer than was agreed on"),
            Arrived::Next | Arrived::Last if receiver.file_bytes > self.settings.size_limit_bytes => {
                self.refuse(ErrorCode::FULL, "The file is longer than this end takes");
            }
            Arrived::Next => self.opened(was_fresh, now),
            Arrived::Last => {
                let (announced, arrived) = (self.agreed.transfer_size, receiver.file_bytes);
                self.opened(was_fresh, now);
                // RFC 2349: in text the sizes of the two ends may differ.
                if let Some(announced) = announced.filter(|&announced| announced != arrived)
                    && self.request.mode == Mode::Octet
                {
                    self.say_to(self.peer, ErrorCode::OTHER, "The file has not the size that tsize said");
                    return self.end(Err(TransferError::Size { announced, arrived }));
                }
                if let Phase::Receiving(receiver) = std::mem::replace(&mut self.phase, Phase::Over) {
                    self.phase = Phase::Storing(receiver);
                }
            }
        }
    }
    /// The opening exchange is complete: the peer's address is verified.
    fn opened(&mut self, is_first: bool, now: Instant) {
        if !is_first {
            return;
        }
        self.opens = false;
        if let Some(asked) = self.asked.take() {
            self.timer.sample(now.since(asked));
        }
        self.timer.trust(self.settings.give_up_after);
    }
    fn acknowledged(&mut self, from: Endpoint, block: u16, now: Instant) {
        match &mut self.phase {
            Phase::Asking if self.request.is_write && block == 0 => {
                self.meet(from, now);
                self.begin(now);
            }
            Phase::Offering if block == 0 => {
                self.opened(true, now);
                self.timer.progress(now);
                self.timer.stop();
                let terms = Terms::new(&self.agreed, self.settings.rollover);
                self.phase = Phase::Sending(Sender::new(&terms, self.request.mode, now));
            }
            Phase::Sending(sender) => match sender.acknowledge(block, &mut self.timer, now) {
                Acknowledged::Nothing => {}
                Acknowledged::Progress => self.timer.trust(self.settings.give_up_after),
                Acknowledged::All => {
                    let summary = Summary {
                        file_bytes: sender.file_bytes,
                        blocks_again: sender.blocks_again,
                        agreed: self.agreed,
                    };
                    self.end(Ok(summary));
                }
            },
            _ => {}
        }
    }

    /// When [`Transfer::timeout`] has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }
    /// Time has passed.
    pub fn timeout(&mut self, now: Instant) {
        let expired = match &mut self.phase {
            Phase::Asking | Phase::Offering => self.timer.expire(now).map(|again| {
                self.opens |= again;
                if again {
                    self.asked = None;
                }
            }),
            Phase::Sending(sender) => sender.timeout(&mut self.timer, now),
            Phase::Receiving(receiver) => receiver.timeout(&mut self.timer, now).map(|opens| {
                self.opens |= opens;
                if opens {
                    self.asked = None;
                }
            }),
            Phase::Dallying(_) => {
                if self.timer.deadline().is_some_and(|due| now >= due) {
                    self.timer.stop();
                    self.phase = Phase::Over;
                }
                Ok(())
            }
            Phase::Storing(_) | Phase::Over => Ok(()),
        };
        if expired.is_err() {
            let error = match self.phase {
                Phase::Asking => TransferError::NoAnswer,
                _ => TransferError::Silent,
            };
            self.end(Err(error));
        }
    }

    /// Puts the next datagram into `into`, in the place of what is there, and says to whom it goes.
    pub fn transmit(&mut self, into: &mut Vec<u8>, now: Instant) -> Option<Endpoint> {
        into.clear();
        if let Some((to, bytes)) = self.answers.pop_front() {
            into.extend_from_slice(&bytes);
            return Some(to);
        }
        if std::mem::take(&mut self.opens) {
            self.open(into, now);
            return Some(self.peer);
        }
        match &mut self.phase {
            Phase::Sending(sender) => sender.transmit(into, &mut self.timer, now).then_some(self.peer),
            Phase::Receiving(receiver) => {
                let block = receiver.take_acknowledgment(&mut self.timer, now)?;
                Packet::Ack(block).write(into);
                Some(self.peer)
            }
            Phase::Dallying(receiver) => {
                // The end of dallying stays where it was.
                let mut aside = self.timer.clone();
                let block = receiver.take_acknowledgment(&mut aside, now)?;
                Packet::Ack(block).write(into);
                Some(self.peer)
            }
            _ => None,
        }
    }
    /// The opening packet.
    fn open(&mut self, into: &mut Vec<u8>, now: Instant) {
        let is_again = self.timer.is_again();
        self.asked = (!is_again).then_some(now);
        match &self.phase {
            Phase::Asking => Packet::Request(self.request.clone()).write(into),
            Phase::Offering => Packet::OptionAck(self.agreed).write(into),
            // A server that was asked to write tells the options in the place of ACK 0, a client that asked acknowledges
            // them.
            _ if self.request.is_write && !self.agreed.is_empty() => {
                Packet::OptionAck(self.agreed).write(into);
            }
            _ => Packet::Ack(0).write(into),
        }
        self.timer.arm(1, now);
    }

    /// Octets of the file that it would take now.
    pub fn wants(&self) -> usize {
        if let Phase::Sending(sender) = &self.phase { sender.wants() } else { 0 }
    }
    /// The next octets of the file; with none, its end.
    pub fn supply(&mut self, file: &[u8]) {
        if let Phase::Sending(sender) = &mut self.phase {
            sender.supply(file);
        }
    }
    /// The octets of the file that have come, to be taken.
    pub fn file(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.phase {
            Phase::Receiving(receiver) | Phase::Storing(receiver) => Some(&mut receiver.file),
            _ => None,
        }
    }
    /// All octets have come: the file is to be kept, and then [`Transfer::stored`] called, or [`Transfer::fail`].
    pub fn is_whole(&self) -> bool {
        matches!(self.phase, Phase::Storing(_))
    }
    /// The file that came is kept.
    pub fn stored(&mut self, now: Instant) {
        let Phase::Storing(mut receiver) = std::mem::replace(&mut self.phase, Phase::Over) else { return };
        let summary = Summary {
            file_bytes: receiver.file_bytes,
            blocks_again: receiver.blocks_again,
            agreed: self.agreed,
        };
        self.outcome = Some(Ok(summary));
        receiver.acknowledge_all();
        self.timer.dally(self.settings.dally, now);
        self.phase = Phase::Dallying(receiver);
    }
    /// A local error or the user ends the transfer; the peer gets an error.
    pub fn fail(&mut self, code: ErrorCode, message: &str) {
        if matches!(self.phase, Phase::Dallying(_) | Phase::Over) {
            return;
        }
        // Before the server has answered there is no transfer to end.
        if self.is_met {
            self.say_to(self.peer, code, message);
        }
        self.end(Err(TransferError::Here { code, message: message.to_owned() }));
    }
    /// The network says that the request cannot arrive.
    pub fn unreachable(&mut self, why: String) {
        self.end(Err(TransferError::Unreachable(why)));
    }
    fn refuse(&mut self, code: ErrorCode, message: &'static str) {
        self.say_to(self.peer, code, message);
        self.end(Err(TransferError::Broken { code, message }));
    }
    fn say_to(&mut self, to: Endpoint, code: ErrorCode, message: &str) {
        if self.answers.len() < ANSWERS_LIMIT {
            self.answers.push_back((to, Packet::Error(code, message.to_owned()).bytes()));
        }
    }
    fn end(&mut self, outcome: Result<Summary, TransferError>) {
        self.outcome.get_or_insert(outcome);
        self.timer.stop();
        self.opens = false;
        self.phase = Phase::Over;
    }

    /// The result, once known.
    pub fn outcome(&self) -> Option<&Result<Summary, TransferError>> {
        self.outcome.as_ref()
    }
    /// Whether nothing has to be sent or answered any more.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over) && self.answers.is_empty()
    }
    /// Whether the peer has answered.
    pub fn is_met(&self) -> bool {
        self.is_met
    }
    /// The peer's endpoint.
    pub fn peer(&self) -> Endpoint {
        self.peer
    }
    /// Octets of the file that have gone into it or come out of it.
    pub fn file_bytes(&self) -> u64 {
        match &self.phase {
            Phase::Sending(sender) => sender.file_bytes,
            Phase::Receiving(receiver) | Phase::Storing(receiver) | Phase::Dallying(receiver) => {
                receiver.file_bytes
            }
            _ => 0,
        }
    }
    /// The options that hold.
    pub fn agreed(&self) -> &Options {
        &self.agreed
    }
}

#[cfg(test)]
mod tests;
