use inhost_base::Endpoint;

use super::*;
use crate::codec::{Family, Parameters};

fn at(text: &str) -> Endpoint {
    text.parse::<std::net::SocketAddr>().unwrap().into()
}

/// What the client says to each reply; an empty reply stands for nothing.
fn plays(client: &mut Client, replies: &[&str]) -> Vec<String> {
    let mut said = Vec::new();
    let mut hear = |client: &mut Client| {
        let text = String::from_utf8_lossy(client.pending()).into_owned();
        client.sent(text.len());
        said.extend(text.split_terminator("\r\n").map(str::to_owned));
    };
    hear(client);
    for reply in replies {
        client.network(format!("{reply}\r\n").as_bytes());
        hear(client);
    }
    said
}

fn actions(client: &mut Client) -> Vec<Action> {
    std::iter::from_fn(|| client.action()).collect()
}

fn logged_in(features: &str) -> Client {
    let mut client = Client::new(Family::V4);
    let login =
        Operation::LogIn { user: "ada".into(), password: "engine".into(), account: Some("lab".into()) };
    client.begin(login);
    let said = plays(&mut client, &["331 p", "332 a", "230 in", &format!("211-F\r\n {features}\r\n211 E")]);
    assert_eq!(said[..4], ["USER ada", "PASS engine", "ACCT lab", "FEAT"]);
    if features.contains("UTF8") {
        plays(&mut client, &["200 ok"]);
    }
    assert!(matches!(actions(&mut client)[..], [Action::Done(Ok(_))]));
    client
}

/// A name with a line end would be two commands, and without it the name of another file.
#[test]
fn a_name_with_a_line_end_is_not_sent() {
    let mut client = logged_in("SIZE");
    let Operation::Transfer(transfer) = retrieve(DataVia::Passive) else { panic!() };
    let odd = Transfer { command: "STOR n\nl".into(), ..transfer };
    for operation in [Operation::Transfer(odd), Operation::Command("DELE a\r\nDELE b".into())] {
        client.begin(operation);
        assert!(plays(&mut client, &[]).is_empty());
        assert!(matches!(&actions(&mut client)[..], [Action::Done(Err(ClientError::Local(_)))]));
    }
    client.begin(Operation::Command("NOOP".into()));
    assert_eq!(plays(&mut client, &["200 ok"]), ["NOOP"]);
}

fn retrieve(via: DataVia) -> Operation {
    Operation::Transfer(Transfer {
        command: "RETR x".into(),
        parameters: Parameters::IMAGE,
        restart: Some(7),
        size_bytes: None,
        via,
    })
}

#[test]
fn a_download_in_the_order_that_rfc_3659_asks_for() {
    let mut client = logged_in("REST STREAM\r\n UTF8\r\n HASH SHA-256*;SHA-1");
    assert_eq!(client.features().argument("HASH"), Some("SHA-256*;SHA-1"));
    client.begin(retrieve(DataVia::Passive));
    assert_eq!(plays(&mut client, &["200 ok"]), ["TYPE I", "EPSV"]);
    assert_eq!(plays(&mut client, &["229 (|||99|)", "350 ok"]), ["REST 7", "RETR x"]);
    assert_eq!(actions(&mut client), [Action::Connect(Passive::Port(99))]);
    plays(&mut client, &["150 here"]);
    assert_eq!(actions(&mut client), [Action::Move]);
    plays(&mut client, &["226 done"]);
    assert_eq!(actions(&mut client), []);
    client.data_ended(Ok(()));
    assert!(matches!(actions(&mut client)[..], [Action::Done(Ok(_))]));
    // What was set stays set.
    client.begin(retrieve(DataVia::Passive));
    assert_eq!(plays(&mut client, &[]), ["EPSV"]);
}

#[test]
fn an_old_server_without_the_extended_commands() {
    let mut client = logged_in("SIZE");
    client.begin(retrieve(DataVia::Passive));
    let said = plays(&mut client, &["200 ok", "500 what", "227 (127,0,0,1,4,1)"]);
    assert_eq!(said, ["TYPE I", "EPSV", "PASV", "REST 7"]);
    assert_eq!(actions(&mut client), [Action::Connect(Passive::Named(at("127.0.0.1:1025")))]);
    plays(&mut client, &["350 ok", "550 no"]);
    assert!(matches!(
        &actions(&mut client)[..],
        [Action::DropData, Action::Done(Err(ClientError::Refused(..)))]
    ));
    client.begin(retrieve(DataVia::Active));
    assert_eq!(actions(&mut client), [Action::Listen]);
    client.listening(at("10.0.0.1:1025"));
    assert_eq!(plays(&mut client, &[]), ["PORT 10,0,0,1,4,1"]);
}

