use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant};

use super::*;
use crate::codec::{Command, Verb};
use inhost_common::storage::StorageError;

const NOW: Instant = Instant::from_millis(1_000);

fn at(text: &str) -> Endpoint {
    text.parse::<std::net::SocketAddr>().unwrap().into()
}

struct Talk {
    session: Session,
    now: Instant,
}

impl Talk {
    fn new(config: ServerConfig) -> Talk {
        let session = Session::new(Rc::new(config), at("192.0.2.1:21"), at("192.0.2.9:4000"), false, NOW);
        let mut talk = Talk { session, now: NOW };
        assert_eq!(talk.replies(), "220 inhost FTP server ready.\r\n");
        talk
    }
    fn user(config: ServerConfig, write: bool) -> Talk {
        let mut talk = Talk::new(config);
        talk.says("USER ada");
        talk.says("PASS engine");
        talk.grants(write, None);
        assert!(talk.replies().starts_with("230 "));
        talk
    }
    fn grants(&mut self, write: bool, account: Option<&str>) {
        while self.session.action().is_some() {}
        let verdict = LogIn::Granted { rights: Rights { write }, account: account.map(str::to_owned) };
        self.session.authenticated(verdict, self.now);
    }
    fn replies(&mut self) -> String {
        let text = String::from_utf8(self.session.pending().to_vec()).unwrap();
        self.session.sent(text.len(), self.now);
        text
    }
    fn says(&mut self, line: &str) -> String {
        self.session.network(format!("{line}\r\n").as_bytes(), self.now);
        self.replies()
    }
    /// The code of the reply to a line that needs nothing else.
    fn code(&mut self, line: &str) -> u16 {
        let replies = self.says(line);
        assert!(replies.len() > 4, "{line} is not answered");
        replies[..3].parse().unwrap()
    }
    fn action(&mut self) -> Option<Action> {
        self.session.action()
    }
    fn listens(&mut self, line: &str) -> String {
        self.says(line);
        while self.action().is_some() {}
        self.session.listening(Some(at("192.0.2.1:30000")), self.now);
        self.replies()
    }
    fn event(&mut self, event: TransferEvent) -> String {
        self.session.transfer_event(event, self.now);
        self.replies()
    }
    fn passes(&mut self, time: Duration) -> String {
        self.now += time;
        self.session.timeout(self.now);
        self.replies()
    }
}

fn tls(policy: TlsPolicy) -> ServerConfig {
    ServerConfig { tls: policy, ..ServerConfig::default() }
}

fn sample(verb: Verb) -> &'static str {
    match verb {
        Verb::User => "ada",
        Verb::Port => "192,0,2,9,16,1",
        Verb::Eprt => "|1|192.0.2.9|4097|",
        Verb::Lprt => "4,4,192,0,2,9,2,16,1",
        Verb::Type => "I",
        Verb::Stru => "R",
        Verb::Mode => "B",
        Verb::Allo | Verb::Rest => "100",
        Verb::Site => "UMASK 077",
        Verb::Auth => "TLS",
        Verb::Pbsz => "0",
        Verb::Prot => "P",
        Verb::Opts => "UTF8 ON",
        Verb::Mfmt => "20261121075253 name",
        Verb::Quit
        | Verb::Rein
        | Verb::Pasv
        | Verb::Abor
        | Verb::Pwd
        | Verb::Syst
        | Verb::Stat
        | Verb::Help
        | Verb::Noop
        | Verb::Ccc
        | Verb::Feat
        | Verb::Epsv
        | Verb::Cdup => "",
        _ => "name",
    }
}

/// A state of the session, by its name, and how it is reached.
fn states() -> Vec<(&'static str, Talk)> {
    let named = |mut talk: Talk| {
        talk.says("USER ada");
        talk
    };
    let account = || {
        let mut talk = named(Talk::new(tls(TlsPolicy::Offered)));
        talk.says("PASS engine");
        talk.grants(true, Some("lab"));
        talk.replies();
        talk
    };
    let user = |write| Talk::user(tls(TlsPolicy::Offered), write);
    let renaming = || {
        let mut talk = user(true);
        talk.says("RNFR old");
        talk.session.file_done(Ok(FileReply::Done), NOW);
        talk.replies();
        talk
    };
    let moving = || {
        let mut talk = user(true);
        talk.listens("PASV");
        talk.says("RETR name");
        talk.event(TransferEvent::Opened { size_bytes: Some(9), name: None });
        talk
    };
    let secure = || {
        let mut talk = Talk::new(tls(TlsPolicy::Required));
        talk.says("AUTH TLS");
        talk.session.tls_started(true, NOW);
        talk.says("USER ada");
        talk.says("PASS engine");
        talk.grants(true, None);
        talk.replies();
        talk
    };
    vec![
        ("visitor", Talk::new(tls(TlsPolicy::Offered))),
        ("named", named(Talk::new(tls(TlsPolicy::Offered)))),
        ("account", account()),
        ("reader", user(false)),
        ("writer", user(true)),
        ("renaming", renaming()),
        ("moving", moving()),
        ("clear", Talk::new(tls(TlsPolicy::Required))),
        ("secure", secure()),
    ]
}

