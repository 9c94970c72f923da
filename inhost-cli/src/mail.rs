//! `inhost mail`: messages that leave, and those that wait.

mod catch;
mod queue;
mod read;
mod send;
mod write;

use crate::args::{Mail, QueueFolder};
use crate::failure::Failure;
use crate::registry;
use crate::time::now_s;
use inhost_mail::queue::{FailureView, Selection, View};
use inhost_mail::service::{Mail as Service, Section};
use inhost_mailauth::{generate_ed25519, generate_rsa};
use inhost_runtime::entropy;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bits of a new RSA key (RFC 8301 §3.2).
const RSA_BITS: usize = 2048;

/// Runs a command.
pub fn run(command: &Mail) -> Result<(), Failure> {
    match command {
        Mail::Send(arguments) => send::run(arguments),
        Mail::Read(arguments) => read::run(arguments),
        Mail::Write(arguments) => write::run(arguments),
        Mail::Queue(arguments) => queue::look(arguments),
        Mail::Why { which, dialogue, json } => queue::why(which, *dialogue, *json),
        Mail::Retry(which) => {
            queue::change(which, "retried", |view, selection| view.retry(selection, now_s()))
        }
        Mail::Hold(which) => queue::change(which, "held", View::hold),
        Mail::Drop(which) => queue::change(which, "removed", View::drop),
        Mail::Catch(arguments) => catch::run(arguments),
        Mail::Key { domain, selector, file, ed25519 } => key(domain, selector, file, *ed25519),
    }
}

/// `[mail]` of the configuration.
fn section(folder: &QueueFolder) -> Result<Section, Failure> {
    registry::section::<Service>(folder.config.as_deref())
}

/// The folder of the queue.
fn queue_folder(folder: &QueueFolder) -> Result<PathBuf, Failure> {
    match &folder.queue {
        Some(path) => Ok(path.clone()),
        None => Ok(section(folder)?.queue_folder()),
    }
}

/// The queue, opened.
fn view(folder: &QueueFolder) -> Result<View, Failure> {
    let path = queue_folder(folder)?;
    if folder.queue.is_some() && !path.join("queue.sqlite").exists() {
        return Err(Failure::operation(format!("there is no queue in {}", path.display())));
    }
    View::open(&path).map_err(|error| Failure::operation(format!("the queue {}: {error}", path.display())))
}

/// Who does not get a message, why, and what to do.
fn not_sent(to: &FailureView) -> String {
    format!("not sent to {}: {}; {}", to.address, to.why, to.remedy)
}

/// A message, a destination, a sender, or all.
fn selection(text: &str) -> Selection {
    match text.strip_prefix('m').and_then(|number| number.parse().ok()) {
        Some(id) => Selection::Message(id),
        None if text == "all" => Selection::All,
        None if text.contains('@') => Selection::Sender(text.to_owned()),
        None => Selection::Domain(text.to_owned()),
    }
}

fn key(domain: &str, selector: &str, file: &Path, ed25519: bool) -> Result<(), Failure> {
    for (what, name) in [("domain", domain), ("selector", selector)] {
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
        if !is_name {
            return Err(Failure::usage(format!("{name:?} is not a {what}; give a name of the DNS")));
        }
    }
    let no_entropy = |e| Failure::operation(format!("the system has no entropy: {e}"));
    let made = match ed25519 {
        true => generate_ed25519(&entropy().map_err(no_entropy)?),
        false => {
            entropy().map_err(no_entropy)?;
            let mut fill = |octets: &mut [u8]| {
                for piece in octets.chunks_mut(32) {
                    let random = entropy().unwrap_or_else(|_| std::process::abort());
                    piece.copy_from_slice(&random[..piece.len()]);
                }
            };
            generate_rsa(RSA_BITS, &mut fill)
        }
    };
    let key = made.ok_or_else(|| Failure::operation("no key can be made"))?;
    let failed = |e| Failure::operation(format!("cannot write {}: {e}", file.display()));
    let mut opened =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(failed)?;
    if let Err(error) = opened.write_all(key.pem.as_bytes()).and_then(|()| opened.sync_all()) {
        let _ = std::fs::remove_file(file);
        return Err(failed(error));
    }
    say!("The private key is in {}. Publish in the DNS:\n", file.display());
    say!("{}\n", key.zone_line(domain, selector));
    say!("Then, in host.toml:\n\n[[mail.dkim]]\ndomain = {domain:?}\nselector = {selector:?}");
    say!("key = {:?}", file.display().to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_messages_are_meant() {
        assert_eq!(selection("m12"), Selection::Message(12));
        assert_eq!(selection("mx.example"), Selection::Domain("mx.example".into()));
        assert_eq!(selection("m1@x"), Selection::Sender("m1@x".into()));
        assert_eq!(selection("all"), Selection::All);
    }
}
