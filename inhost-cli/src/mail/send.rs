//! `inhost mail send`.

use super::{not_sent, queue_folder, section};
use crate::args::{MailSend, QueueFolder};
use crate::failure::{Failure, print_error};
use crate::output::show;
use crate::password::password;
use crate::through::Private;
use crate::time::{now_s, unix_time};
use futures_lite::future::or;
use inhost_base::Duration;
use inhost_mail::Body;
use inhost_mail::client::{ClientConfig, Outcome, TlsWish, Transaction};
use inhost_mail::codec::{MailFrom, Mailbox, Recipient};
use inhost_mail::compose::{Draft, Named, mailbox_of, with_crlf, without_bcc};
use inhost_mail::driver::{Connection, TlsClient};
use inhost_mail::queue::{NewMessage, NewRecipient, Queue, Selection, View};
use inhost_mail::sender::{Mailboxes, Route, Sender};
use inhost_mail::service::Outgoing;
use inhost_names::Names;
use inhost_socket::Host;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

/// How long `--now` waits for a first attempt.
const NOW_WITHIN: Duration = Duration::from_secs(120);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A message with its envelope.
struct Message {
    mail: MailFrom,
    recipients: Vec<Mailbox>,
    text: Vec<u8>,
}

/// Sends.
pub fn run(arguments: &MailSend) -> Result<(), Failure> {
    let message = message(arguments)?;
    match &arguments.server {
        Some(url) => to_server(arguments, url, message),
        None => to_queue(arguments, message),
    }
}

fn message(arguments: &MailSend) -> Result<Message, Failure> {
    let mut input = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut input)
        .map_err(|e| Failure::operation(format!("cannot read the message from standard input: {e}")))?;
    let mut recipients = Vec::new();
    for text in &arguments.to {
        recipients.push(mailbox_of(text).map_err(|why| Failure::usage(format!("{text:?}: {why}")))?);
    }
    let is_raw = arguments.raw || arguments.from_header;
    let raw = with_crlf(&input);
    let named = if is_raw { Named::of(&raw) } else { Named::default() };
    if arguments.from_header {
        recipients.extend(named.recipients);
    }
    if recipients.is_empty() {
        return Err(Failure::usage(
            "nobody is to get it; name a recipient, or take them from the header by -t",
        ));
    }
    let from = match (&arguments.from, named.from) {
        (Some(text), _) => text.clone(),
        (None, Some(from)) => from.to_string(),
        (None, None) => own_address(&arguments.folder)?,
    };
    let sender = match from.as_str() {
        "<>" => None,
        text => Some(mailbox_of(text).map_err(|why| Failure::usage(format!("--from {text:?}: {why}")))?),
    };
    let text = match is_raw {
        true => without_bcc(&raw),
        false => draft(arguments, from, input)?,
    };
    let mail = envelope(sender, &recipients, &text);
    Ok(Message { mail, recipients, text })
}

fn draft(arguments: &MailSend, from: String, input: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let mut draft = Draft::default();
    draft.text = String::from_utf8(input).map_err(|_| {
        Failure::usage("the text is not UTF-8; a file goes with --attach, a whole message with --raw")
    })?;
    for path in &arguments.attach {
        let octets = std::fs::read(path)
            .map_err(|e| Failure::operation(format!("cannot read {}: {e}", path.display())))?;
        let name = path.file_name().map_or_else(|| "file".into(), |name| name.to_string_lossy().into_owned());
        draft.attachments.push((name, octets));
    }
    let domain = mailbox_of(&from).map_or("localhost".into(), |from| from.domain().to_owned());
    if arguments.subject.chars().any(char::is_control) {
        return Err(Failure::usage("--subject: a subject is one line, without control characters"));
    }
    (draft.from, draft.to) = (from, arguments.to.clone());
    draft.subject.clone_from(&arguments.subject);
    let id = format!("{:x}.{:x}@{domain}", unix_time().as_nanos(), std::process::id());
    Ok(draft.message(now_s(), &id))
}

/// The user's own address.
pub(super) fn own_address(folder: &QueueFolder) -> Result<String, Failure> {
    if let Ok(address) = std::env::var("EMAIL") {
        return Ok(address);
    }
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let user =
        user.map_err(|_| Failure::usage("your address is not known; give --from ADDRESS, or set EMAIL"))?;
    Ok(format!("{user}@{}", section(folder)?.name()))
}

/// Puts a message into the queue; its name, and the queue.
pub(super) fn enqueue(
    folder: &QueueFolder,
    mail: MailFrom,
    recipients: Vec<Mailbox>,
    text: Vec<u8>,
) -> Result<(String, View), Failure> {
    let (path, section) = (queue_folder(folder)?, section(folder)?);
    let failed = |e| Failure::operation(format!("the queue {}: {e}", path.display()));
    let mut view = View::open(&path).map_err(failed)?;
    let now = now_s();
    let recipients = recipients.into_iter().map(|mailbox| {
        let domain = mailbox.domain().to_owned();
        NewRecipient { recipient: Recipient::new(mailbox), domain }
    });
    let message = NewMessage {
        mail,
        recipients: recipients.collect(),
        body: Body::new(text),
        origin: "inhost mail".into(),
        arrived_s: now,
        expires_s: now + section.schedule().expires_s,
        is_signed: true,
    };
    let name = view.add(&message).map_err(failed)?;
    Ok((name, view))
}