/// What a session says at once and asks for, in each state for each verb.
fn table() -> String {
    let short = |action: Action| {
        let text = format!("{action:?}");
        text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap().to_lowercase()
    };
    let mut rows = Vec::new();
    for &verb in Verb::ALL {
        let mut row = format!("{:6}", verb.name());
        for (_, mut talk) in states() {
            while talk.action().is_some() {}
            let replies = talk.says(format!("{} {}", verb.name(), sample(verb)).trim_end());
            let codes = replies
                .lines()
                .filter(|line| line.as_bytes().get(3) == Some(&b' ') && line.as_bytes()[0] != b' ');
            let mut cell: Vec<String> = codes.map(|line| line[..3].to_owned()).collect();
            while let Some(action) = talk.action() {
                cell.push(short(action));
            }
            row += &format!(" {:22}", if cell.is_empty() { "waits".into() } else { cell.join("+") });
        }
        rows.push(row.trim_end().to_owned());
    }
    let head = states().iter().fold(format!("{:6}", ""), |head, (name, _)| head + &format!(" {name:22}"));
    format!("{}\n{}\n", head.trim_end(), rows.join("\n"))
}

/// The whole matrix. To accept a change, run with INHOST_SNAPSHOTS=write and read the difference.
#[test]
fn every_verb_in_every_state() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/table.txt");
    let table = table();
    if std::env::var_os("INHOST_SNAPSHOTS").is_some_and(|value| value == "write") {
        std::fs::write(path, &table).unwrap();
    }
    assert_eq!(table, std::fs::read_to_string(path).unwrap_or_default());
}

#[test]
fn logging_in() {
    let mut talk = Talk::new(ServerConfig::default());
    assert_eq!(talk.code("PASS x"), 503);
    assert_eq!(talk.code("PWD"), 530);
    assert_eq!(talk.code("USER ada"), 331);
    assert_eq!(talk.says("PASS engine"), "");
    let asked = talk.action();
    assert_eq!(asked, Some(Action::Authenticate { user: "ada".into(), password: "engine".into() }));
    // What follows the password waits for the verdict.
    assert_eq!(talk.says("PWD"), "");
    talk.grants(true, Some("lab"));
    assert!(talk.replies().starts_with("332 "), "and PWD behind it is refused");
    assert_eq!(talk.says("ACCT wrong"), "");
    assert!(talk.passes(Duration::from_secs(1)).starts_with("530 "));
    talk.says("USER ada");
    talk.says("PASS engine");
    talk.grants(true, Some("lab"));
    talk.replies();
    assert_eq!(talk.code("ACCT lab"), 230);
    assert_eq!(talk.says("PWD"), "257 \"/\" is the current directory.\r\n");
}

#[test]
fn a_visitor_is_told_to_log_in_whatever_else_is_missing() {
    let mut talk = Talk::new(ServerConfig::default());
    assert_eq!(["CWD", "MFMT", "RNFR"].map(|line| talk.code(line)), [530; 3]);
    assert_eq!(["USER", "OPTS"].map(|line| talk.code(line)), [501; 2]);
    let mut user = Talk::user(ServerConfig::default(), true);
    assert_eq!(["CWD", "MFMT", "RNFR"].map(|line| user.code(line)), [501; 3]);
}

#[test]
fn help_knows_all_that_is_understood() {
    let mut talk = Talk::user(ServerConfig::default(), true);
    for verb in Verb::ALL {
        assert_eq!(talk.code(&format!("HELP {}", verb.name().to_lowercase())), 214);
    }
    let others = ["HELP", "HELP XMKD", "HELP SITE CHMOD", "SITE HELP", "SITE HELP help", "SITE HELP IDLE"];
    assert_eq!(others.map(|line| talk.code(line)), [214; 6]);
    assert_eq!(["HELP X", "HELP SITE X", "SITE HELP X"].map(|line| talk.code(line)), [501; 3]);
}

