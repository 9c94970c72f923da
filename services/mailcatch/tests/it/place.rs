//! A mail catcher on a host of its own, which the system reaches through the link `user`.

use std::net::SocketAddr;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use inhost_base::Duration;
use inhost_common::service::{HostFiles, Service, ServiceContext};
use inhost_common::{Callers, Denials, Transport};
use inhost_gateway::{Forward, GatewayConfig, guest_interface, user_link};
use inhost_interop::{DEADLINE, join, output};
use inhost_mailcatch::service::{MailCatcher, Section};
use inhost_runtime::{Runtime, entropy};
use inhost_stack::StackConfig;

pub struct Place {
    pub smtp: SocketAddr,
    pub web: SocketAddr,
    /// What the program would print.
    pub lines: mpsc::Receiver<String>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Place {
    pub fn new(section: Section) -> Place {
        let (tell, told) = mpsc::channel();
        let (print, lines) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || serve(&section, &tell, print, &stopping));
        let (smtp, web) = told.recv_timeout(DEADLINE).expect("the host starts");
        Place { smtp, web, lines, stop, thread: Some(thread) }
    }
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.web)
    }
    /// What curl says to a path; it ends with the status.
    pub fn curl(&self, path: &str, more: &[&str]) -> String {
        let mut command = Command::new("curl");
        command.args(["-sS", "-w", "\n%{http_code}", "--max-time", "40"]).args(more).arg(self.url(path));
        String::from_utf8(output(&mut command).stdout).unwrap()
    }
    /// Sends a message with curl; its exit status and what it said.
    pub fn send(&self, from: &str, to: &[&str], message: &str, more: &[&str]) -> (i32, String) {
        use std::io::{Seek, Write};
        let mut file = tempfile();
        file.write_all(message.as_bytes()).unwrap();
        file.rewind().unwrap();
        let mut command = Command::new("curl");
        command.args(["-sS", "-v", "--crlf", "--max-time", "40", "--mail-from", from, "-T", "-"]).args(more);
        command.args(to.iter().flat_map(|to| ["--mail-rcpt", to]));
        command.arg(format!("smtp://{}/client.example", self.smtp)).stdin(file);
        let output = output(&mut command);
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
    }
    pub fn line(&self) -> String {
        self.lines.recv_timeout(DEADLINE).expect("a line is printed")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            join(thread);
        }
    }
}

/// A file without a name.
fn tempfile() -> std::fs::File {
    let path = std::env::temp_dir().join(format!(
        "inhost-mailcatch-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let file =
        std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

fn serve(
    section: &Section,
    tell: &mpsc::Sender<(SocketAddr, SocketAddr)>,
    print: mpsc::Sender<String>,
    stop: &AtomicBool,
) {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let (host, callers) = (runtime.host().clone(), Callers::default());
    let mut config = GatewayConfig::default();
    config.callers = callers.clone();
    let outside = "127.0.0.1:0".parse().unwrap();
    config.forwards = [section.port, section.web_port]
        .map(|guest_port| Forward { transport: Transport::Tcp, outside, guest_port })
        .to_vec();
    let interface = guest_interface("user", &config);
    let (driver, running) = user_link(&host, config, runtime.handle(), entropy().unwrap()).unwrap().split();
    runtime.add_link(&host, interface, Box::new(driver)).unwrap();
    let context = ServiceContext {
        host: host.clone(),
        reactor: runtime.handle().clone(),
        callers,
        denials: Denials::default(),
        sessions: Default::default(),
        files: HostFiles { are_users_named: false, users: None, hosts: "/dev/null".into() },
        resolvers: Default::default(),
        program: "inhost".into(),
        descriptor_limit: None,
        netstat: Rc::new(String::new),
        operator: Rc::new(inhost_common::service::NoOperator),
        unix_time: || std::time::UNIX_EPOCH.elapsed().unwrap(),
        entropy,
    };
    MailCatcher::check(section).unwrap();
    let prepared = MailCatcher::prepare(section, &context.files).unwrap();
    let service = MailCatcher::start(section, prepared, &context).unwrap();
    service.catcher().listen(move |news| drop(print.send(news.line())));
    let at: Vec<SocketAddr> = running.gateway.forwards().iter().map(|forward| forward.outside).collect();
    tell.send((at[0], at[1])).unwrap();
    runtime
        .run(async {
            while !stop.load(Ordering::Relaxed) {
                host.sleep(Duration::from_millis(20)).await;
            }
        })
        .unwrap();
    host.stop();
}
