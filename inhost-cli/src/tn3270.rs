//! `inhost tn3270`: a 3270 terminal, or its printer.

mod draw;
mod keys;
mod sit;

use crate::args::{System, Tn3270};
use crate::client::ClientHost;
use crate::connection::{Connector, Maker};
use crate::failure::Failure;
use crate::ftp::{CERTIFICATE_ADVICE, authorities};
use crate::output::print;
use crate::target::{Schemes, Target};
use crate::through::HostChoice;
use inhost_base::{Duration, Instant};
use inhost_ftp::driver::{TlsClient, Trust};
use inhost_socket::Host;
use inhost_telnet::driver::Connect as _;
use inhost_tn3270::client::script::Script;
use inhost_tn3270::client::{Printer, Terminal, TerminalConfig};
use inhost_tn3270::codec::{CodePage, Resource};
use inhost_tn3270::driver::{Connection, ScriptFiles, run_script};
use inhost_tn3270::screen::{Keyboard, Model, ScreenConfig, Snapshot};
use inhost_tn3270::transfer::HostKind;
use keys::KeyMap;
use std::io::{self, Read, Write};
use std::path::Path;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const SCHEMES: Schemes = Schemes::Of(&["tn3270", "telnet"]);
/// The port of Telnet, and with TLS.
const PORT: u16 = 23;
const TLS_PORT: u16 = 992;
/// How long the connection and the first screen may take, where nothing was said.
const WITHIN: Duration = Duration::from_secs(30);
/// Octets of a file that a script sends.
const FILE_BYTES: u64 = 64 << 20;

/// A connection, encrypted or not.
trait Io: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Io for T {}
type Stream = Box<dyn Io>;

/// Runs the command.
pub fn run(arguments: &Tn3270) -> Result<(), Failure> {
    let target = Target::parse(&arguments.host, SCHEMES)?;
    let code_page: CodePage = arguments
        .code_page
        .parse()
        .map_err(|why| Failure::usage(format!("--code-page {:?}: {why}", arguments.code_page)))?;
    let keys = KeyMap::with(&arguments.key).map_err(Failure::usage)?;
    let script = arguments.script.as_deref().map(read_script).transpose()?;
    if script.is_none() && !arguments.once && !arguments.printer {
        sit::needs_terminal()?;
    }
    let mut client = ClientHost::start(HostChoice::find(&arguments.reach)?)?;
    let (maker, host) = (client.maker.clone(), client.runtime.host().clone());
    let done = client.runtime.run(async {
        let stream = call(arguments, &target, maker, &host).await?;
        if arguments.printer {
            return print_jobs(arguments, code_page, stream, &host).await;
        }
        let terminal = Terminal::new(config(arguments, code_page)?);
        let mut connection = Connection::new(stream, terminal, &host);
        match script {
            Some(script) => {
                let mut files = Files { as_json: arguments.json };
                let done = run_script(&mut connection, script, &mut files).await;
                done.map_err(|why| Failure::operation(format!("{}: {why}", script_name(arguments))))
            }
            None if arguments.once => once(arguments, &mut connection, &host).await,
            None => sit::sit(&mut connection, &host, &keys, &arguments.host).await,
        }
    });
    let done = done.map_err(|e| Failure::operation(format!("the client cannot wait: {e}")))?;
    client.end()?;
    done
}

fn config(arguments: &Tn3270, code_page: CodePage) -> Result<TerminalConfig, Failure> {
    let model = Model::try_from(arguments.model).map_err(|why| Failure::usage(why.to_string()))?;
    let mut screen = ScreenConfig::new(model);
    (screen.code_page, screen.has_color) = (code_page, !arguments.mono);
    let mut config = TerminalConfig::default();
    config.screen = screen;
    config.has_tn3270e = !arguments.no_tn3270e;
    config.device.clone_from(&arguments.lu);
    config.host_kind = match arguments.system {
        System::Tso => HostKind::Tso,
        System::Vm => HostKind::Vm,
        System::Cics => HostKind::Cics,
    };
    Ok(config)
}

fn within(arguments: &Tn3270) -> Duration {
    arguments.reach.common.limit().unwrap_or(WITHIN)
}

async fn call(arguments: &Tn3270, target: &Target, maker: Maker, host: &Host) -> Result<Stream, Failure> {
    let failed = |why: String| Failure::operation(format!("tn3270: {why}"));
    let mut common = arguments.reach.common.clone();
    common.timeout.get_or_insert(WITHIN.as_secs_f64());
    let connector = Connector { maker, common, clock: host.clone() };
    let port = target.port.unwrap_or(if arguments.tls { TLS_PORT } else { PORT });
    let stream = connector.connect(&target.host, port).await.map_err(failed)?.stream;
    if !arguments.tls {
        return Ok(Box::new(stream));
    }
    let trust = match arguments.insecure {
        true => Trust::Anybody,
        false => authorities(arguments.ca.as_deref())?,
    };
    let tls = TlsClient::new(&target.host, &trust).map_err(|e| failed(format!("TLS: {e}")))?;
    let (config, name) = tls.parts();
    let shaken = tokio_rustls::TlsConnector::from(config).connect(name, stream);
    let advice = |why: io::Error| match why.to_string() {
        text if text.contains("certificate") => failed(format!("TLS: {text}; {CERTIFICATE_ADVICE}")),
        text if text.contains("InvalidContentType") => failed(
            "the server speaks without TLS at this port; leave --tls out, or give its port for TLS".into(),
        ),
        text => failed(format!("TLS: {text}")),
    };
    match host.timeout(within(arguments), shaken).await {
        Ok(stream) => Ok(Box::new(stream.map_err(advice)?)),
        Err(_) => Err(failed("TLS: no handshake in time (--timeout)".into())),
    }
}

