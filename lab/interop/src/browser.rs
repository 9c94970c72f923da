//! A page in a browser: headless Chromium, driven by its DevTools protocol over a WebSocket (RFC 6455).

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::{DEADLINE, Running, output, until};

/// A page of headless Chromium, driven by its DevTools protocol over a WebSocket (RFC 6455).
pub struct Page {
    stream: TcpStream,
    asked: u64,
    profile: PathBuf,
    folder: PathBuf,
    _browser: Running,
}

impl Page {
    /// Opens a page, in a window of 1200 by 760, with its files in `folder`.
    pub fn open(url: &str, folder: &Path) -> Page {
        let profile = folder.join(format!("profile-{}", std::process::id()));
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
        Page { stream, asked: 0, profile, folder: folder.to_owned(), _browser: browser }
    }
    /// Calls a method; its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        let answer = self.ask(method, parameters);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }
    /// Calls a method; its answer.
    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.asked += 1;
        let text = json!({ "id": self.asked, "method": method, "params": parameters }).to_string();
        // One text frame, masked with zeros.
        let mut frame = vec![0x81, 0x80 | 127];
        frame.extend((text.len() as u64).to_be_bytes());
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
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        self.ask("Runtime.evaluate", parameters)["result"]["result"]["value"].clone()
    }
    /// Waits until an expression is true.
    pub fn wait(&mut self, what: &str) {
        until(what, || (self.value(what) == true).then_some(()));
    }
    /// Presses a key: a character, `Enter`, `Escape` or an arrow.
    pub fn key(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowDown" => 40,
            key => key.to_uppercase().bytes().next().unwrap(),
        };
        let text = if key.len() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let parameters = json!({ "type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", parameters);
        }
    }
    /// What a promise gives in the end.
    pub fn settled(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }
    /// Light or dark.
    pub fn set_dark(&mut self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.call("Emulation.setEmulatedMedia", features);
    }
    /// The size of the window.
    pub fn set_size(&mut self, width: u32, height: u32) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }
    /// Writes a picture of the page, `NAME.png` in the folder.
    pub fn picture(&mut self, name: &str) {
        let result = self.call("Page.captureScreenshot", json!({}));
        let png = BASE64.decode(result["data"].as_str().unwrap_or_default()).unwrap();
        fs::write(self.folder.join(format!("{name}.png")), png).unwrap();
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.profile);
    }
}
