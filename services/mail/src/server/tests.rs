use super::*;
use crate::codec::Reply;
use inhost_base::{Duration, Endpoint, Instant};
use std::rc::Rc;

/// A session whose owner accepts all, except recipients at `no.example`.
struct Server {
    session: Session,
    now: Instant,
    messages: Vec<Vec<u8>>,
    closed: Option<Closing>,
    body: Vec<u8>,
}

impl Server {
    fn new(config: ServerConfig) -> Server {
        let peer = Endpoint::new([192, 0, 2, 9], 4000);
        let now = Instant::from_millis(1000);
        let session = Session::new(Rc::new(config), peer, now);
        Server { session, now, messages: Vec::new(), closed: None, body: Vec::new() }
    }
    fn serve(&mut self) {
        loop {
            let Some(action) = self.session.action() else {
                if !self.take_body() {
                    return;
                }
                continue;
            };
            match action {
                Action::Ask(stage) => {
                    let last = self.session.envelope().and_then(|envelope| envelope.recipients.last());
                    let verdict = match stage {
                        Stage::Recipient if last.is_some_and(|to| to.mailbox.domain() == "no.example") => {
                            Verdict::Refuse(Reply::new(550, "5.7.1", "No relay"))
                        }
                        _ => Verdict::Accept,
                    };
                    self.session.decided(verdict, self.now);
                }
                Action::Authenticate { user, password } => {
                    self.session.authenticated(Ok((&*user, &*password) == ("ada", "pass")), self.now);
                }
                Action::StartTls => self.session.tls_started(Some("TLS1.3 AES".into()), self.now),
                Action::Begin | Action::Discard => self.body.clear(),
                Action::Finish => {
                    self.take_body();
                    self.messages.push(core::mem::take(&mut self.body));
                    self.session.stored(Ok(format!("m{}", self.messages.len())), self.now);
                }
                Action::Close(closing) => self.closed = Some(closing),
            }
        }
    }
    fn take_body(&mut self) -> bool {
        let mut piece = Vec::new();
        self.session.take_body(&mut piece, self.now);
        self.body.extend_from_slice(&piece);
        !piece.is_empty()
    }
    /// Says `text`, and gives the replies.
    fn say(&mut self, text: impl AsRef<[u8]>) -> String {
        self.serve();
        self.session.network(text.as_ref(), self.now);
        self.serve();
        let mut replies = String::new();
        while !self.session.pending().is_empty() {
            let pending = self.session.pending().to_vec();
            replies += core::str::from_utf8(&pending).unwrap();
            self.session.sent(pending.len(), self.now);
            self.serve();
        }
        replies
    }
    /// The codes of the replies to `text`.
    fn codes(&mut self, text: impl AsRef<[u8]>) -> Vec<u16> {
        let replies = self.say(text);
        let ends = replies.lines().filter(|line| line.as_bytes()[3] == b' ');
        ends.map(|line| line[..3].parse().unwrap()).collect()
    }
}

fn server() -> Server {
    Server::new(ServerConfig { host_name: "mx.example".into(), ..ServerConfig::default() })
}

const GREETING: &str = "EHLO client.example\r\n";
const ENVELOPE: &str = "MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n";

/// spec: RFC5321 §4.1, RFC2920 §3, RFC2034 §3
#[test]
fn a_message_in_one_flight_and_octet_by_octet() {
    let flight = format!(
        "{GREETING}{ENVELOPE}RCPT TO:<x@no.example>\r\nDATA\r\n..point\r\nbody\r\n.\r\n{ENVELOPE}BDAT 3\r\na\r\nBDAT 3 LAST\r\nb\r\nQUIT\r\n"
    );
    let mut whole = server();
    let replies = whole.say(&flight);
    let expected = [220, 250, 250, 250, 550, 354, 250, 250, 250, 250, 250, 221];
    let mut pieces = server();
    let mut codes = Vec::new();
    for octet in flight.as_bytes().chunks(1) {
        codes.extend(pieces.codes(octet));
    }
    assert_eq!(codes, expected);
    assert_eq!(server().codes(&flight), expected);
    assert_eq!(whole.messages, [&b".point\r\nbody\r\n"[..], b"a\r\nb\r\n"]);
    assert_eq!(whole.messages, pieces.messages);
    assert_eq!((whole.closed, pieces.closed), (Some(Closing::Quit), Some(Closing::Quit)));
    assert!(
        replies.contains("\r\n250-SIZE 52428800\r\n") && replies.contains("250 2.0.0 Ok: queued as m2\r\n")
    );
    assert!(replies.contains("550 5.7.1 No relay") && !replies.contains("STARTTLS"));
    assert_eq!(whole.session.trace().lines().filter(|l| l.text().contains("octets of message")).count(), 2);
}

