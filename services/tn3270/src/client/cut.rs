//! The terminal's part of CUT mode: frames on the screen of 24 rows of 80 columns.

use super::transfer::{CutState, State, Transfer, TransferError};
use crate::codec::{Aid, Display};
use crate::screen::Screen;
use crate::transfer::Direction;
use crate::transfer::cut::{
    ABORT_FILE, ABORT_TRANSFER, CONTROL, DATA, DATA_REQUEST, DOWN_DATA, DOWN_LENGTH, DOWN_MOST,
    DOWN_SEQUENCE, END_OF_FILE, FRAME_END, FRAME_TYPE, HOST_ACK, MESSAGE, MESSAGE_COLUMNS, REQUEST_SEQUENCE,
    RESPONSE, RETRANSMIT, STATUS, TRANSFER_COMPLETE, UP_CHECKSUM, UP_DATA, UP_LENGTH, UP_MOST, UP_SEQUENCE,
    length, six,
};

impl Transfer {
    /// Looks for a frame on the screen, after the host has written to it, and acts on it. Gives the record to send.
    pub(super) fn frame(&mut self, screen: &mut Screen) -> Option<Vec<u8>> {
        let is_frame = screen.positions() == FRAME_END + 1
            && screen.cell(FRAME_END).field.is_some_and(|attribute| attribute.is_skip());
        let kind = screen.cell(FRAME_TYPE).character;
        let status = [0, 1].map(|at| screen.cell(STATUS + at).character);
        let is_first = kind == CONTROL && matches!(status, HOST_ACK | ABORT_FILE | ABORT_TRANSFER);
        if !is_frame || !(self.cut.is_running || is_first) || self.outcome.is_some() {
            return None;
        }
        match kind {
            CONTROL => self.control(screen, status),
            _ if matches!(self.state, State::Failing(_)) => Some(self.abort(screen, ABORT_FILE)),
            DATA_REQUEST if self.direction == Direction::Upload => Some(self.send_frame(screen)),
            DATA if self.direction == Direction::Download => Some(self.take_frame(screen)),
            RETRANSMIT => self.fail(screen, "the host asks for a frame again"),
            _ => self.fail(screen, "the host sent a frame of an unknown kind"),
        }
    }

    fn control(&mut self, screen: &mut Screen, status: [u8; 2]) -> Option<Vec<u8>> {
        match status {
            HOST_ACK => {
                self.cut = CutState { is_running: true, ..CutState::default() };
                if self.state == State::Asked {
                    self.state = State::Open;
                }
            }
            TRANSFER_COMPLETE => {
                self.cut.is_running = false;
                self.finish(frame_message(screen));
            }
            ABORT_FILE | ABORT_TRANSFER => {
                self.cut.is_running = false;
                self.outcome = Some(Err(match &self.state {
                    State::Failing(error) | State::Failed(error) => error.clone(),
                    _ => TransferError::Host(frame_message(screen)),
                }));
            }
            _ => return self.fail(screen, "the host sent an unknown control code"),
        }
        Some(screen.answer(Aid::Enter))
    }

    fn fail(&mut self, screen: &mut Screen, why: &'static str) -> Option<Vec<u8>> {
        self.state = State::Failing(TransferError::Protocol(why));
        Some(self.abort(screen, ABORT_TRANSFER))
    }

    /// Tells the host that the transfer has failed here; it answers by a control frame.
    fn abort(&mut self, screen: &mut Screen, reason: [u8; 2]) -> Vec<u8> {
        if let State::Failing(error) = &self.state {
            self.state = State::Failed(error.clone());
        }
        let sequence = screen.cell(DOWN_SEQUENCE).character;
        for (at, octet) in (RESPONSE + 1..).zip([CONTROL, sequence, reason[0], reason[1]]) {
            screen.put_at(at, octet);
        }
        screen.answer(Aid::Pf(2))
    }

    /// Puts a frame of data on the screen, and sends it.
    fn send_frame(&mut self, screen: &mut Screen) -> Vec<u8> {
        let sequence = screen.cell(REQUEST_SEQUENCE).character;
        let most = usize::from(UP_MOST);
        let mut data = core::mem::take(&mut self.cut.left);
        while data.len() < most {
            let mut encoder = core::mem::take(&mut self.cut.encoder);
            let piece = self.next_piece(most - data.len());
            let is_end = piece.is_empty();
            piece.iter().for_each(|&octet| encoder.put(octet, &mut data));
            self.cut.encoder = encoder;
            if is_end {
                break;
            }
        }
        self.cut.left = data.split_off(data.len().min(most));
        if data.is_empty() {
            data.extend_from_slice(&END_OF_FILE);
        }
        let count = u16::try_from(data.len()).unwrap_or(UP_MOST);
        let checksum = data.iter().fold(0, |sum, octet| sum ^ octet);
        for (at, octet) in [
            (UP_SEQUENCE, sequence),
            (UP_CHECKSUM, six(u16::from(checksum))),
            (UP_LENGTH, six(count >> 6)),
            (UP_LENGTH + 1, six(count)),
        ] {
            screen.put_at(at, octet);
        }
        (UP_DATA..).zip(data).for_each(|(at, octet)| screen.put_at(at, octet));
        screen.set_display_at(DOWN_SEQUENCE, Display::Hidden);
        screen.answer(Aid::Enter)
    }

    /// Takes a frame of data off the screen.
    fn take_frame(&mut self, screen: &mut Screen) -> Vec<u8> {
        let octet = |at: u16| screen.cell(at).character;
        let Some(count) = length([octet(DOWN_LENGTH), octet(DOWN_LENGTH + 1)]).filter(|n| *n <= DOWN_MOST)
        else {
            self.state = State::Failing(TransferError::Protocol("the host sent a frame that is too long"));
            return self.abort(screen, ABORT_TRANSFER);
        };
        let data: Vec<u8> = (DOWN_DATA..DOWN_DATA + count).map(octet).collect();
        if data == END_OF_FILE {
            return screen.answer(Aid::Enter);
        }
        let mut octets = Vec::new();
        let taken = match self.cut.decoder.take(&data, &mut octets) {
            Some(()) => self.take_piece(&octets),
            None => Err(TransferError::Protocol("the host sent a character that is not of the code")),
        };
        match taken {
            Ok(()) => screen.answer(Aid::Enter),
            Err(error) => {
                self.state = State::Failing(error);
                self.abort(screen, ABORT_FILE)
            }
        }
    }
}

/// The message of a control frame, without blanks and the dollar sign at its end.
fn frame_message(screen: &Screen) -> String {
    let page = screen.config().code_page;
    let text: String = (MESSAGE..MESSAGE + MESSAGE_COLUMNS)
        .map(|at| screen.cell(at).character)
        .map(|octet| page.shown(octet))
        .collect();
    text.trim_end().trim_end_matches('$').trim_end().to_owned()
}
