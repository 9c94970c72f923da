//! Messages by curl, and the interface by curl.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use inhost_interop::{DEADLINE, Running, until};
use inhost_mailcatch::service::Section;
use serde_json::Value;

use crate::place::Place;

const MESSAGE: &str = "From: Ada <ada@example.net>\nTo: Bob <bob@example.org>\nSubject: Welcome, Bob\nMIME-Version: 1.0\n\
    Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain\n\nHello, your code is 4711.\n\
    --x\nContent-Type: text/html\n\n<p>Hello</p>\n\
    --x\nContent-Type: text/csv\nContent-Disposition: attachment; filename=\"a/b.csv\"\n\na,b\n--x--\n";

/// The JSON of an answer, whose status is `status`.
fn json(answer: &str, status: u16) -> Value {
    let (body, code) = answer.rsplit_once('\n').unwrap();
    assert_eq!(code, status.to_string(), "{body}");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

#[test]
fn a_message_is_taken_shown_found_and_deleted() {
    let place = Place::new(Section::default());
    let to = ["bob@example.org", "hidden@example.org"];
    let (status, said) =
        place.send("bounce@example.net", &to, MESSAGE, &["-u", "ada:any", "--login-options", "AUTH=PLAIN"]);
    assert_eq!(status, 0, "{said}");
    let line = place.line();
    assert!(line.contains("bounce@example.net > bob@example.org and 1 more  \"Welcome, Bob\""), "{line}");

    let message = json(&place.curl("/api/v1/messages/wait?query=to:hidden%20has:attachment", &[]), 200);
    let id = message["id"].as_str().unwrap();
    let text = |value: &Value, path: &str| {
        value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    assert_eq!(
        (text(&message, "/subject"), text(&message, "/envelope/from")),
        ("Welcome, Bob".into(), "bounce@example.net".into())
    );
    assert_eq!(
        (text(&message, "/envelope/user"), text(&message, "/envelope/hello")),
        ("ada".into(), "client.example".into())
    );
    assert!(text(&message, "/text").contains("4711") && text(&message, "/headers/1/1").contains("Bob"));
    assert!(text(&message, "/envelope/client").starts_with("127.0.0.1:"), "the outer caller: {message}");

    let list = json(&place.curl("/api/v1/messages?query=welcome%20-subject:invoice&limit=1", &[]), 200);
    assert_eq!(
        (&list["total"], &list["unread"], &list["messages"][0]["id"]),
        (&1.into(), &1.into(), &message["id"])
    );
    assert_eq!(
        json(&place.curl(&format!("/api/v1/messages/{id}/read"), &["-X", "POST"]), 200)["unread"],
        false
    );
    assert_eq!(
        json(&place.curl("/api/v1/messages?query=is:unread", &[]), 200)["messages"],
        Value::Array(vec![])
    );
    let source = place.curl(&format!("/api/v1/messages/{id}/source"), &[]);
    assert_eq!(source.strip_suffix("\n200").unwrap().replace("\r\n", "\n"), MESSAGE);
    let csv =
        message["parts"].as_array().unwrap().iter().find(|part| part["media_type"] == "text/csv").unwrap();
    let part = place.curl(&format!("/api/v1/messages/{id}/parts/{}", csv["number"]), &["-i"]);
    assert!(
        part.contains("content-disposition: attachment; filename=\"a_b.csv\"") && part.contains("sandbox"),
        "{part}"
    );
    assert!(place.curl("/api/v1/messages/latest/html", &["-i"]).contains("img-src data:;"));

    let session = format!("/api/v1/sessions/{}", message["envelope"]["session"]);
    let ended = until("the session ends", || {
        let session = json(&place.curl(&session, &[]), 200);
        (!session["ended_ms"].is_null()).then_some(session)
    });
    let lines = ended["lines"].to_string();
    assert!(
        lines.contains("RCPT TO:<hidden@example.org>")
            && lines.contains("\"server\"")
            && !lines.contains("4711"),
        "{lines}"
    );

    for (path, status) in [
        ("/api/v1/messages?query=has:teeth", 400),
        ("/api/v1/messages/0123", 404),
        ("/api/v1/messages/x/y", 404),
        ("/api/v1/nothing", 404),
        ("/api/v1/messages?limit=x", 400),
    ] {
        assert_eq!(json(&place.curl(path, &[]), status)["status"], status, "{path}");
    }
    assert_eq!(json(&place.curl("/api/v1/messages/wait?query=none&timeout=0", &[]), 404)["status"], 404);
    assert_eq!(
        json(&place.curl("/api/v1/messages", &["-X", "DELETE", "-H", "Origin: http://evil.example"]), 403)["status"],
        403
    );
    assert_eq!(json(&place.curl("/api/v1/messages", &["-H", "Host: evil.example"]), 403)["status"], 403);
    assert_eq!(json(&place.curl("/api/v1/messages?query=welcome", &["-X", "DELETE"]), 200)["removed"], 1);
    let info = json(&place.curl("/api/v1/info", &[]), 200);
    assert_eq!(
        (&info["messages"], &info["counters"]["received"], &info["bytes"]),
        (&0.into(), &1.into(), &0.into())
    );
}

#[test]
fn a_wait_and_events_tell_of_a_message_that_comes_later() {
    let place = Place::new(Section::default());
    let curl = |path: &str| {
        let mut command = Command::new("curl");
        command.args(["-sSN", "--max-time", "50"]).arg(place.url(path));
        Running::start(&mut command)
    };
    let mut events = curl("/api/v1/events");
    events.wait_for("retry:");
    let mut wait = curl("/api/v1/messages/wait?query=subject:second&timeout=40");
    for subject in ["first", "second"] {
        let (status, said) = place.send(
            "",
            &["bob@example.org"],
            &format!("Subject: {subject}\n\n{}", "x".repeat(200_000)),
            &[],
        );
        assert_eq!(status, 0, "{said}");
    }
    assert!(wait.wait().success());
    assert!(wait.printed().contains("\"subject\":\"second\"") && wait.printed().contains("\"from\":null"));
    let seen = events.wait_for("\"second\"");
    assert!(seen.contains("event: message\ndata: {") && seen.contains("\"first\""), "{seen}");
}

#[test]
fn rules_fail_to_order() {
    let mut section = Section::default();
    section.rules = vec![r#"recipient=*@full.example reply="452 4.2.2 Mailbox full" first=1"#.into()];
    let place = Place::new(section);
    let send = |to: &str| place.send("ada@example.net", &[to], "Subject: x\n\nx\n", &[]);
    let (status, said) = send("bob@full.example");
    assert!(status != 0 && said.contains("452 4.2.2 Mailbox full"), "{said}");
    assert!(place.line().contains("at recipient: rule 1: stage=recipient"));
    assert_eq!(send("bob@full.example").0, 0, "it was for the first one alone");
    // By the interface: as fields, as text, all anew, as a script.
    let put = |method: &str, body: &str, status| {
        json(&place.curl("/api/v1/rules", &["-X", method, "-d", body]), status)
    };
    let added = put("POST", r#"{"stage": "message", "reply": "550 5.7.1 No", "every": 2}"#, 201);
    assert_eq!(added["rules"][1]["rule"], r#"stage=message reply="550 5.7.1 No" every=2"#);
    assert_eq!(added["rules"][0]["fired"], 1);
    assert_eq!((send("a@b.example").0, send("a@b.example").1.contains("550 5.7.1 No")), (0, true));
    put("PUT", r#"{"rules": ["stage=connect reply=\"421 4.7.0 Busy\" over=1/1h"]}"#, 200);
    assert_eq!((send("a@b.example").0, send("a@b.example").1.contains("421 4.7.0 Busy")), (0, true));
    put("PUT", r#"{"rules": ["stage=data drop", "stage=message drop"]}"#, 200);
    let (status, said) = send("a@b.example");
    assert!(status == 55 || status == 56, "the connection is reset: {status} {said}");
    assert_eq!(json(&place.curl("/api/v1/rules/99", &["-X", "DELETE"]), 404)["status"], 404);
    put(
        "PUT",
        "{\"script\": \"[[step]]\\nrules = ['stage=mail reply=\\\"451 4.7.1 Later\\\"']\\nfires = 1\\n\"}",
        200,
    );
    assert!(send("a@b.example").1.contains("451 4.7.1 Later"));
    assert_eq!(send("a@b.example").0, 0);
    assert_eq!(json(&place.curl("/api/v1/rules", &[]), 200)["step"], 1);
    put("POST", "{\"rule\": \"dorp\"}", 400);
    put("DELETE", "", 200);
    // Reading slowly: 20 KB at 10 KB a second.
    put("POST", r#"{"stage": "data", "speed": "10K"}"#, 201);
    let (status, said) = place.send(
        "a@b.example",
        &["a@b.example"],
        &"x\n".repeat(10_000),
        &["-w", "%{stderr}took %{time_total} s"],
    );
    let took: f64 = said.rsplit_once("took ").unwrap().1.trim_end_matches(" s").parse().unwrap();
    assert!(status == 0 && took >= 1.0, "{took}: {said}");
}

#[test]
fn messages_survive_and_starttls_and_a_token() {
    let folder = std::env::temp_dir().join(format!("inhost-mailcatch-it-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        path
    };
    let mut section = Section::default();
    section.folder = Some(folder.join("kept"));
    section.certificate = Some(file("c.pem", made.cert.pem()));
    section.key = Some(file("k.pem", made.signing_key.serialize_pem()));
    section.token = Some("s3cret".into());
    section.messages = 2;
    let place = Place::new(section.clone());
    for number in 1..=3 {
        let message = format!("Subject: number {number}\n\nx\n");
        let (status, said) = place.send("a@b.example", &["c@d.example"], &message, &["--ssl-reqd", "-k"]);
        assert_eq!(status, 0, "{said}");
    }
    assert_eq!(json(&place.curl("/api/v1/messages", &[]), 401)["status"], 401);
    let moved = place.curl("/?token=s3cret", &["-i"]);
    assert!(
        moved.contains("303 See Other") && moved.contains("location: /\r") && moved.contains("HttpOnly"),
        "{moved}"
    );
    let bearer = ["-H", "Authorization: Bearer s3cret"];
    // The oldest goes from the folder a little later.
    until("the oldest goes", || (std::fs::read_dir(folder.join("kept")).unwrap().count() == 4).then_some(()));
    drop(place);
    let place = Place::new(section);
    let list = until("messages are restored", || {
        let list = json(&place.curl("/api/v1/messages", &bearer), 200);
        (list["total"] == 2).then_some(list)
    });
    assert_eq!(list["messages"][1]["subject"], "number 2");
    assert!(list["messages"][0]["envelope"]["tls"].as_str().unwrap().contains("TLS"), "{list}");
    drop(place);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_client_that_says_nothing_sensible_is_no_harm() {
    let place = Place::new(Section::default());
    let mut stream = TcpStream::connect(place.smtp).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(b"\xff\xfe\x00\r\nEHLO \x1b[2J\r\nMAIL FROM:<\xc3>\r\nQUIT\r\n").unwrap();
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    assert!(said.starts_with(b"220 "));
    let ended = until("the session ends", || {
        let sessions = json(&place.curl("/api/v1/sessions", &[]), 200);
        (sessions[0]["ended_ms"].is_number()).then_some(sessions)
    });
    assert_eq!(ended[0]["lines"], Value::Array(vec![]), "the list has no lines");
}

/// The document names every path and method, and nothing that is not there.
#[test]
fn the_openapi_document_is_right() {
    let place = Place::new(Section::default());
    place.send("a@b.example", &["c@d.example"], MESSAGE, &[]);
    let api = json(&place.curl("/api/v1/openapi.json", &[]), 200);
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, _) in item.as_object().unwrap() {
            let own = path.replace("{id}", "latest").replace("{number}", "1");
            if own == "/events" || method == "delete" {
                continue;
            }
            let body = if own == "/rules" && method == "put" {
                "{\"rules\":[]}"
            } else {
                "{\"rule\":\"drop rate=0\"}"
            };
            let mut more = vec![
                "-X",
                match &**method {
                    "get" => "GET",
                    "post" => "POST",
                    _ => "PUT",
                },
            ];
            if method != "get" {
                more.extend(["-d", body]);
            }
            let answer = place.curl(&format!("/api/v1{own}"), &more);
            assert!(answer.ends_with("\n200") || answer.ends_with("\n201"), "{method} {path}: {answer}");
        }
    }
}
