//! `inhost mail read`: a mailbox, read and answered by short commands.

use super::section;
use super::send::own_address;
use super::write::{compose, prompt};
use crate::args::MailRead;
use crate::failure::{Failure, print_error};
use crate::output::{counted, show};
use crate::terminal::{ENDING, kept};
use inhost_mail::service::Section;
use inhost_mailreader::text::{clean_line, columns, fit};
use inhost_mailreader::thread::{Entry, arrange};
use inhost_mailreader::{Composition, Document, FileName, Flags, MESSAGE_BYTES, Mailbox, Summary};
use rustyline::DefaultEditor;
use serde_json::json;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Messages of a page of the list.
const PAGE: usize = 20;
/// Width of a line of the list.
const WIDTH: usize = 100;
const COMMANDS: &str = "\
  NUMBER  read that message            r, R     answer it, answer to all
  n       the next unread one          f        forward it
  h       its whole header             w        write a message
  d, u    delete it, or do not         s N FILE save its Nth attachment
  l, +, - the list, its next page      /WORDS   find in senders, subjects and texts; / alone is all
  q       leave, removing what is deleted       x  leave, removing nothing
h, d, u, r, R and f are about the message whose NUMBER follows; without one, as s, about the message that was
read or named last.
";

/// A message of the list.
struct Row {
    name: FileName,
    summary: Summary,
    branch: String,
}

struct Reader<'a> {
    arguments: &'a MailRead,
    mailbox: Mailbox,
    rows: Vec<Row>,
    /// Rows that are shown, by number.
    shown: Vec<usize>,
    page: usize,
    /// The row that was read last.
    current: Option<usize>,
    host_name: String,
}

/// Reads a mailbox.
pub fn run(arguments: &MailRead) -> Result<(), Failure> {
    let section = section(&arguments.folder)?;
    let path = match &arguments.maildir {
        Some(path) => path.clone(),
        None => default_maildir(&section)?,
    };
    let failed = |e| Failure::operation(format!("{}: {e}; name a Maildir", path.display()));
    let mailbox = Mailbox::open(&path).map_err(failed)?;
    let rows = rows(&mailbox).map_err(failed)?;
    let names = |part| std::fs::read_dir(path.join(part)).into_iter().flatten().flatten();
    let foreign = ["new", "cur"].into_iter().flat_map(names).filter(|of| of.file_name().to_str().is_none());
    match foreign.count() as u64 {
        0 => {}
        count => print_error(format_args!(
            "left out, since its file's name is not UTF-8: {}",
            counted(count, "message")
        )),
    }
    let shown = (0..rows.len()).collect();
    let mut reader =
        Reader { arguments, mailbox, rows, shown, page: 0, current: None, host_name: section.name() };
    // The newest are last, and on the first page that is shown.
    reader.page = reader.rows.len().saturating_sub(1) / PAGE;
    if arguments.json {
        show(&format!("{}\n", reader.json()));
        return Ok(());
    }
    if let Some(number) = arguments.print {
        let row = number.checked_sub(1).filter(|row| *row < reader.rows.len());
        let row = row.ok_or_else(|| Failure::usage(format!("there is no message {number}")))?;
        show(&reader.document(row)?.to_text());
        return Ok(());
    }
    reader.talk(&mut prompt()?)
}

fn default_maildir(section: &Section) -> Result<PathBuf, Failure> {
    if let Some(path) = std::env::var_os("MAILDIR") {
        return Ok(path.into());
    }
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    let own = section.mailbox_folder().join(&user);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join("Maildir"));
    match home {
        _ if !user.is_empty() && own.is_dir() => Ok(own),
        Some(home) if home.is_dir() => Ok(home),
        _ => Err(Failure::usage("no mailbox is known; name a Maildir, or set MAILDIR")),
    }
}

/// All messages, in threads, the thread with the latest message last.
fn rows(mailbox: &Mailbox) -> std::io::Result<Vec<Row>> {
    // One that vanishes meanwhile is not there.
    let named = mailbox.scan()?.into_iter().filter_map(|name| Some((mailbox.summary(&name).ok()?, name)));
    let found: Vec<_> = named.collect();
    let entries: Vec<_> = found
        .iter()
        .map(|(summary, _)| Entry {
            id: summary.id.as_deref(),
            references: &summary.references,
            date_s: summary.date_s,
        })
        .collect();
    let placed = arrange(&entries, false);
    let mut found: Vec<_> = found.into_iter().map(Some).collect();
    let row = |placed: inhost_mailreader::thread::Placed| {
        let (summary, name) = found.get_mut(placed.index)?.take()?;
        Some(Row { name, summary, branch: placed.branch })
    };
    Ok(placed.into_iter().filter_map(row).collect())
}