/// Says where a message waits if no host sends it.
pub(super) fn unserved(folder: &Path) {
    print_error(format_args!(
        "no host sends from the queue {} now; start inhost serve with [mail] in host.toml, or use send --now",
        folder.display()
    ));
}

/// An envelope for a message.
pub(super) fn envelope(sender: Option<Mailbox>, recipients: &[Mailbox], text: &[u8]) -> MailFrom {
    let mut mail = MailFrom::default();
    mail.is_utf8 = recipients.iter().chain(&sender).any(|mailbox| !mailbox.is_ascii());
    mail.is_eight_bit = !text.is_ascii();
    mail.sender = sender;
    mail
}

fn to_queue(arguments: &MailSend, message: Message) -> Result<(), Failure> {
    let folder = queue_folder(&arguments.folder)?;
    let (name, view) = enqueue(&arguments.folder, message.mail, message.recipients, message.text)?;
    let is_served = view.summary().map_err(|e| Failure::operation(e.to_string()))?.is_served;
    if arguments.now {
        return now_or_why(arguments, &folder, view, &name, is_served);
    }
    if arguments.json {
        show(&format!("{}\n", json!({ "message": name, "is_served": is_served })));
        return Ok(());
    }
    show(&format!("queued as {name}\n"));
    if !is_served {
        unserved(&folder);
    }
    Ok(())
}

/// Waits until the message is gone, or says why it waits.
fn now_or_why(
    arguments: &MailSend,
    folder: &Path,
    view: View,
    name: &str,
    is_served: bool,
) -> Result<(), Failure> {
    let Private { mut runtime, names, links: _links, .. } = Private::new(arguments.link.as_deref())?;
    let host = runtime.host().clone();
    let sender = match is_served {
        true => None,
        false => Some(Rc::new(sender(arguments, folder, &host, names)?)),
    };
    if let Some(sender) = &sender {
        host.spawn(sender.clone().run()).detach();
    }
    let id = name.strip_prefix('m').and_then(|number| number.parse().ok()).unwrap_or_default();
    let selection = Selection::Message(id);
    let waiting = async {
        loop {
            let found = view.messages(&selection, 1, now_s());
            match found.map(|mut found| found.pop()) {
                Ok(None) => return Ok(None),
                Ok(Some(message)) if message.recipients.iter().all(|one| one.reason.is_some()) => {
                    return Ok(Some(message));
                }
                Ok(Some(_)) => {}
                Err(error) => return Err(Failure::operation(error.to_string())),
            }
            host.sleep(LOOK_EVERY).await;
        }
    };
    let late = async {
        host.sleep(NOW_WITHIN).await;
        Ok(view.messages(&selection, 1, now_s()).ok().and_then(|mut found| found.pop()))
    };
    let left = runtime.run(or(waiting, late));
    let left = left.map_err(|e| Failure::operation(format!("the host cannot wait: {e}")))??;
    let failed = view.failures(id).map_err(|e| Failure::operation(e.to_string()))?;
    let waiting = left.as_ref().map_or(&[][..], |message| &message.recipients);
    if arguments.json {
        let message = left.as_ref().map_or_else(|| json!(name), |message| json!(message));
        show(&format!("{}\n", json!({ "message": message, "is_gone": left.is_none(), "failed": failed })));
    }
    if arguments.verbose {
        let domains: BTreeSet<_> =
            failed.iter().map(|one| &one.domain).chain(waiting.iter().map(|one| &one.domain)).collect();
        for (_, text) in domains.into_iter().flat_map(|domain| view.dialogues(domain).unwrap_or_default()) {
            eprint!("{text}");
        }
    }
    let waiting = waiting.iter().map(|one| format!("waits for {}: {}; {}", one.address, one.why, one.remedy));
    let reasons: Vec<_> = failed.iter().map(not_sent).chain(waiting).collect();
    if !reasons.is_empty() {
        return Err(Failure::operation(format!("{name}: {}", reasons.join("\n"))));
    }
    if !arguments.json {
        show(&format!("{name} is gone: sent\n"));
    }
    Ok(())
}

/// A sender for the queue, on a private host.
fn sender(arguments: &MailSend, folder: &Path, host: &Host, names: Names) -> Result<Sender, Failure> {
    let queue = Queue::open(folder)
        .map_err(|e| Failure::operation(format!("the queue {}: {e}", folder.display())))?;
    let mut section = section(&arguments.folder)?;
    if let Some(authorities) = &arguments.authorities {
        section.authorities = Some(authorities.clone());
    }
    let outgoing = Outgoing::read(&section)?;
    Ok(outgoing.sender(host, Rc::new(names), queue, Rc::new(Nowhere), unix_time))
}

