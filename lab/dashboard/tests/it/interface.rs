//! The interface of the page.

use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};

use inhost_dashboard::Section;
use inhost_interop::{output, until};
use serde_json::Value;

use crate::place::{Place, SESSIONS};

fn rows(answer: &Value) -> &[Value] {
    answer["rows"].as_array().unwrap()
}

#[test]
fn connections_are_sorted_filtered_and_paged() {
    let place = Place::new(Section::default(), 400);
    let list = place.json("/api/connections?sort=sent&order=desc&limit=50");
    assert!(list["total"].as_u64().unwrap() >= 400, "{list}");
    assert_eq!((list["matched"] == list["total"], rows(&list).len()), (true, 50));
    let sent: Vec<u64> = rows(&list).iter().map(|row| row["sent_bytes"].as_u64().unwrap()).collect();
    assert!(sent.is_sorted_by(|one, other| one >= other), "{sent:?}");
    for row in rows(&list) {
        let causes = row["causes"].as_array().unwrap();
        let total: f64 = causes.iter().map(|cause| cause[1].as_f64().unwrap()).sum();
        assert!((total - 100.0).abs() < 0.01, "{row}");
    }
    let second = place.json("/api/connections?sort=sent&order=desc&limit=10&offset=40");
    assert_eq!(rows(&second)[1]["sent_bytes"], rows(&list)[41]["sent_bytes"]);
    let filtered =
        place.json("/api/connections?filter=sport%20%3D%20%3A4000%20and%20not%20state%20time-wait");
    assert_eq!(filtered["matched"], 200, "{filtered}");
    for wrong in ["filter=port%20x", "sort=colour", "order=colour", "offset=-1"] {
        let (body, status) = place.curl(&format!("/api/connections?{wrong}"), &[]);
        let detail: Value = serde_json::from_str(&body).unwrap();
        assert!(status == 400 && detail["detail"].as_str().is_some(), "{wrong}: {status} {body}");
    }

    // The busy one: figures, verdict, samples, frames.
    let id = rows(&list)[0]["id"].as_str().unwrap();
    let one = place.json(&format!("/api/connections/{id}"));
    assert_eq!((&one["id"], &one["state"]), (&rows(&list)[0]["id"], &"ESTABLISHED".into()));
    assert!(one["tcp"]["send"]["bytes"].as_u64() >= Some(sent[0]), "{one}");
    let verdict = place.json(&format!("/api/connections/{id}/verdict"));
    assert!(verdict["diagnosis"].as_str().is_some_and(|text| !text.is_empty()), "{verdict}");
    until("samples are taken", || {
        let samples = place.json(&format!("/api/connections/{id}/samples?after=0"));
        let of = samples["samples"].as_array().unwrap().clone();
        let grows = of.len() > 3
            && of.windows(2).all(|pair| {
                let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
                let (before, after) = (&pair[0], &pair[1]);
                number(before, "at_ns") < number(after, "at_ns")
                    && number(before, "acknowledged") <= number(after, "acknowledged")
                    && number(after, "acknowledged") <= number(after, "sent")
            });
        grows.then_some(())
    });
    assert_eq!(place.curl("/api/connections/ffffffff", &[]).1, 404);
    assert_eq!(place.curl("/api/connections/x", &[]).1, 404);
    assert_eq!(place.curl("/api/connections", &["-X", "DELETE"]).1, 405);
    assert_eq!(place.curl("/api/host/", &[]).1, 404);
}

#[test]
fn the_rest_of_the_host_is_told() {
    let place = Place::new(Section::default(), 20);
    let host = place.json("/api/host");
    let listeners = host["listeners"].as_array().unwrap();
    assert!(
        listeners
            .iter()
            .any(|of| of["local"].as_str().unwrap().ends_with(":4000") && of["accept_limit"] == 128)
    );
    assert_eq!(host["links"].as_array().unwrap().len(), 2);
    assert_eq!(host["sessions"], SESSIONS);
    let sessions = place.json("/api/sessions?offset=7&limit=2");
    assert_eq!((&sessions["total"], rows(&sessions).len()), (&SESSIONS.into(), 2));
    assert_eq!(
        (&rows(&sessions)[0]["service"], &rows(&sessions)[0]["user"]),
        (&"telnet".into(), &"user 7".into())
    );
    assert_eq!(rows(&place.json("/api/sessions?limit=100000")).len(), 1000);
    assert!(host["counters"]["connections_opened"].as_u64() >= Some(10));
    let log = place.json("/api/log?after=0");
    assert_eq!((&log["lines"][0]["level"], &log["next"]), (&"warn".into(), &1.into()));
    assert_eq!(place.json("/api/log?after=99")["next"], 1);

    // What passes: the requests of this test.
    let packets = place.json("/api/packets?limit=5");
    let last = packets["packets"].as_array().unwrap().last().unwrap().clone();
    assert!(last["text"].as_str().unwrap().contains(":80"), "{packets}");
    let whole = place.json(&format!("/api/packets/{}", last["number"]));
    assert!(
        whole["lines"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().starts_with("tcp: "))
    );
    assert_eq!(place.curl("/api/packets?filter=tcp%20prot", &[]).1, 400);
    until("histograms are filled", || {
        let histograms = place.json("/api/histograms");
        let all = histograms["histograms"].as_array().unwrap();
        let counts: Vec<u64> = all.iter().map(|of| of["count"].as_u64().unwrap()).collect();
        for of in all {
            let counted: u64 =
                of["buckets"].as_array().unwrap().iter().map(|bucket| bucket[2].as_u64().unwrap()).sum();
            assert_eq!(counted, of["count"].as_u64().unwrap(), "{of}");
        }
        // A percentile has values above it.
        for of in all {
            for percentile in of["percentiles"].as_array().unwrap() {
                let above = of["count"].as_f64().unwrap() * (100.0 - percentile[0].as_f64().unwrap()) / 100.0;
                assert!(above > 0.99, "{of}");
            }
        }
        counts.iter().all(|count| *count > 0).then_some(())
    });
}

