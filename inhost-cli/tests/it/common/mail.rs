//! Mail servers of others, and what tests of mail share.

use super::{Folder, connect, peer, with_deadline};
use inhost_interop::{Running, run};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A certificate for `localhost` in `cert.pem`, its key in `key.pem`.
pub fn certificate(at: &Path) {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"]);
    openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:10.0.2.2", "-keyout"]);
    run(openssl.arg(at.join("key.pem")).arg("-out").arg(at.join("cert.pem")));
    run(Command::new("chmod").args(["600"]).arg(at.join("key.pem")));
}

/// Postfix at 127.0.0.1:`port` for the domain `pf.example`, whose mail goes into the Maildir `pf/box/all`; mail for
/// others goes to 127.0.0.1:`relay`, in TLS. Needs root.
pub fn postfix(folder: &Folder, port: u16, relay: u16) -> Running {
    let (at, postfix) = (folder.0.join("pf"), peer("postfix", "usr"));
    for name in ["spool", "data", "etc", "box"] {
        fs::create_dir_all(at.join(name)).unwrap();
    }
    fs::write(at.join("etc/main.cf"), format!(
        "compatibility_level = 3.6\nqueue_directory = {0}/spool\ncommand_directory = {1}/sbin\n\
         daemon_directory = /usr/lib/postfix/sbin\ndata_directory = {0}/data\nmail_owner = postfix\n\
         setgid_group = postdrop\nmyhostname = pf.example\nmydestination =\ninet_interfaces = 127.0.0.1\n\
         inet_protocols = ipv4\nlocal_recipient_maps =\nvirtual_mailbox_domains = pf.example\n\
         virtual_mailbox_base = {0}/box\nvirtual_mailbox_maps = static:all/\nvirtual_uid_maps = static:UID\n\
         virtual_gid_maps = static:GID\nmynetworks = 127.0.0.0/8\nrelayhost = [127.0.0.1]:{relay}\n\
         smtp_tls_security_level = encrypt\nsmtpd_tls_security_level = may\nsmtpd_tls_cert_file = {2}/cert.pem\n\
         smtpd_tls_key_file = {2}/key.pem\nmaillog_file = {0}/log\nmaillog_file_prefixes = /\nalias_maps =\n\
         alias_database =\nsmtpd_client_connection_count_limit = 0\ndefault_process_limit = 600\n",
        at.display(), postfix.display(), folder.0.display()
    )).unwrap();
    let services = "pickup unix n - n 60 1 pickup\ncleanup unix n - n - 0 cleanup\nqmgr unix n - n 300 1 qmgr\n\
        tlsmgr unix - - n 1000? 1 tlsmgr\nrewrite unix - - n - - trivial-rewrite\nbounce unix - - n - 0 bounce\n\
        defer unix - - n - 0 bounce\ntrace unix - - n - 0 bounce\nverify unix - - n - 1 verify\n\
        flush unix n - n 1000? 0 flush\nproxymap unix - - n - - proxymap\nsmtp unix - - n - - smtp\n\
        relay unix - - n - - smtp\nshowq unix n - n - - showq\nerror unix - - n - - error\n\
        retry unix - - n - - error\ndiscard unix - - n - - discard\nvirtual unix - n n - - virtual\n\
        anvil unix - - n - 1 anvil\nscache unix - - n - 1 scache\npostlog unix-dgram n - n - 1 postlogd\n";
    fs::write(at.join("etc/master.cf"), format!("127.0.0.1:{port} inet n - n - - smtpd\n{services}"))
        .unwrap();
    let script = format!(
        "set -e\nmkdir -p /usr/lib/postfix\nmount --bind {1}/lib/postfix /usr/lib/postfix\n\
         export LD_LIBRARY_PATH=/usr/lib/postfix\ncd {0}\n\
         sed -i \"s/:UID/:$(id -u postfix)/; s/:GID/:$(id -g postfix)/\" etc/main.cf\nchown postfix data box\ncd spool\n\
         for d in active bounce corrupt defer deferred flush hold incoming private saved trace maildrop public; do\n\
         mkdir -m 700 $d; chown postfix $d; done\nmkdir pid\nchgrp postdrop maildrop public\nchmod 730 maildrop\n\
         chmod 710 public\nexec /usr/lib/postfix/sbin/master -c {0}/etc -d\n",
        at.display(),
        postfix.display()
    );
    fs::set_permissions(&folder.0, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let running = Running::start(Command::new("unshare").args(["-m", "bash", "-c", &script]));
    drop(connect(&format!("127.0.0.1:{port}")));
    running
}

/// OpenSMTPD at 127.0.0.1:`port` for the domain `os.example`, whose mail goes into the Maildir `os/box`; mail for others
/// goes to 127.0.0.1:`relay`, in TLS. As a server it has no TLS: Debian 12's fails at that with OpenSSL 3, with any client.
/// Needs root.
pub fn opensmtpd(folder: &Folder, port: u16, relay: u16) -> Running {
    let (at, smtpd) = (folder.0.join("os"), peer("smtpd", "usr"));
    fs::create_dir_all(at.join("spool")).unwrap();
    fs::write(
        at.join("smtpd.conf"),
        format!(
            "listen on 127.0.0.1 port {port} hostname os.example\n\
         action \"local\" maildir \"{0}/box\" virtual {{ \"@\" = nobody }}\n\
         action \"out\" relay host smtp+tls://127.0.0.1:{relay} tls no-verify helo os.example\n\
         match from any for domain \"os.example\" action \"local\"\nmatch from any for any action \"out\"\n",
            at.display()
        ),
    )
    .unwrap();
    let script = format!(
        "set -e\nmkdir -p /usr/libexec/opensmtpd /var/lib/opensmtpd/empty\n\
         mount --bind {1}/libexec/opensmtpd /usr/libexec/opensmtpd\nmkdir {0}/box\nchown nobody {0}/box\n\
         chmod 711 {0}/spool\nmount -t tmpfs tmpfs /var/spool\nmkdir /var/spool/smtpd\n\
         mount --bind {0}/spool /var/spool/smtpd\nexec {1}/sbin/smtpd -d -f {0}/smtpd.conf\n",
        at.display(),
        smtpd.display()
    );
    let running = Running::start(Command::new("unshare").args(["-m", "bash", "-c", &script]));
    drop(connect(&format!("127.0.0.1:{port}")));
    running
}

/// The files of the folder `path`, once there are `count` of them.
pub fn files(path: PathBuf, count: usize) -> Vec<String> {
    let all = || -> Option<Vec<String>> {
        let found = fs::read_dir(&path).ok()?.flatten();
        let texts = found.map(|entry| String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned());
        Some(texts.collect::<Vec<_>>()).filter(|texts| texts.len() >= count)
    };
    let found = inhost_interop::within(Duration::from_secs(40), all);
    found.unwrap_or_else(|| panic!("{} has fewer than {count} files", path.display()))
}

/// A server that answers each line by the first pair whose word it begins with, else by "250 Ok"; the empty word is the
/// greeting, and an empty answer closes. Its port. It ends with the test's process.
pub fn scripted(replies: &'static [(&'static str, &'static str)]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(with_deadline(stream), replies));
        }
    });
    port
}

fn serve(stream: TcpStream, replies: &[(&str, &str)]) -> Option<()> {
    let mut to = stream.try_clone().ok()?;
    let answer = |line: &str| match replies
        .iter()
        .find(|(word, _)| line.starts_with(word) && word.is_empty() == line.is_empty())
    {
        Some((_, reply)) => (*reply).to_owned(),
        None if line.is_empty() => "220 ready".into(),
        None if line == "DATA" => "354 go".into(),
        None => "250 Ok".into(),
    };
    let mut say = |text: String| match text.as_str() {
        "" => None,
        text => to.write_all(format!("{text}\r\n").as_bytes()).ok(),
    };
    say(answer(""))?;
    let (mut is_text, lines) = (false, BufReader::new(stream).lines());
    for line in lines {
        let line = line.ok()?;
        if is_text && line != "." {
            continue;
        }
        let reply = answer(&line);
        is_text = reply.starts_with("354");
        say(reply)?;
    }
    Some(())
}
