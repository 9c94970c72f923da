use inhost_base::Endpoint;

use super::*;
use crate::protocol::{Family, Parameters};

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
fn a_name_cannot_be_two_commands() {
    let mut client = logged_in("SIZE");
    client.begin(Operation::Command("DELE a\r\nDELE b".into()));
    assert_eq!(plays(&mut client, &[]), ["DELE aDELE b"]);
    plays(&mut client, &["550 no"]);
    let Action::Done(Err(error)) = client.action().unwrap() else { panic!("it is refused") };
    assert!(error.to_string().ends_with(": 550 no"));
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
