//! Reports to senders (RFC 3461, 3462, 3464).

use std::fmt::Write;

use bytes::Bytes;

use crate::body::Body;
use crate::codec::{MailFrom, Mailbox, Recipient, Returns};
use crate::compose::one_line;
use crate::date::date;
use crate::queue::{NewMessage, NewRecipient, Reason};

/// Octets of the message that a report returns at most.
const RETURNED_BYTES: usize = 64 << 10;

/// What a report is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportKind {
    /// The message cannot be delivered.
    Failed,
    /// It takes long; it is tried until then, in seconds since 1970.
    Delayed {
        /// Seconds since 1970.
        until_s: u64,
    },
    /// It is in the recipient's mailbox.
    Delivered,
    /// A server has it that sends no reports.
    Relayed,
}

/// A recipient of a report.
#[derive(Clone, Debug)]
pub struct Reported {
    /// The mailbox with its parameters.
    pub recipient: Recipient,
    /// Why it failed or waits.
    pub reason: Option<Reason>,
}

/// A report to be made.
pub struct Report<'a> {
    /// This host's name.
    pub host: &'a str,
    /// What it is about.
    pub kind: ReportKind,
    /// The message's envelope.
    pub mail: &'a MailFrom,
    /// The message.
    pub text: &'a Bytes,
    /// When the message came, in seconds since 1970.
    pub arrived_s: u64,
    /// The recipients.
    pub recipients: Vec<Reported>,
    /// A number that no other report of this host has.
    pub number: u64,
}

