//! The page in a browser, with a message that tries to escape. Pictures of it lie in the target's `tmp`.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use inhost_interop::{DEADLINE, Running, output, until};
use inhost_mailcatch::service::Section;
use serde_json::{Value, json};

use crate::place::Place;

/// A page of headless Chromium, driven by its DevTools protocol over a WebSocket (RFC 6455).
struct Page {
    stream: TcpStream,
    asked: u64,
    profile: PathBuf,
    _browser: Running,
}

impl Page {
    fn open(url: &str) -> Page {
        let profile =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("profile-{}", std::process::id()));
        let mut command = Command::new("chromium");
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-port=0",
                "--window-size=1200,760",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(url);
        let mut browser = Running::start(&mut command);
        let printed = browser.wait_for("/devtools/browser/");
        let at = printed.split("ws://").nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned();
        let path = until("the page is listed", || {
            let list = output(Command::new("curl").args(["-s", &format!("http://{at}/json/list")])).stdout;
            let pages: Vec<Value> = serde_json::from_slice(&list).ok()?;
            let page = pages.into_iter().find(|page| page["type"] == "page")?;
            Some(page["webSocketDebuggerUrl"].as_str()?.split_once(&at)?.1.to_owned())
        });
        let mut stream = TcpStream::connect(&at).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {at}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut octet = [0];
            stream.read_exact(&mut octet).unwrap();
            answer.extend(octet);
        }
        Page { stream, asked: 0, profile, _browser: browser }
    }
    /// Calls a method; its result.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        let answer = self.ask(method, parameters);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }
    /// Calls a method; its answer.
    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.asked += 1;
        let text = json!({ "id": self.asked, "method": method, "params": parameters }).to_string();
        // One text frame, masked with zeros.
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.stream.write_all(&frame).unwrap();
        loop {
            let value: Value = serde_json::from_slice(&self.message()).unwrap();
            if value["id"] == self.asked {
                return value;
            }
        }
    }
    /// The next message: its frames in one.
    fn message(&mut self) -> Vec<u8> {
        let mut message = Vec::new();
        loop {
            let mut head = [0; 2];
            self.stream.read_exact(&mut head).unwrap();
            let mut more = [0; 8];
            let length = match head[1] {
                126 => {
                    self.stream.read_exact(&mut more[6..]).unwrap();
                    u64::from_be_bytes(more)
                }
                127 => {
                    self.stream.read_exact(&mut more).unwrap();
                    u64::from_be_bytes(more)
                }
                length => u64::from(length),
            };
            let before = message.len();
            message.resize(before + usize::try_from(length).unwrap(), 0);
            self.stream.read_exact(&mut message[before..]).unwrap();
            if head[0] & 0x80 != 0 {
                return message;
            }
        }
    }
    /// The value of an expression on the page; null while there is no page yet.
    fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        self.ask("Runtime.evaluate", parameters)["result"]["result"]["value"].clone()
    }
    fn wait(&mut self, what: &str) {
        until(what, || (self.value(what) == true).then_some(()));
    }
    fn key(&mut self, key: &str) {
        let code = match key {
            "Escape" => 27,
            key => key.to_uppercase().bytes().next().unwrap(),
        };
        let text = if key.len() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let parameters = json!({ "type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", parameters);
        }
    }
    fn picture(&mut self, name: &str) {
        use base64::Engine;
        let result = self.call("Page.captureScreenshot", json!({}));
        let png = base64::engine::general_purpose::STANDARD.decode(result["data"].as_str().unwrap()).unwrap();
        fs::write(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("mailcatch-{name}.png")), png)
            .unwrap();
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.profile);
    }
}

#[test]
fn a_hostile_message_is_shown_and_does_nothing() {
    let place = Place::new(Section::default());
    // What loads something calls here.
    let canary = TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let evil = format!("http://{}", canary.local_addr().unwrap());
    let mut page = Page::open(&place.url("/"));
    page.wait("document.querySelector('#live.good') !== null");

    let html = format!(
        "<script>top.document.title='RAN';fetch('{evil}/a')</script><h2>You have won</h2><img src={evil}/b onerror=\"top.document.title='RAN'\">\
         <svg onload=\"top.document.title='RAN'\"></svg><p style=\"background:url({evil}/c)\">x</p><style>h2{{background:url({evil}/d)}}</style>\
         <iframe src={evil}/e></iframe><object data={evil}/f></object><link rel=stylesheet href={evil}/g><meta http-equiv=refresh content=\"0;url={evil}/h\">\
         <form action={evil}/i><input autofocus onfocus=\"top.document.title='RAN'\"></form><base href={evil}/><a href=j>x</a>"
    );
    let message = format!(
        "From: \"<img src={evil}/k onerror=document.title=1>\" <x@evil.example>\nSubject: <script>document.title='RAN'</script>\n\
         MIME-Version: 1.0\nContent-Type: text/html\n\n{html}\n"
    );
    let (status, said) = place.send("x@evil.example", &["ada@example.org"], &message, &[]);
    assert_eq!(status, 0, "{said}");
    // It appears at once, is opened by a key, and is no longer unread.
    page.wait("document.querySelectorAll('#list li.unread').length === 1");
    page.key("j");
    page.wait(
        "document.querySelector('#view h1')?.textContent === \"<script>document.title='RAN'</script>\"",
    );
    page.wait("document.querySelectorAll('#list li.unread').length === 0");
    page.wait("document.querySelector('#view iframe') !== null");
    let loaded = "performance.getEntriesByType('resource').some(entry => entry.name.endsWith('/html') && entry.responseEnd > 0)";
    page.wait(loaded);
    page.picture("html");
    // The title shows unread messages, and that is all.
    page.wait("document.title === 'Mail catcher'");
    assert_eq!(page.value("document.querySelectorAll('main script, main img, main svg').length"), 0);
    for tab in ["text", "headers", "source", "parts", "dialogue"] {
        page.value(&format!("document.getElementById('tab-{tab}').click()"));
        page.wait("document.getElementById('tab-panel').textContent.length > 0");
    }
    page.key("r");
    page.wait("document.getElementById('dialog').open");
    page.picture("rules");
    page.key("Escape");
    page.call(
        "Emulation.setEmulatedMedia",
        json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] }),
    );
    page.call(
        "Emulation.setDeviceMetricsOverride",
        json!({ "width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": true }),
    );
    page.picture("narrow");
    assert_eq!(
        page.value("document.documentElement.scrollWidth <= 400"),
        true,
        "nothing is wider than the screen"
    );
    page.value("document.activeElement.blur()");
    page.key("d");
    page.wait("document.querySelectorAll('#list li').length === 0");
    assert_eq!(page.value("document.title"), "Mail catcher");
    let called = canary.accept().map(|(_, from)| from);
    assert!(
        matches!(&called, Err(error) if error.kind() == ErrorKind::WouldBlock),
        "something was loaded: {called:?}"
    );
}
