use super::*;
use crate::codec::{MailFrom, Recipient, Reply};
use inhost_base::Instant;

struct Client {
    dialogue: Dialogue,
    actions: Vec<Action>,
    now: Instant,
}

impl Client {
    fn new(config: ClientConfig) -> Client {
        let now = Instant::from_millis(1000);
        Client { dialogue: Dialogue::new(config, false, now), actions: Vec::new(), now }
    }
    /// The server says `text`; what the client says then.
    fn hear(&mut self, text: &str) -> String {
        self.dialogue.network(text.as_bytes(), self.now);
        self.said()
    }
    fn said(&mut self) -> String {
        while let Some(action) = self.dialogue.action() {
            self.actions.push(action);
        }
        let said = String::from_utf8(self.dialogue.pending().to_vec()).unwrap();
        self.dialogue.sent(said.len(), self.now);
        said
    }
    fn begin(&mut self, transaction: &Transaction) -> String {
        self.actions.clear();
        self.dialogue.begin(transaction, self.now);
        self.said()
    }
    fn outcomes(&self) -> &[Outcome] {
        self.actions
            .iter()
            .find_map(|action| match action {
                Action::Done(outcomes) => Some(outcomes.as_slice()),
                _ => None,
            })
            .unwrap()
    }
}

fn transaction(recipients: &[&str]) -> Transaction {
    let mail = MailFrom { sender: Some("a@b.example".parse().unwrap()), ..MailFrom::default() };
    let recipients = recipients.iter().map(|to| Recipient::new(to.parse().unwrap())).collect();
    Transaction::new(mail, recipients, 500)
}

fn ready(lines: &str) -> Client {
    let mut client = Client::new(ClientConfig::new("me.example"));
    assert_eq!(client.hear("220 mx\r\n"), "EHLO me.example\r\n");
    client.hear(&format!("250-mx\r\n{lines}250 HELP\r\n"));
    assert_eq!(client.actions, [Action::Ready]);
    client
}

/// spec: RFC2920 §3.1, RFC1870 §6, RFC3461 §4
#[test]
fn commands_go_together_where_that_is_offered() {
    let mut client = ready("250-PIPELINING\r\n250-SIZE 1000\r\n250-DSN\r\n");
    let said = client.begin(&transaction(&["c@d.example", "e@d.example"]));
    let envelope =
        "MAIL FROM:<a@b.example> SIZE=500\r\nRCPT TO:<c@d.example>\r\nRCPT TO:<e@d.example>\r\nDATA\r\n";
    assert_eq!(said, envelope);
    client.hear("250 Ok\r\n250 Ok\r\n550 5.1.1 Who?\r\n354 Go\r\n");
    assert_eq!(client.actions, [Action::SendBody]);
    client.dialogue.body_sent(500, client.now);
    client.hear("250 2.0.0 as 1\r\n");
    let [Outcome::Accepted(_), Outcome::Refused(Step::Recipient, reply)] = client.outcomes() else {
        panic!()
    };
    assert_eq!(reply, &Reply::new(550, "5.1.1", "Who?"));
    // All recipients refused, and DATA answered all the same: a point alone, and the next message.
    client.begin(&transaction(&["c@d.example"]));
    assert_eq!(client.hear("250 Ok\r\n450 4.7.1 Later\r\n354 Go\r\n"), ".\r\n");
    client.hear("554 5.5.1 No recipients\r\n");
    assert!(matches!(client.outcomes(), [Outcome::Refused(Step::Recipient, reply)] if reply.is_transient()));
    // Refused at MAIL; the next transaction begins clean.
    client.begin(&transaction(&["c@d.example"]));
    client.hear("552 5.2.2 Full\r\n503 a\r\n503 b\r\n");
    assert!(matches!(client.outcomes(), [Outcome::Refused(Step::Mail, reply)] if reply.code == 552));
    assert!(client.begin(&transaction(&["c@d.example"])).starts_with("RSET\r\nMAIL"));
    let large = Transaction { size_bytes: 2000, ..transaction(&["c@d.example"]) };
    let mut client = ready("250-SIZE 1000\r\n");
    assert_eq!(client.begin(&large), "");
    assert_eq!(client.outcomes(), [Outcome::Impossible(Impossible::TooLarge { limit_bytes: 1000 })]);
}

#[test]
fn one_command_at_a_time_else() {
    let mut client = ready("");
    assert_eq!(client.begin(&transaction(&["c@d.example"])), "MAIL FROM:<a@b.example>\r\n");
    assert_eq!(client.hear("250 Ok\r\n"), "RCPT TO:<c@d.example>\r\n");
    assert_eq!(client.hear("250 Ok\r\n"), "DATA\r\n");
    assert_eq!(client.hear("451 4.3.0 Later\r\n"), "");
    assert!(matches!(client.outcomes(), [Outcome::Refused(Step::Data, _)]));
    let mut utf8 = transaction(&["c@d.example"]);
    utf8.mail.is_utf8 = true;
    client.begin(&utf8);
    assert_eq!(client.outcomes(), [Outcome::Impossible(Impossible::Utf8)]);
}