#[test]
fn the_words_before_tls_count_no_more() {
    let mut client = Client::new(Family::V4);
    client.begin(Operation::Secure);
    assert_eq!(plays(&mut client, &["234 go"]), ["AUTH TLS"]);
    assert_eq!(actions(&mut client), [Action::StartTls]);
    // Somebody on the way slips in an answer to what will be said in TLS.
    plays(&mut client, &["200 PBSZ=0"]);
    assert!(matches!(actions(&mut client)[..], [Action::Done(Err(ClientError::Protocol(_)))]));
    let mut client = Client::new(Family::V4);
    client.begin(Operation::Secure);
    client.network(b"234 go\r\n200 PB");
    assert!(client.is_midway());
    // And a server that is no longer asked to protect refuses nothing quietly.
    let mut client = Client::new(Family::V4);
    client.begin(Operation::Secure);
    plays(&mut client, &["500 what"]);
    assert!(matches!(actions(&mut client)[..], [Action::Done(Err(ClientError::Refused(..)))]));
}

#[test]
fn two_servers_and_an_abort() {
    let mut client = logged_in("SIZE");
    client.begin(Operation::Offer(Parameters::IMAGE));
    assert_eq!(plays(&mut client, &["200 ok", "227 (10,0,0,1,4,1)"]), ["TYPE I", "PASV"]);
    assert_eq!(actions(&mut client), [Action::Done(Ok(Answer::Offered(at("10.0.0.1:1025"))))]);
    client.begin(Operation::Call(Parameters::IMAGE, at("10.0.0.1:1025")));
    assert_eq!(plays(&mut client, &["200 ok"]), ["PORT 10,0,0,1,4,1"]);
    client.begin(Operation::Begin("RETR x".into()));
    // The end comes before anybody asks for it.
    assert_eq!(plays(&mut client, &["150 here", "226 done"]), ["RETR x"]);
    actions(&mut client);
    client.begin(Operation::Finish);
    assert!(matches!(actions(&mut client)[..], [Action::Done(Ok(_))]));
    client.begin(retrieve(DataVia::Passive));
    plays(&mut client, &["229 (|||99|)", "350 ok", "150 here"]);
    client.begin(Operation::Abort);
    assert!(client.pending().starts_with(b"\xff\xf4\xff\xf2ABOR\r\n"));
    plays(&mut client, &["426 gone", "226 aborted"]);
    assert!(matches!(actions(&mut client).last(), Some(Action::Done(Ok(_)))));
}

/// Nothing but consent is consent: who stands between and answers AUTH otherwise gets no password in clear text.
#[test]
fn no_reply_but_234_begins_tls_and_none_ends_it_without() {
    for reply in ["331 go on", "334 more", "350 more", "500 what", "421 no"] {
        let mut client = Client::new(Family::V4);
        client.begin(Operation::Secure);
        plays(&mut client, &[reply]);
        assert!(matches!(actions(&mut client)[..], [Action::Done(Err(ClientError::Refused(..)))]), "{reply}");
    }
    // Nor is data protected by anything but 200 to PROT.
    for replies in [&["331 more"][..], &["200 ok", "331 more"], &["200 ok", "536 no"]] {
        let mut client = Client::new(Family::V4);
        client.begin(Operation::Protect);
        plays(&mut client, replies);
        assert!(matches!(actions(&mut client)[..], [Action::Done(Err(ClientError::Refused(..)))]));
    }
}