#[test]
fn guessing_takes_longer_each_time_and_ends() {
    let mut talk = Talk::new(ServerConfig::default());
    for (seconds, code) in [(1, "530"), (2, "530"), (4, "530")] {
        talk.says("USER ada");
        assert_eq!(talk.says("PASS guess"), "");
        while talk.action().is_some() {}
        talk.session.authenticated(LogIn::Denied, talk.now);
        assert_eq!(talk.passes(Duration::from_millis(seconds * 1000 - 1)), "");
        assert_eq!(talk.passes(Duration::from_millis(1))[..3], *code);
    }
    assert_eq!(talk.action(), Some(Action::AbortTransfer));
    assert_eq!(talk.action(), Some(Action::Close(Closing::Attempts)));
}

#[test]
fn nothing_said_before_tls_counts_after_it() {
    // Commands behind AUTH, in the same segment or the beginning of one.
    for injected in ["AUTH TLS\r\nUSER eve\r\n", "AUTH TLS\r\nUS"] {
        let mut talk = Talk::new(tls(TlsPolicy::Offered));
        talk.session.network(injected.as_bytes(), NOW);
        assert_eq!(talk.replies(), "421 Something was said behind AUTH and before TLS; closing.\r\n");
        assert!(!talk.session.is_encrypted());
        assert!(std::iter::from_fn(|| talk.session.action()).all(|action| action != Action::StartTls));
    }
    // A user named in clear text is not a user in TLS.
    let mut talk = Talk::new(tls(TlsPolicy::Offered));
    talk.says("USER ada");
    assert_eq!(talk.code("AUTH TLS"), 234);
    assert_eq!(std::iter::from_fn(|| talk.action()).last(), Some(Action::StartTls));
    assert!(!talk.session.takes_input());
    talk.session.tls_started(true, NOW);
    assert_eq!(talk.code("PASS engine"), 503);
}

#[test]
fn no_downgrade_where_tls_is_required() {
    let mut talk = Talk::new(tls(TlsPolicy::Required));
    assert_eq!(talk.says("USER ada"), "530 Say AUTH TLS first: passwords are not taken in clear text.\r\n");
    talk.says("AUTH TLS");
    talk.session.tls_started(true, NOW);
    talk.says("USER ada");
    talk.says("PASS engine");
    talk.grants(true, None);
    talk.replies();
    while talk.action().is_some() {}
    talk.listens("EPSV");
    assert_eq!(talk.code("RETR file"), 522);
    assert_eq!(talk.code("PROT P"), 503);
    assert_eq!(talk.code("PBSZ 0"), 200);
    assert_eq!(talk.code("PROT C"), 534);
    assert_eq!(talk.code("PROT P"), 200);
    assert_eq!(talk.code("CCC"), 534);
    assert_eq!(talk.code("REIN"), 502);
}

#[test]
fn data_goes_to_the_client_alone() {
    let refused = "504 Data connections go to your own address only.\r\n";
    let mut talk = Talk::user(ServerConfig::default(), true);
    assert_eq!(talk.says("PORT 10,0,0,1,16,1"), refused);
    assert_eq!(talk.says("EPRT |2|2001:db8::1|4097|"), refused);
    assert_eq!(talk.says("PORT 192,0,2,9,0,25"), "504 Data connections go to no port below 1024.\r\n");
    assert_eq!(talk.code("EPRT |1|192.0.2.9|4097|"), 200);
    assert_eq!(talk.code("EPRT |3|x|1|"), 522);
    assert_eq!(talk.code("EPSV 2"), 522);
    let mut third = Talk::user(ServerConfig { third_party: true, ..ServerConfig::default() }, true);
    assert_eq!(third.code("PORT 10,0,0,1,16,1"), 200);
    assert_eq!(third.code("PORT 10,0,0,1,0,25"), 504);
    assert_eq!(third.code("PORT 127,0,0,1,16,1"), 504);
    assert_eq!(third.code("PORT 255,255,255,255,16,1"), 504);
}

#[test]
fn passive_behind_a_nat() {
    let config = ServerConfig { passive_address: Some([203, 0, 113, 5].into()), ..ServerConfig::default() };
    let mut talk = Talk::user(config, true);
    assert_eq!(talk.listens("PASV"), "227 Entering Passive Mode (203,0,113,5,117,48).\r\n");
    assert_eq!(talk.listens("EPSV"), "229 Entering Extended Passive Mode (|||30000|)\r\n");
    assert_eq!(talk.code("EPSV ALL"), 200);
    assert_eq!(talk.code("PASV"), 503);
    assert_eq!(talk.code("PORT 192,0,2,9,16,1"), 503);
}