impl Reader<'_> {
    fn json(&self) -> serde_json::Value {
        let row = |(number, row): (usize, &Row)| {
            json!({
                "number": number + 1,
                "path": self.mailbox.path_of(&row.name),
                "from": row.summary.from,
                "address": row.summary.address,
                "to": row.summary.to,
                "subject": row.summary.subject,
                "date_s": row.summary.date_s,
                "size_bytes": row.summary.size_bytes,
                "flags": row.name.flags.to_string(),
                "is_unread": row.name.is_unread(),
            })
        };
        self.rows.iter().enumerate().map(row).collect()
    }

    fn talk(&mut self, editor: &mut DefaultEditor) -> Result<(), Failure> {
        show(&self.list());
        while let Ok(line) = kept(ENDING, || editor.readline("mail> ")) {
            let line = line.trim().to_owned();
            let _ = editor.add_history_entry(&line);
            match self.command(&line, editor) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(failure) => show(&format!("{failure}\n")),
            }
        }
        // The input has ended: nothing is removed that nobody confirmed.
        Ok(())
    }

    /// Whether it goes on.
    fn command(&mut self, line: &str, editor: &mut DefaultEditor) -> Result<bool, Failure> {
        if let Some(words) = line.strip_prefix('/') {
            self.find(words.trim());
            show(&self.list());
            return Ok(true);
        }
        if line.parse::<usize>().is_ok() {
            self.read(self.row(line)?)?;
            return Ok(true);
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            // Of another message than the one that was read last.
            "h" | "d" | "u" | "r" | "R" | "f" if !rest.is_empty() => self.current = Some(self.row(rest)?),
            "l" | "+" | "-" | "n" | "w" | "q" | "x" if !rest.is_empty() => {
                return Err(Failure::usage(format!("{word} takes nothing more; ? shows the commands")));
            }
            _ => {}
        }
        match word {
            "" | "l" => show(&self.list()),
            "+" => self.turn(self.page.saturating_add(1)),
            "-" => self.turn(self.page.saturating_sub(1)),
            "n" => match self.rows.iter().position(|row| row.name.is_unread()) {
                Some(row) => self.read(row)?,
                None => show("all are read\n"),
            },
            "h" => show(&format!("{}\n", self.document(self.current()?)?.header.join("\n"))),
            "d" => {
                self.flag(Flags::TRASHED, Flags::NONE)?;
                let number = self.current()? + 1;
                show(&format!("message {number} is removed when you leave by q; u takes that back\n"));
            }
            "u" => self.flag(Flags::NONE, Flags::TRASHED)?,
            "s" => self.save(rest)?,
            "r" | "R" | "f" => self.answer(word, editor)?,
            "w" => drop(compose(Composition::new(&self.from()?), &self.arguments.folder, editor)?),
            "q" => {
                self.remove()?;
                return Ok(false);
            }
            "x" => return Ok(false),
            _ => show(COMMANDS),
        }
        Ok(true)
    }

    /// The message with a number.
    fn row(&self, number: &str) -> Result<usize, Failure> {
        let number = number.trim();
        let row = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        row.filter(|row| *row < self.rows.len())
            .ok_or_else(|| Failure::usage(format!("there is no message {number:?}")))
    }

    fn from(&self) -> Result<String, Failure> {
        match &self.arguments.from {
            Some(from) => Ok(from.clone()),
            None => own_address(&self.arguments.folder),
        }
    }

    fn list(&self) -> String {
        let unread = self.rows.iter().filter(|row| row.name.is_unread()).count();
        let first = self.page * PAGE;
        let mut text = String::new();
        for &index in self.shown.iter().skip(first).take(PAGE) {
            let row = &self.rows[index];
            let flag = match row.name.flags {
                flags if flags.contains(Flags::TRASHED) => 'D',
                flags if flags.contains(Flags::REPLIED) => 'r',
                _ if row.name.is_unread() => '*',
                _ => ' ',
            };
            let subject = format!("{}{}", row.branch, row.summary.subject);
            let start =
                format!("{:>5} {flag} {}  {}  ", index + 1, row.summary.date, fit(&row.summary.from, 20));
            let subject = clean_line(&subject, WIDTH.saturating_sub(columns(&start)));
            text += &format!("{start}{subject}\n");
        }
        let pages = self.shown.len().div_ceil(PAGE).max(1);
        text += &format!(
            "{}, {unread} unread; page {} of {pages}. ? shows the commands.\n",
            counted(self.shown.len() as u64, "message"),
            self.page + 1
        );
        text
    }

    fn turn(&mut self, page: usize) {
        self.page = page.min(self.shown.len().saturating_sub(1) / PAGE);
        show(&self.list());
    }

    /// Shows the messages with all words in sender, subject or text.
    fn find(&mut self, words: &str) {
        let words: Vec<_> = words.split_whitespace().map(str::to_lowercase).collect();
        let has = |row: &Row| {
            let head = format!("{} {} {}", row.summary.from, row.summary.address, row.summary.subject)
                .to_lowercase();
            words.iter().all(|word| {
                head.contains(word)
                    || self
                        .mailbox
                        .read(&row.name, MESSAGE_BYTES)
                        .is_ok_and(|octets| Document::contains(&octets, word))
            })
        };
        self.shown = (0..self.rows.len()).filter(|row| has(&self.rows[*row])).collect();
        self.page = self.shown.len().saturating_sub(1) / PAGE;
    }

    fn octets(&self, row: usize) -> Result<Vec<u8>, Failure> {
        let read = self.mailbox.read(&self.rows[row].name, MESSAGE_BYTES);
        read.map_err(|e| Failure::operation(format!("message {} cannot be read: {e}", row + 1)))
    }
    fn document(&self, row: usize) -> Result<Document, Failure> {
        Ok(Document::parse(&self.octets(row)?, &self.host_name))
    }
    fn current(&self) -> Result<usize, Failure> {
        self.current.ok_or_else(|| Failure::usage("read a message first: give its number"))
    }

    fn read(&mut self, row: usize) -> Result<(), Failure> {
        show(&self.document(row)?.to_text());
        self.current = Some(row);
        self.flag(Flags::SEEN, Flags::NONE)
    }
    fn flag(&mut self, set: Flags, clear: Flags) -> Result<(), Failure> {
        let row = self.current()?;
        let changed = self.mailbox.change(&self.rows[row].name, set, clear);
        let name =
            changed.map_err(|e| Failure::operation(format!("message {} cannot be marked: {e}", row + 1)))?;
        self.rows[row].name = name;
        Ok(())
    }
    fn answer(&mut self, word: &str, editor: &mut DefaultEditor) -> Result<(), Failure> {
        let (document, from) = (self.document(self.current()?)?, self.from()?);
        let (composition, flag) = match word {
            "f" => (Composition::forward(&document, &from), Flags::PASSED),
            word => (Composition::reply(&document, &from, word == "R"), Flags::REPLIED),
        };
        match compose(composition, &self.arguments.folder, editor)? {
            true => self.flag(flag, Flags::NONE),
            false => Ok(()),
        }
    }
    /// `N FILE`: saves an attachment in a file that is not there yet.
    fn save(&self, rest: &str) -> Result<(), Failure> {
        let usage = || Failure::usage("write s NUMBER FILE: the number stands in brackets below the text");
        let (number, file) = rest.split_once(' ').ok_or_else(usage)?;
        let index =
            number.parse::<usize>().ok().and_then(|number| number.checked_sub(1)).ok_or_else(usage)?;
        let octets = Document::attachment(&self.octets(self.current()?)?, index).ok_or_else(usage)?;
        let path = Path::new(file.trim());
        let failed = |e: std::io::Error| Failure::operation(format!("cannot write {}: {e}", path.display()));
        let mut opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        opened
            .as_mut()
            .map_err(|e| failed(std::io::Error::from(e.kind())))?
            .write_all(&octets)
            .map_err(failed)?;
        show(&format!("{} octets in {}\n", octets.len(), path.display()));
        Ok(())
    }
    fn remove(&self) -> Result<(), Failure> {
        let mut removed = 0;
        for row in self.rows.iter().filter(|row| row.name.flags.contains(Flags::TRASHED)) {
            self.mailbox
                .remove(&row.name)
                .map_err(|e| Failure::operation(format!("a message cannot be removed: {e}")))?;
            removed += 1;
        }
        if removed > 0 {
            show(&format!("{removed} removed\n"));
        }
        Ok(())
    }
}