/// A client in each of its states, which it reached by replies; the last word of the name is what it said last, or what
/// it waits for.
fn states() -> Vec<(&'static str, Client)> {
    let after = |operation: Operation, replies: &[&str]| {
        let mut client = Client::new(Family::V4);
        client.begin(operation);
        plays(&mut client, replies);
        actions(&mut client);
        client
    };
    let login = || Operation::LogIn { user: "a".into(), password: "p".into(), account: Some("lab".into()) };
    let down = |replies: &[&str]| after(retrieve(DataVia::Passive), replies);
    let up = |refusals: usize| {
        let mut client = after(retrieve(DataVia::Active), &["200 ok"]);
        for number in 0..=refusals {
            client.listening(at("10.0.0.1:50000"));
            let refusal: &[&str] = if number < refusals { &["500 what"] } else { &[] };
            plays(&mut client, refusal);
        }
        actions(&mut client);
        client
    };
    let ended = |outcome: Result<(), String>| {
        let mut client = down(&["200 ok", "229 (|||99|)", "350 ok", "150 b"]);
        client.data_ended(outcome);
        client
    };
    let other = || Operation::Call(Parameters::IMAGE, at("10.0.0.2:99"));
    let aborting = |replies: &[&str]| {
        let mut client = down(&["200 ok", "229 (|||99|)", "350 ok", "150 b"]);
        client.begin(Operation::Abort);
        plays(&mut client, replies);
        actions(&mut client);
        client
    };
    vec![
        ("greeting", after(Operation::Greet, &[])),
        ("AUTH", after(Operation::Secure, &[])),
        ("before TLS", after(Operation::Secure, &["234 ok"])),
        ("PBSZ", after(Operation::Protect, &[])),
        ("PROT", after(Operation::Protect, &["200 ok"])),
        ("USER", after(login(), &[])),
        ("PASS", after(login(), &["331 p"])),
        ("ACCT", after(login(), &["331 p", "332 a"])),
        ("FEAT", after(login(), &["230 in"])),
        ("OPTS", after(login(), &["230 in", "211-F\r\n UTF8\r\n211 E"])),
        ("a command", after(Operation::Command("NOOP".into()), &[])),
        ("down: TYPE", down(&[])),
        ("down: EPSV", down(&["200 ok"])),
        ("down: PASV", down(&["200 ok", "500 what"])),
        ("down: REST", down(&["200 ok", "229 (|||99|)"])),
        ("down: RETR", down(&["200 ok", "229 (|||99|)", "350 ok"])),
        ("moving", down(&["200 ok", "229 (|||99|)", "350 ok", "150 b"])),
        ("answered", down(&["200 ok", "229 (|||99|)", "350 ok", "150 b", "226 c"])),
        ("moved", ended(Ok(()))),
        ("broken off", ended(Err("lost".into()))),
        ("up: listens", after(retrieve(DataVia::Active), &["200 ok"])),
        ("up: EPRT", up(0)),
        ("up: PORT", up(1)),
        ("offer: PASV", after(Operation::Offer(Parameters::IMAGE), &["200 ok"])),
        ("call: PORT", after(other(), &["200 ok"])),
        ("begin", after(Operation::Begin("STOR x".into()), &[])),
        ("finish", after(Operation::Finish, &[])),
        ("ABOR", aborting(&[])),
        ("ABOR, 426", aborting(&["426 broken off"])),
    ]
}

/// What a client says and wants, in each state for each kind of reply.
fn table() -> String {
    const REPLIES: [&str; 6] =
        ["125 b", "229 (|||99|) (1,2,3,4,5,6)", "331 more", "450 later", "500 what", "421 closing"];
    let wants = |action: Action| match action {
        Action::Done(Ok(_)) => "done".to_owned(),
        Action::Done(Err(ClientError::Refused(..))) => "refused".into(),
        Action::Done(Err(error)) => format!("{error:?}").split('(').next().unwrap().to_lowercase(),
        other => format!("{other:?}").split('(').next().unwrap().to_lowercase(),
    };
    let cell = |client: &mut Client, reply: &str| {
        let said = plays(client, &[reply]);
        let verbs = said.iter().filter_map(|line| line.split(' ').next()).filter(|verb| !verb.is_empty());
        let parts: Vec<String> =
            verbs.map(str::to_owned).chain(actions(client).into_iter().map(wants)).collect();
        if parts.is_empty() { "waits".to_owned() } else { parts.join("+") }
    };
    let mut rows =
        vec![REPLIES.iter().fold(format!("{:12}", ""), |row, reply| row + &format!(" {:18}", &reply[..3]))];
    for (number, (name, _)) in states().iter().enumerate() {
        rows.push(REPLIES.iter().fold(format!("{name:12}"), |row, reply| {
            // Each cell begins with its own client.
            let (_, mut client) = states().swap_remove(number);
            plays(&mut client, &[]);
            row + &format!(" {:18}", cell(&mut client, reply))
        }));
    }
    rows.iter().map(|row| format!("{}\n", row.trim_end())).collect()
}

/// The whole matrix. To accept a change, run with INHOST_SNAPSHOTS=write and read the difference.
#[test]
fn every_reply_in_every_state() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/client/table.txt");
    let table = table();
    if std::env::var_os("INHOST_SNAPSHOTS").is_some_and(|value| value == "write") {
        std::fs::write(path, &table).unwrap();
    }
    assert_eq!(table, std::fs::read_to_string(path).unwrap_or_default());
}