/// Mailboxes belong to a running host.
struct Nowhere;

impl Mailboxes for Nowhere {
    fn deliver<'a>(
        &'a self,
        recipient: &Mailbox,
        _: Option<&Mailbox>,
        _: &Body,
    ) -> inhost_mail::driver::Answer<'a, Result<(), inhost_mail::queue::Reason>> {
        let path = recipient.to_string();
        let what = "mailboxes of this host are written by inhost serve".to_owned();
        Box::pin(std::future::ready(Err(inhost_mail::queue::Reason::Mailbox { path, what })))
    }
}

fn tls(arguments: &MailSend) -> Result<TlsClient, Failure> {
    TlsClient::with_system_roots(arguments.authorities.as_deref())
        .map_err(|e| Failure::operation(format!("--authorities: {e}")))
}

fn to_server(arguments: &MailSend, url: &str, message: Message) -> Result<(), Failure> {
    let wrong = |why: String| Failure::usage(format!("--server {url:?}: {why}"));
    // The user stands where URLs have it.
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("write smtp://HOST[:PORT]".into()))?;
    let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
    let route: Route = format!("{scheme}://{host}").parse().map_err(|why| wrong(format!("{why}")))?;
    let Route::Server { host: name, port, is_lmtp, is_implicit } = route else {
        return Err(wrong("write smtp://HOST[:PORT]".into()));
    };
    let mut config = ClientConfig::new(&section(&arguments.folder)?.name());
    config.is_lmtp = is_lmtp;
    config.tls = match arguments.tls.as_str() {
        "never" => TlsWish::Never,
        "required" => TlsWish::Required,
        _ => TlsWish::IfOffered,
    };
    if let Some(user) = user {
        config.log_in(user, &password(arguments.password_file.as_deref())?);
    }
    let tls = tls(arguments)?;
    let private = Private::new(arguments.link.as_deref())?;
    let Private { mut runtime, names, reaches_loopback, links: _links } = private;
    let host = runtime.host().clone();
    let recipients: Vec<_> = message.recipients.iter().cloned().map(Recipient::new).collect();
    let transaction = Transaction::new(message.mail, recipients, message.text.len() as u64);
    let body = Body::new(message.text);
    let there = format!("{name} port {port}");
    let sending = async {
        let found = names.look_up(&name).await.map_err(|why| (why.to_string(), None))?;
        let address = crate::through::seen_at(found[0], reaches_loopback);
        let stream = host.connect(inhost_base::Endpoint::new(address, port)).await;
        let stream = stream.map_err(|why| (inhost_socket::errno::Errno::into_io(why).to_string(), None))?;
        stream.set_nagle(false);
        let opened = Connection::open(stream, &name, is_implicit, config, &tls, &host).await;
        let mut connection = opened.map_err(|(why, trace)| (why.to_string(), Some(trace)))?;
        let sent = connection.send(&transaction, &body).await;
        let trace = connection.trace().clone();
        let outcomes = sent.map_err(|why| (why.to_string(), Some(trace.clone())))?;
        connection.quit().await;
        Ok((outcomes, trace))
    };
    let done = runtime.run(sending).map_err(|e| Failure::operation(format!("the host cannot wait: {e}")))?;
    let trace = match &done {
        Ok((_, trace)) => Some(trace.clone()),
        Err((_, trace)) => trace.clone(),
    };
    if let Some(trace) = trace.filter(|_| arguments.verbose) {
        eprint!("{trace}");
    }
    let (outcomes, _) = done.map_err(|(why, _)| Failure::operation(format!("{there}: {why}")))?;
    told(arguments, &there, &transaction.recipients, &outcomes)
}

/// Says what came of each recipient.
fn told(
    arguments: &MailSend,
    there: &str,
    recipients: &[Recipient],
    outcomes: &[Outcome],
) -> Result<(), Failure> {
    let (mut refused, mut rows) = (None, Vec::new());
    for (recipient, outcome) in recipients.iter().zip(outcomes) {
        let (is_accepted, what) = match outcome {
            Outcome::Accepted(reply) => (true, reply.to_string()),
            Outcome::Refused(step, reply) => (false, format!("at {step}: {reply}")),
            Outcome::Impossible(why) => (false, why.to_string()),
        };
        if !is_accepted && refused.is_none() {
            refused = Some(format!("{there} refused {}: {what}", recipient.mailbox));
        }
        if !arguments.json && is_accepted {
            show(&format!("{}: {what}\n", recipient.mailbox));
        }
        rows.push(
            json!({ "recipient": recipient.mailbox.to_string(), "is_accepted": is_accepted, "reply": what }),
        );
    }
    if arguments.json {
        show(&format!("{}\n", json!({ "server": there, "recipients": rows })));
    }
    refused.map_or(Ok(()), |why| Err(Failure::operation(why)))
}
