//! The service on a host of its own, which the system reaches through the link `user`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use inhost_base::Duration;
use inhost_common::service::{HostFiles, Operator, Order, Service, ServiceContext};
use inhost_common::users::Users;
use inhost_common::{Callers, Denials, LocalFuture, Transport};
use inhost_gateway::{Forward, GatewayConfig, guest_interface, user_link};
use inhost_interop::{join, receive};
use inhost_runtime::{Runtime, entropy};
use inhost_stack::StackConfig;
use inhost_tn3270::service::{Section, Tn3270};

use crate::kernel::script;
use crate::place::Scratch;
use crate::s3270::S3270;

struct Desk;

impl Operator for Desk {
    fn figures(&self) -> String {
        "3 sessions\n".to_owned()
    }
    fn carry_out(&self, user: &str, order: Order) -> LocalFuture<String> {
        let text = format!("{user} ordered {order}\n");
        Box::pin(async move { text })
    }
}

struct Place {
    at: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Place {
    fn new(section: &str, users: PathBuf) -> Place {
        let section: Section = toml::from_str(section).unwrap();
        let (tell, told) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || serve(&section, users, &tell, &stopping));
        Place { at: receive(&told), stop, thread: Some(thread) }
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

fn serve(section: &Section, users: PathBuf, tell: &mpsc::Sender<SocketAddr>, stop: &AtomicBool) {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let (host, callers) = (runtime.host().clone(), Callers::default());
    let mut config = GatewayConfig::default();
    config.callers = callers.clone();
    let outside = "127.0.0.1:0".parse().unwrap();
    config.forwards = vec![Forward { transport: Transport::Tcp, outside, guest_port: section.port }];
    let interface = guest_interface("user", &config);
    let (driver, running) = user_link(&host, config, runtime.handle(), entropy().unwrap()).unwrap().split();
    runtime.add_link(&host, interface, Box::new(driver)).unwrap();
    let context = ServiceContext {
        host: host.clone(),
        reactor: runtime.handle().clone(),
        callers,
        denials: Denials::default(),
        sessions: Default::default(),
        files: HostFiles { are_users_named: true, users: Some(users), hosts: "/dev/null".into() },
        resolvers: Default::default(),
        program: "inhost".into(),
        descriptor_limit: None,
        netstat: Rc::new(|| "tcp 0.0.0.0:3270 listens\n".to_owned()),
        operator: Rc::new(Desk),
        unix_time: || std::time::UNIX_EPOCH.elapsed().unwrap(),
        entropy,
    };
    Tn3270::check(section).unwrap();
    let prepared = Tn3270::prepare(section, &context.files).unwrap();
    let service = Tn3270::start(section, prepared, &context).unwrap();
    assert_eq!(service.describe().summary, format!("port {}", section.port));
    tell.send(running.gateway.forwards()[0].outside).unwrap();
    runtime
        .run(async {
            while !stop.load(Ordering::Relaxed) {
                host.sleep(Duration::from_millis(20)).await;
            }
        })
        .unwrap();
    service.reload(section, Tn3270::prepare(section, &context.files).unwrap()).unwrap();
    host.stop();
}

fn place(scratch: &Scratch) -> Place {
    let mut users = Users::default();
    users.add("ada", "engine", None).unwrap();
    users.set_operator("ada", true).unwrap();
    users.add("bob", "builder", None).unwrap();
    users.write(&scratch.path("users")).unwrap();
    std::fs::create_dir(scratch.path("root")).unwrap();
    scratch.write("news", b"There are news.\n");
    scratch.write("root/readme", "Grüße\n".as_bytes());
    let section = format!(
        "enabled = true\ntitle = \"TEST HOST\"\nnews = {:?}\nroot = {:?}\nrights = \"write\"\n",
        scratch.path("news"),
        scratch.path("root")
    );
    Place::new(&section, scratch.path("users"))
}

#[test]
fn the_menu_of_a_host_by_our_script() {
    let scratch = Scratch::new("host-script");
    let place = place(&scratch);
    scratch.write("local", "über\n".repeat(3000).as_bytes());
    let text = format!(
        r#"
wait text "TEST HOST"
assert text "LU001"
type news
press enter
wait text "There are news."
press pf3
wait text "LOGON"
type 2
press enter
wait text "listens"
type sysstat
press enter
wait text "3 sessions"
type files
press enter
wait text "Log on to see files"
type oper
press enter
wait text "not an operator"
type "ind$file get readme (ascii crlf"
press enter
wait text "Permission denied"
type logon
press enter
wait text "Password"
type ada
press tab
type wrong
press enter
wait text "do not match"
field "User"
type ada
field "Password"
type engine
press enter
wait text "Welcome, ada"
type files
press enter
wait text "readme"
type "oper netstat"
press enter
wait text "ada ordered NETSTAT"
press pf5
wait text "No printer"
send {} up.txt text
wait text "18000 bytes transferred"
receive up.txt {} text
dump
press pf3
type x
press enter
wait closed
"#,
        scratch.path("local").display(),
        scratch.path("back").display()
    );
    let shown = script(place.at, Default::default(), &text);
    assert_eq!(shown.outcome, Ok(()), "{}", shown.text);
    assert_eq!(scratch.read("back"), scratch.read("local"));
    assert_eq!(scratch.read("root/up.txt"), scratch.read("local"));
    assert!(shown.text.contains("bytes transferred"), "{}", shown.text);
}

#[test]
fn the_menu_of_a_host_by_s3270() {
    let scratch = Scratch::new("host-s3270");
    let place = place(&scratch);
    let mut terminal = S3270::start(&[&place.at.to_string()]);
    terminal.wait_for("TEST HOST");
    terminal.command("String(\"logon\")");
    terminal.command("Enter()");
    terminal.wait_for("Password");
    terminal.command("String(\"bob\")");
    terminal.command("Tab()");
    terminal.command("String(\"builder\")");
    terminal.command("Enter()");
    terminal.wait_for("Welcome, bob");
    let local = scratch.path("got").display().to_string();
    terminal.command(&format!("Transfer(Direction=receive,Host=vm,HostFile=readme,LocalFile={local})"));
    assert_eq!(scratch.read("got"), "Grüße\n".as_bytes());
    terminal.command("String(\"oper sysstat\")");
    terminal.command("Enter()");
    terminal.wait_for("not an operator");
    // Three wrong passwords, and the session ends.
    for _ in 0..3 {
        if !terminal.screen().contains("Password") {
            terminal.command("String(\"logoff\")");
            terminal.command("Enter()");
            terminal.wait_for("logged off");
            terminal.command("String(\"logon\")");
            terminal.command("Enter()");
            terminal.wait_for("Password");
        }
        terminal.command("String(\"bob\")");
        terminal.command("Tab()");
        terminal.command("String(\"no\")");
        // The last one is answered by the end of the connection.
        let _ = terminal.attempt("Enter()");
    }
    let _ = terminal.attempt("Wait(10,Disconnect)");
    assert!(terminal.command("Query(ConnectionState)").join("").contains("not-connected"));
}