#[test]
fn a_transfer_with_stat_and_abor_in_its_middle() {
    let mut talk = Talk::user(ServerConfig::default(), true);
    talk.listens("PASV");
    assert_eq!(talk.code("REST 10"), 350);
    assert_eq!(talk.says("RETR dir/file"), "");
    let Some(Action::Transfer(request)) = talk.action() else { panic!("no transfer") };
    assert!(matches!(&request.task, Task::Retrieve { path, start: 10 } if path.to_string() == "/dir/file"));
    assert_eq!(request.channel, Channel::Passive);
    let opened = talk.event(TransferEvent::Opened { size_bytes: Some(99), name: None });
    assert_eq!(opened, "150 Opening data connection for /dir/file (99 bytes).\r\n");
    talk.session.progress(42);
    assert_eq!(talk.says("\u{0}"), "", "what is not a command waits");
    talk.session.urgent();
    assert_eq!(talk.says("STAT"), "213 /dir/file: 42 of 99 bytes are moved.\r\n");
    assert_eq!(talk.says("PWD"), "", "it waits for the end");
    assert_eq!(talk.event(TransferEvent::Marker { theirs: "m1".into(), ours: 7 }), "110 MARK m1 = 7\r\n");
    // The Synch and ABOR, as clients send them.
    talk.session.network(b"\xff\xf4\xff\xf2ABOR\r\n", NOW);
    let replies = talk.replies();
    assert!(replies.starts_with("426 The transfer is aborted.\r\n226 Aborted.\r\n"), "{replies}");
    assert!(std::iter::from_fn(|| talk.action()).any(|action| action == Action::AbortTransfer));
    assert_eq!(talk.event(TransferEvent::Ended(Ok(1))), "", "nobody asks any more");
}

#[test]
fn what_went_wrong_is_told_by_its_code() {
    let opened = TransferEvent::Opened { size_bytes: None, name: None };
    for (error, before, after) in [
        (TransferError::Storage(StorageError::NotFound), "550", "451"),
        (TransferError::Storage(StorageError::Quota), "552", "552"),
        (TransferError::Storage(StorageError::Full), "452", "452"),
        (TransferError::NoDirectory, "501", "501"),
        (TransferError::NoConnection("x".into()), "425", "425"),
        (TransferError::Tls("x".into()), "522", "522"),
        (TransferError::Stalled, "426", "426"),
        (TransferError::Incomplete, "426", "426"),
    ] {
        let mut talk = Talk::user(ServerConfig::default(), true);
        talk.says("STOR x");
        assert_eq!(talk.event(TransferEvent::Ended(Err(error.clone())))[..3], *before, "{error:?}");
        talk.says("STOR x");
        talk.event(opened.clone());
        assert_eq!(talk.event(TransferEvent::Ended(Err(error.clone())))[..3], *after, "{error:?}");
    }
}

#[test]
fn whoever_says_nothing_is_told_good_bye() {
    let mut visitor = Talk::new(ServerConfig::default());
    assert!(visitor.passes(Duration::from_secs(119)).is_empty());
    assert_eq!(visitor.passes(Duration::from_secs(1)), "421 Nobody logged in in time; closing.\r\n");
    let mut user = Talk::user(ServerConfig::default(), true);
    assert_eq!(user.code("SITE IDLE 60"), 200);
    assert_eq!(user.code("SITE IDLE 1"), 501);
    assert!(user.passes(Duration::from_secs(59)).is_empty());
    assert_eq!(user.passes(Duration::from_secs(1)), "421 Nothing was said for too long; closing.\r\n");
    // An octet now and then keeps no line open.
    let mut slow = Talk::user(ServerConfig::default(), true);
    for _ in 0..29 {
        slow.session.network(b"x", slow.now);
        assert!(slow.passes(Duration::from_secs(1)).is_empty());
    }
    assert_eq!(slow.passes(Duration::from_secs(1)), "421 A command took too long to come; closing.\r\n");
}

#[test]
fn commands_without_end_and_without_number() {
    let mut talk = Talk::user(ServerConfig::default(), true);
    for _ in 0..1000 {
        talk.session.network(&[b'x'; 1000], NOW);
    }
    assert_eq!(talk.says(""), "500 The line is too long.\r\n");
    // During a transfer so many wait, and the rest stays with the network.
    talk.says("RETR x");
    for _ in 0..100_000 {
        if !talk.session.takes_input() {
            break;
        }
        talk.session.network(b"PWD\r\n", NOW);
    }
    assert!(!talk.session.takes_input());
    talk.replies();
    let answered = talk.event(TransferEvent::Ended(Ok(0)));
    assert!(answered.matches("257 ").count() >= 16 && talk.session.takes_input());
}

