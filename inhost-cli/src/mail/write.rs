//! `inhost mail write`, and answers of `inhost mail read`: an editor, then a question.

use super::queue_folder;
use super::send::{enqueue, envelope, own_address, unserved};
use crate::args::{MailWrite, QueueFolder};
use crate::failure::Failure;
use crate::output::show;
use crate::terminal::{ENDING, kept};
use crate::time::{now_s, unix_time};
use inhost_common::Cleaner;
use inhost_mailreader::{ATTACHMENT_BYTES, Composition};
use rustyline::DefaultEditor;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const ANSWERS: &str =
    "s sends it, e edits it again, a FILE attaches a file, w FILE saves it as a draft, x forgets it\n";

/// Writes a message and sends it.
pub fn run(arguments: &MailWrite) -> Result<(), Failure> {
    let from = match &arguments.from {
        Some(from) => from.clone(),
        None => own_address(&arguments.folder)?,
    };
    let mut composition = Composition::new(&from);
    (composition.to, composition.subject) = (arguments.to.join(", "), arguments.subject.clone());
    let mut editor = prompt()?;
    compose(composition, &arguments.folder, &mut editor).map(drop)
}

/// Asks on the terminal, or reads lines of standard input.
pub(super) fn prompt() -> Result<DefaultEditor, Failure> {
    DefaultEditor::new().map_err(|e| Failure::operation(format!("the terminal cannot be read: {e}")))
}

/// Has a message edited until it is sent or forgotten; whether it was sent.
pub(super) fn compose(
    mut composition: Composition,
    folder: &QueueFolder,
    editor: &mut DefaultEditor,
) -> Result<bool, Failure> {
    edit(&mut composition)?;
    loop {
        show(&summary(&composition));
        // The end of the input forgets nothing silently: the text is kept.
        let question = "send, edit, attach, write, forget (s e a w x)? ";
        let Ok(line) = kept(ENDING, || editor.readline(question)) else {
            let path = draft_file(&composition.to_file())?;
            let attached = match composition.attachments.len() {
                0 => "",
                _ => "; its attachments are not",
            };
            return Err(Failure::operation(format!(
                "not sent; what you wrote is in {}{attached}",
                path.display()
            )));
        };
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match word {
            "s" => match send(&composition, folder) {
                Ok(()) => return Ok(true),
                Err(failure) => show(&format!("{failure}\n")),
            },
            "e" => {
                if let Err(failure) = edit(&mut composition) {
                    show(&format!("{failure}\n"));
                }
            }
            "a" => attach(&mut composition, Path::new(rest.trim())),
            "w" => match save(&composition, Path::new(rest.trim())) {
                Ok(()) if composition.attachments.is_empty() => return Ok(false),
                Ok(()) => {
                    show("the draft has the text alone: the attachments are still here, and not in it\n")
                }
                Err(failure) => show(&format!("{failure}\n")),
            },
            "x" => return Ok(false),
            _ => show(ANSWERS),
        }
    }
}

fn summary(composition: &Composition) -> String {
    let clean = |text: &str| Cleaner::line(text.as_bytes());
    let mut text = format!("From: {}\nTo: {}\n", clean(&composition.from), clean(&composition.to));
    if !composition.cc.is_empty() {
        text += &format!("Cc: {}\n", clean(&composition.cc));
    }
    text += &format!("Subject: {}\n", clean(&composition.subject));
    for (name, octets) in &composition.attachments {
        text += &format!("[{}, {} octets]\n", clean(name), octets.len());
    }
    text
}

/// Lets the user's editor change a message: its header lines, an empty line, its text.
fn edit(composition: &mut Composition) -> Result<(), Failure> {
    let program =
        ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    let program = program.unwrap_or_else(|| "vi".into());
    let path = draft_file(&composition.to_file())?;
    let words = shell_words::split(&program).unwrap_or_default();
    let Some((name, arguments)) = words.split_first() else {
        return Err(Failure::usage(format!("EDITOR={program:?} is not a command")));
    };
    let status = Command::new(name).args(arguments).arg(&path).status();
    let edited = fs::read(&path);
    // What was written and is not taken stays.
    let is_new = edited.as_ref().is_ok_and(|edited| *edited != composition.to_file().as_bytes());
    let kept = if is_new { format!("; what you wrote is in {}", path.display()) } else { String::new() };
    let taken = match (status, edited) {
        (Err(e), _) => Err(format!("the editor {name} cannot start: {e}; set EDITOR")),
        (Ok(status), _) if !status.success() => {
            Err(format!("the editor {name} failed ({status}); nothing was sent{kept}"))
        }
        (Ok(_), Err(e)) => Err(format!("cannot read what was written: {e}")),
        (Ok(_), Ok(edited)) => {
            String::from_utf8(edited).map_err(|_| format!("the text is not UTF-8; nothing was sent{kept}"))
        }
    };
    if taken.is_ok() || !is_new {
        let _ = fs::remove_file(&path);
    }
    composition.take_file(&taken.map_err(Failure::operation)?);
    Ok(())
}

/// A file that nobody else can read.
fn draft_file(text: &str) -> Result<PathBuf, Failure> {
    let failed =
        |e: std::io::Error| Failure::operation(format!("a draft cannot be made for the editor: {e}"));
    for number in 0..100_u32 {
        let nanos = unix_time().subsec_nanos();
        let path =
            std::env::temp_dir().join(format!("inhost-mail-{}-{nanos:x}-{number}", std::process::id()));
        match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => return file.write_all(text.as_bytes()).map(|()| path).map_err(failed),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(failed(e)),
        }
    }
    Err(Failure::operation("a draft cannot be made for the editor: all names are taken"))
}

fn attach(composition: &mut Composition, path: &Path) {
    let name = path.file_name().map_or_else(|| "file".into(), |name| name.to_string_lossy().into_owned());
    match fs::read(path) {
        Ok(octets) if composition.attachment_bytes() + octets.len() <= ATTACHMENT_BYTES => {
            composition.attachments.push((name, octets));
        }
        Ok(_) => show("that would be too much: attachments have at most 64 MiB\n"),
        Err(error) => show(&format!("cannot read {}: {error}\n", path.display())),
    }
}

fn save(composition: &Composition, path: &Path) -> Result<(), Failure> {
    let failed =
        |e: std::io::Error| Failure::operation(format!("cannot write {:?}: {e}", path.display().to_string()));
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(composition.to_file().as_bytes()).map_err(failed)
}

fn send(composition: &Composition, folder: &QueueFolder) -> Result<(), Failure> {
    let unique = format!("{:x}.{:x}", unix_time().as_nanos(), std::process::id());
    let finished = composition.finish(now_s(), &unique).map_err(Failure::usage)?;
    let mail = envelope(Some(finished.sender), &finished.recipients, &finished.text);
    let (name, view) = enqueue(folder, mail, finished.recipients, finished.text)?;
    show(&format!("queued as {name}\n"));
    let is_served = view.summary().map_err(|e| Failure::operation(e.to_string()))?.is_served;
    if !is_served {
        unserved(&queue_folder(folder)?);
    }
    Ok(())
}