/// Waits for a screen that takes input, and prints it.
async fn once(
    arguments: &Tn3270,
    connection: &mut Connection<'_, Stream, Host>,
    host: &Host,
) -> Result<(), Failure> {
    let failed = |why: String| Failure::operation(format!("tn3270: {why}"));
    let until = host.now() + within(arguments);
    let is_there = |terminal: &Terminal| {
        terminal.is_ready()
            && terminal.screen().keyboard() == Keyboard::Unlocked
            && terminal.screen().writes() > 0
    };
    while !is_there(&connection.terminal) {
        if let Some(why) = connection.terminal.device_rejected() {
            return Err(failed(format!("the host refuses the device: {why}")));
        }
        if let Some(why) = connection.terminal.violation() {
            return Err(failed(format!("the host breaks the protocol: {why}")));
        }
        let went_on = connection.exchange(until).await.map_err(|e| failed(e.to_string()))?;
        if !went_on {
            let said = connection.terminal.nvt_text().trim();
            let said = if said.is_empty() { String::new() } else { format!("; it said: {said}") };
            let what = if connection.terminal.is_closed() {
                "the host closed the connection"
            } else {
                "no screen came in time"
            };
            return Err(failed(format!("{what}{said}")));
        }
    }
    let screen = connection.terminal.screen().snapshot();
    print(&match arguments.json {
        true => json(&screen),
        false => text(&screen),
    })
}

fn json(screen: &Snapshot) -> String {
    // Nothing in a snapshot fails to be written.
    format!("{}\n", serde_json::to_string(screen).unwrap_or_default())
}

fn text(screen: &Snapshot) -> String {
    let mut text = screen.text.join("\n");
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn script_name(arguments: &Tn3270) -> String {
    arguments.script.as_ref().map_or(String::new(), |path| path.display().to_string())
}

fn read_script(path: &Path) -> Result<Script, Failure> {
    let text = match path.to_str() {
        Some("-") => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
        _ => std::fs::read_to_string(path),
    };
    let named = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let text = text.map_err(|e| named(e.to_string()))?;
    Script::parse(&text).map_err(|why| named(why.to_string()))
}

/// Local files of a script, and what it shows.
struct Files {
    as_json: bool,
}

impl ScriptFiles for Files {
    fn read(&mut self, path: &str) -> io::Result<Vec<u8>> {
        let mut data = Vec::new();
        std::fs::File::open(path)?.take(FILE_BYTES + 1).read_to_end(&mut data)?;
        if data.len() as u64 > FILE_BYTES {
            return Err(io::Error::other("it is larger than 64 MiB"));
        }
        Ok(data)
    }
    fn write(&mut self, path: &str, data: &[u8]) -> io::Result<()> {
        // A whole file, or none; under a name that nobody has until then.
        let part = format!("{path}.{}.part", std::process::id());
        let mut file = std::fs::File::options().write(true).create_new(true).open(&part)?;
        let done = file.write_all(data).and_then(|()| std::fs::rename(&part, path));
        if done.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        done
    }
    fn show(&mut self, text: &str) -> io::Result<()> {
        if self.as_json {
            return Ok(());
        }
        print(text).map_err(|why| io::Error::other(why.text()))
    }
    fn show_screen(&mut self, screen: &Snapshot) -> io::Result<()> {
        print(&json(screen)).map_err(|why| io::Error::other(why.text()))
    }
}

/// Prints jobs until the host closes the connection. A job without an end is printed then.
async fn print_jobs(
    arguments: &Tn3270,
    code_page: CodePage,
    stream: Stream,
    host: &Host,
) -> Result<(), Failure> {
    let failed = |why: String| Failure::operation(format!("tn3270: {why}"));
    let mut printer = Printer::new(arguments.lu.clone().map(Resource::Associate), code_page);
    let ended = take_jobs(&mut printer, stream, host, host.now() + within(arguments)).await;
    printer.finish();
    print_waiting(&mut printer)?;
    ended.map_err(failed)
}

fn print_waiting(printer: &mut Printer) -> Result<(), Failure> {
    while let Some(lines) = printer.take_job() {
        print(&(lines.join("\n") + "\n"))?;
    }
    Ok(())
}

/// Serves the host until it closes the connection. It gives the printer a device before `until`.
async fn take_jobs(
    printer: &mut Printer,
    mut stream: Stream,
    host: &Host,
    until: Instant,
) -> Result<(), String> {
    let text = |why: io::Error| why.to_string();
    let mut place = vec![0; 8 << 10];
    let mut unread = 0..0;
    loop {
        while !printer.pending().is_empty() {
            let count = stream.write(printer.pending()).await.map_err(text)?;
            printer.sent(count);
        }
        stream.flush().await.map_err(text)?;
        if let Some(why) = printer.device_rejected() {
            return Err(format!("the host refuses the printer: {why}"));
        }
        if let Some(why) = printer.violation() {
            return Err(format!("the host breaks the protocol: {why}"));
        }
        print_waiting(printer).map_err(|why| why.text())?;
        if unread.is_empty() {
            let reading = stream.read(&mut place);
            let count = match printer.is_ready() {
                true => reading.await,
                false => host
                    .timeout(until.since(host.now()), reading)
                    .await
                    .map_err(|_| "the host has not taken the printer in time (--timeout)")?,
            };
            unread = 0..count.map_err(text)?;
        }
        match (unread.is_empty(), printer.is_ready()) {
            (true, true) => return Ok(()),
            (true, false) => {
                return Err("the host closed the connection before it gave the printer a device".into());
            }
            _ => {}
        }
        printer.advance(host.now());
        let mut input = &place[unread.clone()];
        printer.receive(&mut input);
        unread.start = unread.end - input.len();
    }
}