impl Report<'_> {
    /// The report as a message; `None` where there is nobody to tell: a report about a report is not made (RFC 5321
    /// §4.5.5).
    pub fn message(&self, now_s: u64, expires_s: u64) -> Option<NewMessage> {
        let sender = self.mail.sender.clone()?;
        let domain = sender.domain().to_owned();
        let body = self.text(&sender, now_s);
        let mail =
            MailFrom { is_eight_bit: !body.is_ascii(), is_utf8: self.mail.is_utf8, ..MailFrom::default() };
        Some(NewMessage {
            mail,
            recipients: vec![NewRecipient { recipient: Recipient::new(sender), domain }],
            body: Body::new(body),
            origin: "a report of this host".into(),
            arrived_s: now_s,
            expires_s,
            is_signed: false,
        })
    }

    fn text(&self, sender: &Mailbox, now_s: u64) -> String {
        let host = self.host;
        let (subject, action, first) = match self.kind {
            ReportKind::Failed => ("Mail could not be delivered", "failed", "could not be delivered to"),
            ReportKind::Delayed { .. } => ("Mail is delayed", "delayed", "has not been delivered yet to"),
            ReportKind::Delivered => ("Mail was delivered", "delivered", "was delivered to"),
            ReportKind::Relayed => {
                ("Mail was passed on", "relayed", "was given to a server that sends no reports, for")
            }
        };
        let boundary = format!("report-{now_s:x}-{:x}", self.number);
        let mut text = format!(
            "Date: {}\r\nFrom: Mail System <MAILER-DAEMON@{host}>\r\nTo: <{sender}>\r\nSubject: {subject}\r\n\
             Message-ID: <{boundary}@{host}>\r\nAuto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/report; report-type=delivery-status;\r\n\tboundary=\"{boundary}\"\r\n\r\n\
             --{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\
             This is {host}. Your message of {}\r\n{first}:\r\n\r\n",
            date(now_s),
            date(self.arrived_s),
        );
        for reported in &self.recipients {
            let _ = write!(text, "  {}\r\n", reported.recipient.mailbox);
            if let Some(reason) = &reported.reason {
                let _ = write!(
                    text,
                    "    {}\r\n    {}\r\n",
                    one_line(&reason.to_string()),
                    one_line(&reason.remedy())
                );
            }
        }
        match self.kind {
            ReportKind::Delayed { until_s } => {
                let _ = write!(text, "\r\nIt is tried until {}. You need do nothing.\r\n", date(until_s));
            }
            ReportKind::Failed => text += "\r\nIt is not tried again.\r\n",
            _ => {}
        }
        let _ = write!(
            text,
            "\r\n--{boundary}\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; {host}\r\n\
             Arrival-Date: {}\r\n",
            date(self.arrived_s)
        );
        if let Some(id) = &self.mail.envelope_id {
            let _ = write!(text, "Original-Envelope-Id: {}\r\n", one_line(id));
        }
        for reported in &self.recipients {
            self.status(reported, action, &mut text);
        }
        self.returned(&boundary, &mut text);
        let _ = write!(text, "\r\n--{boundary}--\r\n");
        text
    }

    fn status(&self, reported: &Reported, action: &str, text: &mut String) {
        let is_final = matches!(self.kind, ReportKind::Failed);
        let status = match &reported.reason {
            Some(reason) => reason.status(is_final),
            None => "2.0.0".into(),
        };
        // RFC 3464 §2.3.4: the class tells what the action is.
        let class = match self.kind {
            ReportKind::Failed => '5',
            ReportKind::Delayed { .. } => '4',
            _ => '2',
        };
        let status: String = core::iter::once(class).chain(status.chars().skip(1)).collect();
        if let Some(original) = &reported.recipient.original {
            let _ = write!(text, "\r\nOriginal-Recipient: {}", one_line(original));
        }
        let _ = write!(
            text,
            "\r\nFinal-Recipient: rfc822; {}\r\nAction: {action}\r\nStatus: {status}\r\n",
            reported.recipient.mailbox
        );
        if let Some(Reason::Refused { server, reply, .. }) = &reported.reason {
            let _ = write!(
                text,
                "Remote-MTA: dns; {}\r\nDiagnostic-Code: smtp; {}\r\n",
                one_line(server),
                one_line(&reply.to_string())
            );
        }
        if let ReportKind::Delayed { until_s } = self.kind {
            let _ = write!(text, "Will-Retry-Until: {}\r\n", date(until_s));
        }
    }

    /// The message that the report is about, or its header.
    fn returned(&self, boundary: &str, text: &mut String) {
        let header_end = memchr::memmem::find(self.text, b"\r\n\r\n").map_or(self.text.len(), |at| at + 2);
        let is_whole = self.mail.returns == Some(Returns::Full)
            && self.kind == ReportKind::Failed
            && self.text.len() <= RETURNED_BYTES;
        let (kind, part) = match is_whole {
            true => ("message/rfc822", &self.text[..]),
            false => ("text/rfc822-headers", &self.text[..header_end.min(RETURNED_BYTES)]),
        };
        let part = String::from_utf8_lossy(part);
        let encoding = if part.is_ascii() { "7bit" } else { "8bit" };
        let _ = write!(
            text,
            "\r\n--{boundary}\r\nContent-Type: {kind}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{part}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Step;
    use crate::codec::Reply;
    use mail_parser::{MessageParser, MimeHeaders};

    #[test]
    fn a_report_has_three_parts_and_goes_to_nobody_for_a_report() {
        let reply = Reply::new(550, "5.1.1", "No such\nuser");
        let reason = Reason::Refused { server: "mx.b.example".into(), step: Step::Recipient, reply };
        let mut recipient = Recipient::new("x@b.example".parse().unwrap());
        recipient.original = Some("rfc822;old@b.example".into());
        let mut mail = MailFrom { sender: Some("a@here.example".parse().unwrap()), ..MailFrom::default() };
        mail.envelope_id = Some("id 7".into());
        let text = Bytes::from("Subject: =?utf-8?q?x?=\r\nFrom: a\r\n\r\nsecret\r\n");
        let mut report = Report {
            host: "here.example",
            kind: ReportKind::Failed,
            mail: &mail,
            text: &text,
            arrived_s: 1_700_000_000,
            recipients: vec![Reported { recipient, reason: Some(reason) }],
            number: 1,
        };
        let made = report.message(1_700_000_100, 1_700_900_000).unwrap();
        assert_eq!((made.mail.sender, made.recipients[0].domain.as_str()), (None, "here.example"));
        let octets = made.body.read(1 << 20).unwrap();
        let parsed = MessageParser::default().parse(&octets[..]).unwrap();
        assert_eq!(parsed.content_type().unwrap().attribute("report-type"), Some("delivery-status"));
        let kinds = parsed.parts.iter().filter_map(|part| part.content_type()?.c_subtype.clone());
        assert_eq!(kinds.collect::<Vec<_>>(), ["report", "plain", "delivery-status", "rfc822-headers"]);
        let text = core::str::from_utf8(&octets).unwrap();
        for line in [
            "Final-Recipient: rfc822; x@b.example\r\nAction: failed\r\nStatus: 5.1.1\r\n",
            "Original-Recipient: rfc822;old@b.example\r\n",
            "Diagnostic-Code: smtp; 550 5.1.1 No such / user\r\n",
            "Original-Envelope-Id: id 7\r\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("secret"), "the header alone was to be returned");
        report.kind = ReportKind::Delayed { until_s: 1_700_900_000 };
        let octets = report.message(0, 0).unwrap().body.read(1 << 20).unwrap();
        assert!(core::str::from_utf8(&octets).unwrap().contains("Status: 4.1.1\r\n"));
        let nobody = MailFrom::default();
        report.mail = &nobody;
        assert!(report.message(0, 0).is_none());
    }
}
