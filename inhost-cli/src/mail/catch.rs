//! `inhost mail catch`: a mail server to test against, on a host of its own.

use crate::args::Catch;
use crate::failure::Failure;
use crate::links::Links;
use crate::output::show;
use crate::time::unix_time;
use inhost_base::Duration;
use inhost_common::Denials;
use inhost_common::service::{HostFiles, Resolvers, Service, ServiceContext, Sessions};
use inhost_mailcatch::service::{MailCatcher, Section};
use inhost_runtime::{Runtime, Signal, Signals, entropy};
use inhost_stack::{DuplicateDetection, StackConfig};
use serde_json::json;
use std::rc::Rc;

/// How long connections get to close at the end.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// Runs until it is interrupted.
pub fn run(arguments: &Catch) -> Result<(), Failure> {
    let section = section(arguments);
    MailCatcher::check(&section)?;
    let files = HostFiles { are_users_named: false, users: None, hosts: "/etc/hosts".into() };
    let prepared = MailCatcher::prepare(&section, &files)?;
    let mut runtime = Runtime::new(StackConfig::default())
        .map_err(|e| Failure::operation(format!("the host cannot start: {e}")))?;
    let mut links = Links::new(DuplicateDetection::WhileInUse);
    let (smtp, page) = (&arguments.smtp, &arguments.page);
    let refused = |why: Failure| Failure::operation(format!("{why}; see --smtp and --page"));
    links.add(&mut runtime, &format!("user,forward={smtp}->25,forward={page}->80")).map_err(refused)?;
    let context = ServiceContext {
        host: runtime.host().clone(),
        reactor: runtime.handle().clone(),
        callers: links.callers.clone(),
        denials: Denials::default(),
        sessions: Sessions::default(),
        files,
        resolvers: Resolvers::default(),
        program: "inhost".into(),
        descriptor_limit: None,
        netstat: Rc::new(String::new),
        operator: Rc::new(inhost_common::service::NoOperator),
        unix_time,
        entropy,
    };
    let service = MailCatcher::start(&section, prepared, &context)?;
    let as_json = arguments.json;
    service.catcher().listen(move |news| {
        show(&format!("{}\n", if as_json { news.json() } else { news.line() }));
    });
    let signals = Signals::new(runtime.handle(), &[Signal::Interrupt, Signal::Terminate])
        .map_err(|e| Failure::operation(format!("signals cannot be received: {e}")))?;
    show(&match as_json {
        true => format!("{}\n", json!({ "event": "ready", "smtp": smtp, "page": format!("http://{page}/") })),
        false => format!("SMTP  {smtp}      page  http://{page}/\n"),
    });
    runtime.run(signals.next()).map_err(|e| Failure::operation(format!("the host cannot wait: {e}")))?;
    runtime.host().drain();
    runtime.shutdown(CLOSE_WITHIN).map_err(|e| Failure::operation(format!("unclean shutdown: {e}")))?;
    Ok(())
}

fn section(arguments: &Catch) -> Section {
    let mut section = Section::default();
    section.enabled = true;
    section.rules.clone_from(&arguments.rule);
    section.script.clone_from(&arguments.script);
    section.folder.clone_from(&arguments.folder);
    section.token.clone_from(&arguments.token);
    section.certificate.clone_from(&arguments.certificate);
    section.key.clone_from(&arguments.key);
    if let Some(seed) = arguments.seed {
        section.seed = seed;
    }
    if let Some(messages) = arguments.messages {
        section.messages = messages;
    }
    section
}