#[test]
fn rename_and_restart_hold_for_the_next_command_only() {
    let mut talk = Talk::user(ServerConfig::default(), true);
    talk.says("RNFR a");
    talk.session.file_done(Ok(FileReply::Done), NOW);
    talk.replies();
    talk.code("NOOP");
    assert_eq!(talk.code("RNTO b"), 503);
    talk.code("REST 5");
    talk.code("PWD");
    while talk.action().is_some() {}
    talk.says("RETR a");
    assert!(
        matches!(talk.action(), Some(Action::Transfer(r)) if matches!(r.task, Task::Retrieve { start: 0, .. }))
    );
}

#[test]
fn paths_and_quotes() {
    let mut talk = Talk::user(ServerConfig::default(), true);
    talk.says("CWD /a \"b\"/../c\"d");
    let Some(Action::File(FileRequest::Enter(path))) = talk.action() else { panic!("nothing is asked") };
    assert_eq!(path.to_string(), "/c\"d");
    talk.session.file_done(Ok(FileReply::Done), NOW);
    talk.replies();
    assert_eq!(talk.says("PWD"), "257 \"/c\"\"d\" is the current directory.\r\n");
    assert_eq!(talk.code("RETR a\rb"), 501);
    assert!(Command::parse(b"CWD a\0b").is_err());
}

#[test]
fn features_are_listed_as_rfc_2389_asks() {
    let mut talk = Talk::user(tls(TlsPolicy::Offered), true);
    assert_eq!(talk.says("OPTS MLST size;type;nothing;"), "200 MLST OPTS type;size;\r\n");
    for wrong in ["size", "type;size", "type ;"] {
        assert_eq!(talk.code(&format!("OPTS MLST {wrong}")), 501, "{wrong}");
    }
    assert_eq!(talk.code("OPTS HASH SHA-512"), 200);
    let features = talk.says("FEAT");
    assert!(features.starts_with("211-Extensions:\r\n AUTH TLS\r\n"));
    assert!(features.contains(" HASH SHA-256;SHA-512*;SHA-1\r\n"));
    assert!(features.contains(" MLST type*;size*;modify;perm;unique;UNIX.mode;\r\n"));
    assert!(features.ends_with("\r\n211 End\r\n"));
}

/// No command, repeated without end before or after login, is read while replies wait.
#[test]
fn a_client_that_reads_nothing_is_not_answered_for_ever() {
    for verb in Verb::ALL {
        for mut talk in [Talk::new(tls(TlsPolicy::Offered)), Talk::user(tls(TlsPolicy::Offered), true)] {
            let line = format!("{} {}\r\n", verb.name(), sample(*verb)).repeat(40);
            let mut most = 0;
            for _ in 0..2000 {
                if talk.session.takes_input() {
                    talk.session.network(line.as_bytes(), NOW);
                }
                while let Some(action) = talk.action() {
                    match action {
                        Action::File(_) => talk.session.file_done(Err(StorageError::NotFound), NOW),
                        Action::Transfer(_) => {
                            talk.session.transfer_event(TransferEvent::Ended(Ok(1)), NOW);
                        }
                        Action::Listen(_) => talk.session.listening(Some(at("192.0.2.1:30000")), NOW),
                        Action::Authenticate { .. } => talk.session.authenticated(LogIn::Unavailable, NOW),
                        _ => {}
                    }
                }
                most = most.max(talk.session.held_bytes());
            }
            assert!(most < 64 * 1024, "{}: {most} octets are held", verb.name());
        }
    }
}

#[test]
fn a_client_that_reads_nothing_is_left_and_one_that_reads_slowly_is_not() {
    let mut talk = Talk::new(ServerConfig::default());
    let fill = |talk: &mut Talk| {
        while talk.session.takes_input() {
            talk.session.network(b"HELP\r\n", talk.now);
        }
    };
    fill(&mut talk);
    for _ in 0..3 {
        talk.passes(Duration::from_secs(30));
        // An answer's part is read, and then the rest.
        talk.session.sent(talk.session.pending().len(), talk.now);
        fill(&mut talk);
        assert!(talk.action().is_none());
    }
    let waits = talk.session.pending().len();
    talk.now += Duration::from_secs(60);
    talk.session.timeout(talk.now);
    assert_eq!(talk.session.pending().len(), waits, "there is nobody to tell");
    assert!(std::iter::from_fn(|| talk.action()).any(|action| action == Action::Close(Closing::TooSlow)));
}