#[test]
fn what_is_out_of_order_is_refused() {
    let mut server = server();
    let wrong = "MAIL FROM:<a@b>\r\nEHLO c\r\nRCPT TO:<a@b>\r\nDATA\r\nMAIL FROM:<a@b>\r\nMAIL FROM:<a@b>\r\nDATA\r\n\
                 RCPT TO:<a b>\r\nAUTH PLAIN\r\nSTARTTLS\r\nVRFY x\r\nWIZ\r\nRSET\r\n";
    let expected = [220, 503, 250, 503, 503, 250, 503, 554, 501, 502, 502, 252, 500, 250];
    assert_eq!(server.codes(wrong), expected);
    // BDAT for nobody: its octets are not commands.
    assert_eq!(server.codes("BDAT 6 LAST\r\nQUIT\r\nNOOP\r\n"), [503, 250]);
    // Within BDAT, no other command.
    assert_eq!(server.codes(format!("{ENVELOPE}BDAT 2\r\n\r\nDATA\r\nRSET\r\n")), [250, 250, 250, 503, 250]);
    let too_many = "X\r\n".repeat(30);
    assert_eq!(*server.codes(too_many).last().unwrap(), 421);
    assert_eq!(server.closed, Some(Closing::Errors));
}

#[test]
fn smuggled_ends_end_the_session() {
    for end in ["\n.\r\n", "\n.\n", "\r.\r\n", "\r\n.\r", "\r\n.\n"] {
        let mut server = server();
        let text = format!("{GREETING}{ENVELOPE}DATA\r\nbody{end}{ENVELOPE}DATA\r\nevil\r\n.\r\n");
        let replies = server.say(&text);
        assert!(server.messages.is_empty(), "{end:?}");
        assert!(replies.ends_with("lines end in CRLF\r\n") && replies.contains("550 5.5.2"), "{replies}");
        assert_eq!(server.closed, Some(Closing::Lines));
    }
    for line in ["NOOP\n", "NO\rOP\r\n", "NOOP\0\r\n"] {
        let mut server = server();
        assert_eq!(server.codes(line), [220, 500]);
        assert_eq!(server.closed, Some(Closing::Lines), "{line:?}");
    }
    let mut server = server();
    let text = format!("{GREETING}{ENVELOPE}BDAT 6 LAST\r\na\nb\r\n\nNOOP\r\n");
    assert_eq!(server.codes(text), [220, 250, 250, 250, 550, 250], "counted octets smuggle nothing");
    assert!(server.messages.is_empty());
}

/// spec: RFC3207 §4.2, §6
#[test]
fn what_was_said_before_tls_is_forgotten() {
    let mut server = Server::new(ServerConfig { tls: TlsOffer::Required, ..ServerConfig::default() });
    let replies = server.say(format!("{GREETING}{ENVELOPE}"));
    assert!(replies.contains("STARTTLS") && replies.contains("530 5.7.0"), "{replies}");
    assert_eq!(server.codes(format!("STARTTLS\r\n{GREETING}{ENVELOPE}")), [220], "injected commands");
    assert_eq!(server.session.client().hello, "");
    assert_eq!(server.codes(ENVELOPE), [503, 503]);
    let replies = server.say(format!("{GREETING}{ENVELOPE}STARTTLS\r\n"));
    assert!(
        !replies.contains("STARTTLS") && replies.contains("250 2.1.5") && replies.contains("503"),
        "{replies}"
    );
    assert_eq!(server.session.client().protocol(false), "ESMTPS");
}

