//! Fuzz targets. The first octet says to whom the others go: a server, a client, or a parser; the invariants are asserted.

use std::rc::Rc;

use inhost_base::{Endpoint, Instant};

use crate::client::{self, ClientConfig, Dialogue, Transaction};
use crate::codec::{DataEncoder, DataEnd, MailFrom, Mailbox, Recipient, Reply, decode_xtext, encode_xtext};
use crate::compose::{Named, with_crlf, without_bcc};
use crate::sender::Route;
use crate::server::{self, ServerConfig, Session, Stage, TlsOffer, Verdict};

/// One input, to everything that reads from the network, from files or from a person.
pub fn fuzz_mail(input: &[u8]) {
    let Some((&choice, rest)) = input.split_first() else { return };
    match choice % 4 {
        0 => to_server(rest),
        1 => to_client(rest),
        2 => texts(rest),
        _ => message(rest),
    }
}

/// What a client says, in pieces whose size the first octet gives.
fn to_server(input: &[u8]) {
    let Some((&size, rest)) = input.split_first() else { return };
    let config = ServerConfig {
        message_bytes: 5000,
        recipients: 3,
        tls: TlsOffer::Offered,
        auth: true,
        auth_in_clear: size % 2 == 0,
        ..ServerConfig::default()
    };
    let now = Instant::ZERO;
    let mut session = Session::new(Rc::new(config), Endpoint::new([192, 0, 2, 9], 4000), now);
    let (mut body, mut piece, mut is_closed) = (Vec::new(), Vec::new(), false);
    for octets in rest.chunks(usize::from(size).max(1)) {
        session.network(octets, now);
        loop {
            let Some(action) = session.action() else {
                session.take_body(&mut piece, now);
                body.extend_from_slice(&piece);
                match piece.is_empty() {
                    true => break,
                    false => continue,
                }
            };
            assert!(!is_closed, "nothing follows a close");
            match action {
                server::Action::Ask(Stage::Recipient) => {
                    let envelope = session.envelope().unwrap();
                    let is_no = envelope.recipients.last().unwrap().mailbox.local().starts_with('n');
                    let refused = || Verdict::Refuse(Reply::new(550, "5.1.1", "no"));
                    session.decided(if is_no { refused() } else { Verdict::Accept }, now);
                }
                server::Action::Ask(_) => session.decided(Verdict::Accept, now),
                server::Action::Authenticate { user, .. } => session.authenticated(Ok(user == "a"), now),
                server::Action::StartTls => session.tls_started(Some("TLS".into()), now),
                server::Action::Begin | server::Action::Discard => body.clear(),
                server::Action::Finish => {
                    session.take_body(&mut piece, now);
                    body.extend_from_slice(&piece);
                    let envelope = session.envelope().unwrap();
                    assert!(!envelope.recipients.is_empty() && body.len() <= 5000);
                    let text = String::from_utf8_lossy(&body).replace("\r\n", "");
                    assert!(!text.contains(['\r', '\n']), "a line end that others could read differently");
                    session.stored(Ok("m1".into()), now);
                }
                server::Action::Close(_) => is_closed = true,
            }
        }
        let pending = session.pending();
        assert!(pending.is_empty() || pending.ends_with(b"\r\n"));
        session.sent(pending.len(), now);
        assert!(session.held_bytes() < 2 << 20);
    }
    let _ = session.trace().to_string();
}

/// What a server says.
fn to_client(input: &[u8]) {
    let Some((&size, rest)) = input.split_first() else { return };
    let mut config = ClientConfig::new("me.example");
    config.is_lmtp = size % 2 == 1;
    if size % 3 == 0 {
        config.log_in("ada", "pass");
    }
    let now = Instant::ZERO;
    let mut dialogue = Dialogue::new(config, size % 5 == 0, now);
    let recipients = ["a@b.example", "c@d.example"].map(|to| Recipient::new(to.parse().unwrap()));
    let transaction = Transaction::new(MailFrom::default(), recipients.to_vec(), 10);
    let mut transactions = 0;
    for octets in rest.chunks(usize::from(size).max(1)) {
        dialogue.network(octets, now);
        while let Some(action) = dialogue.action() {
            match action {
                client::Action::StartTls => dialogue.tls_started("TLS", now),
                client::Action::Ready if transactions < 3 => {
                    transactions += 1;
                    dialogue.begin(&transaction, now);
                }
                client::Action::Ready => dialogue.quit(now),
                client::Action::SendBody => dialogue.body_sent(10, now),
                client::Action::Done(outcomes) => assert_eq!(outcomes.len(), 2),
                client::Action::Close(_) => return,
            }
        }
        let said = dialogue.pending();
        assert!(!String::from_utf8_lossy(said).contains("pass"), "a password is never in clear text");
        dialogue.sent(said.len(), now);
    }
    let _ = dialogue.trace().to_string();
}

fn texts(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(mailbox) = text.parse::<Mailbox>() {
        assert_eq!(mailbox.to_string().parse(), Ok(mailbox));
    }
    let _ = text.parse::<Route>();
    if let Some(decoded) = decode_xtext(&text) {
        assert_eq!(decode_xtext(&encode_xtext(&decoded)), Some(decoded));
    }
}

fn message(input: &[u8]) {
    let text = with_crlf(input);
    let _ = Named::of(&text);
    assert!(without_bcc(&text).len() <= text.len());
    let (mut carried, mut encoder) = (Vec::new(), DataEncoder::default());
    encoder.encode(&text, &mut carried);
    encoder.end(&mut carried);
    let (mut again, mut rest) = (Vec::new(), &carried[..]);
    let end = crate::codec::DataDecoder::default().decode(&mut rest, &mut again);
    assert_eq!((end, again, rest.is_empty()), (Some(DataEnd::Whole), text, true));
}