/// spec: RFC2033 §4.2
#[test]
fn lmtp_answers_for_each_recipient() {
    let mut config = ClientConfig::new("me.example");
    config.is_lmtp = true;
    let mut client = Client::new(config);
    assert_eq!(client.hear("220 mx\r\n"), "LHLO me.example\r\n");
    client.hear("250-mx\r\n250 PIPELINING\r\n");
    client.begin(&transaction(&["c@d.example", "e@d.example", "f@d.example"]));
    client.hear("250 Ok\r\n250 Ok\r\n550 No\r\n250 Ok\r\n354 Go\r\n");
    client.dialogue.body_sent(500, client.now);
    client.hear("250 Ok\r\n452 4.2.2 Full\r\n");
    let codes = client.outcomes().iter().map(|outcome| match outcome {
        Outcome::Accepted(reply) | Outcome::Refused(_, reply) => reply.code,
        Outcome::Impossible(_) => 0,
    });
    assert_eq!(codes.collect::<Vec<_>>(), [250, 550, 452]);
    // A server that leaves behind its first answer has taken the message for that recipient.
    client.begin(&transaction(&["c@d.example", "e@d.example"]));
    client.hear("250 Ok\r\n250 Ok\r\n250 Ok\r\n354 Go\r\n");
    client.dialogue.body_sent(500, client.now);
    client.hear("250 Ok\r\n");
    client.dialogue.closed(client.now);
    let outcomes = client.dialogue.outcomes_so_far().unwrap();
    assert!(matches!(&outcomes[0], Outcome::Accepted(reply) if reply.code == 250));
    assert!(matches!(&outcomes[1], Outcome::Refused(Step::End, reply) if reply.code == 451));
    assert_eq!(client.dialogue.outcomes_so_far(), None);
}

/// spec: RFC3207 §4, RFC4954 §4
#[test]
fn tls_and_passwords() {
    let with = |tls, login| {
        let mut config = ClientConfig::new("me.example");
        config.tls = tls;
        if login {
            config.log_in("ada", "pass");
        }
        let mut client = Client::new(config);
        client.hear("220 mx\r\n");
        client
    };
    let failed = |client: &Client, failure| client.actions.last() == Some(&Action::Close(Some(failure)));
    let mut stripped = with(TlsWish::Required, false);
    stripped.hear("250 mx\r\n");
    assert!(failed(&stripped, Failure::NoTls), "a downgrade");
    let mut clear = with(TlsWish::IfOffered, true);
    clear.hear("250-mx\r\n250 AUTH PLAIN\r\n");
    assert!(failed(&clear, Failure::NoTls), "a password is not for a server that nobody knows");
    let mut injected = with(TlsWish::Required, false);
    assert_eq!(injected.hear("250-mx\r\n250 STARTTLS\r\n"), "STARTTLS\r\n");
    injected.hear("220 Go\r\n250 evil\r\n");
    assert!(matches!(injected.actions.last(), Some(Action::Close(Some(Failure::NotSmtp(Step::Tls, _))))));
    let mut good = with(TlsWish::Required, true);
    good.hear("250-mx\r\n250-AUTH CRAM-MD5\r\n250 STARTTLS\r\n");
    good.hear("220 Go\r\n");
    assert_eq!(good.actions, [Action::StartTls]);
    good.dialogue.tls_started("TLS1.3", good.now);
    assert_eq!(good.said(), "EHLO me.example\r\n");
    assert_eq!(good.hear("250-mx\r\n250 AUTH LOGIN\r\n"), "AUTH LOGIN\r\n");
    assert_eq!(good.hear("334 VXNlcm5hbWU6\r\n"), "YWRh\r\n");
    assert_eq!(good.hear("334 UGFzc3dvcmQ6\r\n"), "cGFzcw==\r\n");
    good.hear("235 Ok\r\n");
    assert_eq!(good.actions.last(), Some(&Action::Ready));
    assert!(!good.dialogue.trace().to_string().contains("cGFz"));
}

#[test]
fn servers_that_fail() {
    let mut old = Client::new(ClientConfig::new("me.example"));
    old.hear("220 mx\r\n");
    assert_eq!(old.hear("500 What?\r\n"), "HELO me.example\r\n");
    old.hear("250 mx\r\n");
    assert_eq!(old.actions, [Action::Ready]);
    let failure = |text: &str| {
        let mut client = Client::new(ClientConfig::new("me.example"));
        client.hear(text);
        client.actions.pop()
    };
    let busy = Failure::Refused(Step::Greeting, Reply::new(421, "", "busy"));
    assert_eq!(failure("421 busy\r\n"), Some(Action::Close(Some(busy))));
    assert!(matches!(
        failure("SSH-2.0-x\r\n"),
        Some(Action::Close(Some(Failure::NotSmtp(Step::Greeting, _))))
    ));
    let mut late = Client::new(ClientConfig::new("me.example"));
    late.now = late.dialogue.deadline().unwrap();
    late.dialogue.timeout(late.now);
    assert_eq!(late.dialogue.action(), Some(Action::Close(Some(Failure::Late(Step::Greeting)))));
    let mut talking = ready("");
    talking.hear("421 4.3.2 going down\r\n");
    assert!(matches!(talking.actions.last(), Some(Action::Close(Some(Failure::Refused(Step::Other, _))))));
}
