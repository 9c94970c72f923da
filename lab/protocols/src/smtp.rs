//! A message is sent by SMTP, into a mailbox of the host.

use inhost_mail::service::Mail;
use inhost_socket::Host;

use crate::Failed;
use crate::dialogue::Dialogue;
use crate::place::{Place, text};

const PORT: u16 = 25;

pub(crate) fn start(place: &Place) -> Result<Mail, Failed> {
    let folder = |name: &str| place.folder().join(name).display().to_string();
    let mut section = toml::Table::new();
    section.insert("enabled".to_owned(), true.into());
    section.insert("host_name".to_owned(), "mail.example.net".into());
    section.insert("domains".to_owned(), vec!["example.net"].into());
    section.insert("mailboxes".to_owned(), vec!["ada"].into());
    section.insert("queue".to_owned(), folder("queue").into());
    section.insert("folder".to_owned(), folder("boxes").into());
    section.insert("check".to_owned(), "off".into());
    place.start(section)
}

pub(crate) struct Client(Dialogue);

impl Client {
    pub(crate) async fn open(host: &Host) -> Result<Client, Failed> {
        let mut dialogue = Dialogue::open(host, PORT).await?;
        dialogue.reply('2').await?;
        dialogue.command("EHLO lab.example.org", '2').await?;
        Ok(Client(dialogue))
    }
}

impl crate::Client for Client {
    async fn transact(&mut self, bytes: u32) -> Result<(), Failed> {
        self.0.command("MAIL FROM:<lab@example.org>", '2').await?;
        self.0.command("RCPT TO:<ada@example.net>", '2').await?;
        self.0.command("DATA", '3').await?;
        self.0.send(&text(bytes)).await?;
        self.0.command(".", '2').await.map(drop)
    }
}
