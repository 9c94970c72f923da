use super::*;

const MAIL: &[u8] = b"Authentication-Results: mx.example; dmarc=pass header.from=a; spf=fail (x; y) z=1\r\n\
Authentication-Results: evil.example; dmarc=fail\r\n\
From: Ada <ada@example.net>\r\nTo: bob@example.org\r\nSubject: Plans\r\n\
Content-Type: multipart/mixed; boundary=b\r\n\r\n\
--b\r\nContent-Type: text/plain; charset=iso-8859-1; format=flowed\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
Gr=FC=DFe=20\r\naus.=1B[2J\r\n\
--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"../../.ssh/a=b.pdf\"\r\n\
Content-Transfer-Encoding: base64\r\n\r\nAAEC\r\n\
--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\nInner text\r\n--b--\r\n";

#[test]
fn a_message_has_text_attachments_and_a_verdict() {
    let document = Document::parse(MAIL, "MX.example");
    assert_eq!(document.text.trim_end(), "Grüße aus.\u{fffd}[2J");
    assert_eq!(document.checks.as_ref().unwrap().text, "dmarc=pass spf=fail");
    assert!(document.checks.unwrap().is_pass);
    let names: Vec<_> =
        document.attachments.iter().map(|one| (one.name.as_str(), one.kind.as_str())).collect();
    assert_eq!(names, [("a=b.pdf", "application/pdf"), ("attachment-2.eml", "message/rfc822")]);
    assert_eq!(Document::attachment(MAIL, 0).unwrap(), [0, 1, 2]);
    let inner = Document::attachment(MAIL, 1).unwrap();
    assert_eq!(Document::parse(&inner, "").text.trim_end(), "Inner text");
    assert_eq!(Document::attachment(MAIL, 2), None);
    assert!(Document::parse(MAIL, "").checks.is_none() && Document::parse(MAIL, "other").checks.is_none());
    assert!(Document::contains(MAIL, "grüße") && !Document::contains(MAIL, "Grüße"));
    assert!(document.header.iter().any(|line| line == "Subject: Plans"));
}

#[test]
fn html_is_text_with_links() {
    let html = b"Content-Type: text/html\n\n<style>p{}</style><p>Pay at <a href=\"https://evil.example/x\">your bank</a>\
        <script>alert(1)</script> &lt;now&gt;</p><table><tr><td>1<td>2</table>";
    let document = Document::parse(html, "");
    assert!(document.is_html);
    assert!(document.text.contains("[your bank][1]") && document.text.contains("https://evil.example/x"));
    assert!(document.text.contains("<now>") && !document.text.contains("alert"), "{}", document.text);
}

#[test]
fn names_of_strangers_are_no_paths() {
    for (theirs, ours) in [
        ("/etc/passwd", "passwd"),
        ("..\\..\\x.exe", "x.exe"),
        ("..", ""),
        ("~/.bashrc", "bashrc"),
        ("-rf\n", "rf"),
        ("a\u{202e}fdp.exe", "afdp.exe"),
    ] {
        assert_eq!(file_name(theirs), ours, "{theirs:?}");
    }
    assert!(file_name(&"x".repeat(1 << 20)).len() <= NAME_CHARACTERS);
}

/// Each is read in a time that nobody waits for; the test has no clock, a slow one would not end.
#[test]
fn hostile_messages_do_no_harm() {
    let html = |body: String| format!("Content-Type: text/html\n\n{body}");
    let nested: String =
        (0..10_000).map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n")).collect();
    let boundaries = format!("Content-Type: multipart/mixed; boundary=b\n\n{}", "--b\n\nx\n".repeat(200_000));
    let all = [
        "Content-Type: message/rfc822\n\n".repeat(100_000),
        "A: b\n".repeat(500_000),
        format!("Subject: {}", "x".repeat(8 << 20)),
        format!("References: {}\n\n", "<a@b> ".repeat(500_000)),
        format!("To: {}\n\n", "a@b, ".repeat(500_000)),
        format!("To: {}\n\n", "(".repeat(1 << 20)),
        format!("Subject: {}\n\n", "=?utf-8?q?=41?= ".repeat(200_000)),
        nested,
        boundaries,
        html("<b><table><tr><td>".repeat(20_000)),
        html("<div>".repeat(200_000)),
        html("<b><p>".repeat(45) + &"x ".repeat(100_000)),
        html("<a href=x>y</a>".repeat(50_000)),
        html("<table><tr><td>".repeat(49) + "x"),
        html(format!("<table>{}</table>", "<tr><td>1<td colspan=1000000>2".repeat(2000))),
        html("&".repeat(1 << 20)),
        html("<!--".repeat(100_000)),
        html("<".repeat(1 << 20)),
    ];
    for message in all {
        let document = Document::parse(message.as_bytes(), "mx");
        let beginning: String = message.chars().take(40).collect();
        assert!(document.text.len() <= 2 * TEXT_BYTES, "{beginning}");
        assert!(!document.to_text().contains('\u{1b}'));
        let _ = crate::Summary::parse(message.as_bytes(), 0, 0);
    }
}