#[test]
fn captures_are_explained_and_drawn() {
    let place = Place::new(Section::default(), 20);
    // One that goes on until its frames are written.
    let mut caller = TcpStream::connect(place.web).unwrap();
    caller.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let id = until("the call is listed", || {
        let list =
            place.json("/api/connections?sort=age&order=desc&limit=1&filter=port%2080%20state%20established");
        let row = rows(&list).first()?.clone();
        (row["received_bytes"] == 16).then_some(row["id"].clone())
    });
    let id = id.as_str().unwrap();
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("dashboard-{}.pcapng", std::process::id()));
    let mut command = Command::new("curl");
    command.args(["-sS", "-o"]).arg(&file).arg(place.url(&format!("/api/connections/{id}/frames")));
    assert!(output(&mut command).status.success());
    let data = format!("@{}", file.display());
    let (body, status) = place.curl("/api/explain", &["--data-binary", &data]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(status, 200, "{body}");
    let report: Value = serde_json::from_str(&body).unwrap();
    let verdict = &report["conversations"][0];
    assert!(verdict["diagnosis"].as_str().is_some_and(|text| !text.is_empty()), "{report}");
    let (picture, status) = place.curl(verdict["picture"].as_str().unwrap(), &[]);
    assert!(status == 200 && picture.starts_with("<svg"), "{status} {picture}");
    let (body, status) = place.curl("/api/explain", &["--data-binary", "this is not a capture"]);
    assert!(status == 400 && body.contains("is it a capture"), "{status} {body}");
    assert_eq!(place.curl("/api/explain/7-0.svg", &[]).1, 404);
}

#[test]
fn figures_for_prometheus_are_clean_and_few() {
    if !crate::browser::peer("promtool", "/prometheus/usr/bin/promtool") {
        return;
    }
    let place = Place::new(Section::default(), 10_000);
    let (text, status) = place.curl("/metrics", &[]);
    assert_eq!(status, 200);
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!(series < 500, "{series} series");
    let established: f64 = text
        .lines()
        .find_map(|line| line.strip_prefix("inhost_connections{state=\"ESTABLISHED\"} "))
        .map(|value| value.parse().unwrap())
        .unwrap();
    assert!(established >= 10_000.0, "{established}");
    let peers = std::env::var("INHOST_PEERS").unwrap_or_else(|_| "/opt/inhost-peers".to_owned());
    let mut promtool = Command::new(format!("{peers}/prometheus/usr/bin/promtool"));
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = promtool.spawn().unwrap();
    running.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let done = running.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{said}");
}

#[test]
fn without_a_token_only_the_user_who_runs_the_host_is_answered() {
    let place = Place::new(Section::default(), 2);
    assert_eq!(place.curl("/api/host", &[]).1, 200);
    for answer in &place.inner {
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    if !rustix::process::geteuid().is_root() {
        return inhost_interop::left_out("only root can call as another user");
    }
    let mut stranger = Command::new("setpriv");
    stranger.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "curl",
        "-sS",
        "-w",
        "\n%{http_code}",
    ]);
    for path in ["/", "/api/packets", "/metrics"] {
        let said =
            output(Command::new(stranger.get_program()).args(stranger.get_args()).arg(place.url(path)))
                .stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.ends_with("\n403") && said.contains("[dashboard] of host.toml"), "{path}: {said}");
    }
}

#[test]
fn who_has_no_token_sees_nothing() {
    let token = "0123456789abcdef";
    let section = Section { token: Some(token.to_owned()), ..Section::default() };
    let place = Place::new(section, 2);
    for path in ["/", "/api/host", "/metrics", "/api/explain"] {
        assert_eq!(place.curl(path, &[]).1, 401, "{path}");
    }
    assert_eq!(place.curl("/api/host", &["-H", &format!("Authorization: Bearer {token}")]).1, 200);
    assert_eq!(place.curl("/", &["-H", "Host: evil.example"]).1, 403);
}