#[test]
fn passwords_are_for_tls_and_are_not_in_the_trace() {
    let config =
        ServerConfig { tls: TlsOffer::Offered, auth: true, auth_required: true, ..ServerConfig::default() };
    let mut server = Server::new(config);
    assert_eq!(server.codes(format!("{GREETING}AUTH PLAIN AGFkYQBwYXNz\r\n")), [220, 250, 538]);
    server.say("STARTTLS\r\n");
    assert_eq!(server.codes(format!("{GREETING}{ENVELOPE}")), [250, 530, 503]);
    assert_eq!(server.codes("AUTH PLAIN AGFkYQBwYXN0\r\nAUTH LOGIN\r\nYWRh\r\n*\r\n"), [535, 334, 334, 501]);
    assert_eq!(server.codes("AUTH LOGIN\r\nYWRh\r\ncGFzcw==\r\n"), [334, 334, 235]);
    assert_eq!(server.codes(ENVELOPE), [250, 250]);
    assert_eq!(server.session.client().protocol(true), "UTF8SMTPSA");
    let trace = server.session.trace().to_string();
    assert!(!trace.contains("AGFk") && !trace.contains("cGFz"), "{trace}");
    // A client that does not wait for the answer to AUTH, which refuses it.
    let mut server = Server::new(ServerConfig::default());
    let codes = server.codes(format!("{GREETING}AUTH LOGIN\r\nYWRh\r\ncGFzcw==\r\nNOOP\r\nWIZ\r\n"));
    assert_eq!(codes, [220, 250, 502, 500, 500, 250, 500]);
    let trace = server.session.trace().to_string();
    assert!(!trace.contains("YWRh") && !trace.contains("cGFz") && trace.contains("WIZ"), "{trace}");
}

#[test]
fn sizes_have_limits() {
    let config = ServerConfig { message_bytes: 1000, recipients: 2, ..ServerConfig::default() };
    let mut server = Server::new(config);
    assert_eq!(server.codes(format!("{GREETING}MAIL FROM:<> SIZE=1001\r\n")), [220, 250, 552]);
    let third = "RCPT TO:<e@d.example>\r\n".repeat(2);
    assert_eq!(server.codes(format!("{ENVELOPE}{third}")), [250, 250, 250, 452]);
    // A little too much is read to its end, far too much is not.
    assert_eq!(server.codes(format!("DATA\r\n{}.\r\n", "x\r\n".repeat(400))), [354, 552]);
    assert_eq!(server.codes(format!("{ENVELOPE}DATA\r\n{}", "x\r\n".repeat(2000))), [250, 250, 354, 552]);
    assert_eq!(server.closed, Some(Closing::TooLarge));
    let mut server = Server::new(ServerConfig::default());
    assert_eq!(server.codes("x".repeat(5000)), [220, 500]);
    assert_eq!(server.closed, Some(Closing::Lines));
    let mut server = Server::new(ServerConfig::default());
    server.say(format!("{GREETING}{ENVELOPE}DATA\r\n"));
    let endless = "X-Header: y\r\n".repeat(30_000);
    assert_eq!(server.codes(format!("{endless}\r\n.\r\n")), [552]);
    assert!(server.session.held_bytes() < 2 << 20);
}

#[test]
fn slow_clients_are_given_up() {
    let mut idle = server();
    assert_eq!(idle.codes(GREETING), [220, 250]);
    idle.session.timeout(idle.now);
    assert_eq!(idle.closed, None, "a spurious call does nothing");
    idle.now = idle.session.deadline().unwrap();
    idle.session.timeout(idle.now);
    assert_eq!(idle.codes(""), [421]);
    assert_eq!(idle.closed, Some(Closing::Idle));
    // A line by an octet each 20 seconds.
    let mut slow = server();
    slow.say("E");
    for octet in "HLO client.example\r\n".bytes() {
        slow.now += Duration::from_secs(20);
        slow.session.timeout(slow.now);
        slow.say([octet]);
    }
    assert_eq!(slow.closed, Some(Closing::TooSlow));
    // A message by an octet each 20 seconds.
    let mut slow = server();
    slow.say(format!("{GREETING}{ENVELOPE}DATA\r\n"));
    let began = slow.now;
    while slow.closed.is_none() {
        slow.now += Duration::from_secs(20);
        slow.session.timeout(slow.now);
        slow.say("x");
    }
    assert_eq!(slow.closed, Some(Closing::TooSlow));
    assert!(slow.now.since(began) <= Duration::from_secs(640));
}
