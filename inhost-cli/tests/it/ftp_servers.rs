//! Our FTP client against vsftpd, proftpd and pure-ftpd, in clear text and in TLS, and between two of them. Needs root.

use crate::common::{Folder, Pattern, Serve, connect, inhost, peer};
use inhost_interop::{Running, output, own_network, run};
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

/// The account that vsftpd's visitors have: every Debian has it, and its home.
const DAEMON: u32 = 1;
const NOBODY: u32 = 65_534;

fn pattern(bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    Pattern::default().fill(&mut data);
    data
}

/// The four servers, each with a file `f` in a folder `pub`.
struct Servers {
    folder: Folder,
    _running: Vec<Running>,
}

impl Servers {
    fn start(name: &str) -> Servers {
        let folder = Folder::new(name);
        let at = &folder.0;
        let request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=x"];
        let mut openssl = Command::new("openssl");
        openssl.args(request).args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout"]);
        run(openssl.arg(at.join("key.pem")).arg("-out").arg(at.join("cert.pem")));
        for (home, owner) in [("vs/pub", DAEMON), ("pf/pub", NOBODY), ("pu/pub", NOBODY)] {
            fs::create_dir_all(at.join(home)).unwrap();
            fs::write(at.join(home).join("f"), pattern(3_000_000)).unwrap();
            chown(at.join(home), Some(owner), None).unwrap();
            chown(at.join(home).join("f"), Some(owner), None).unwrap();
        }
        fs::create_dir(at.join("empty")).unwrap();
        let mut running = vec![vsftpd(at, "clear", 2101, ""), vsftpd(at, "tls", 2111, VSFTPD_TLS)];
        running.push(proftpd(at));
        running.push(pure_ftpd(at));
        for port in [2101, 2111, 2102, 2103] {
            drop(connect(&format!("127.0.0.1:{port}")));
        }
        Servers { folder, _running: running }
    }
    fn client(&self, arguments: &[&str]) -> Command {
        let mut client = inhost(&self.folder.0);
        client.env("INHOST_FTP_PASSWORD", "engine").arg("ftp").args(arguments).args(["--link", "user"]);
        client
    }
    /// Runs our client, which must succeed; gives what it printed.
    fn ftp(&self, arguments: &[&str]) -> String {
        run(&mut self.client(arguments))
    }
    fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

const VSFTPD_TLS: &str = "ssl_enable=YES\nallow_anon_ssl=YES\nforce_anon_logins_ssl=YES\n\
    force_anon_data_ssl=YES\nrequire_ssl_reuse=YES\nssl_ciphers=HIGH\n\
    rsa_cert_file=@/cert.pem\nrsa_private_key_file=@/key.pem\n";

fn vsftpd(at: &Path, name: &str, port: u16, more: &str) -> Running {
    let text = format!(
        "listen=YES\nbackground=NO\nlisten_port={port}\nanonymous_enable=YES\nlocal_enable=NO\n\
         no_anon_password=YES\nwrite_enable=YES\nanon_upload_enable=YES\nanon_mkdir_write_enable=YES\n\
         anon_other_write_enable=YES\nanon_world_readable_only=NO\nanon_umask=022\nanon_root=@/vs\n\
         ftp_username=daemon\nnopriv_user=nobody\nsecure_chroot_dir=@/empty\nallow_writeable_chroot=YES\n\
         seccomp_sandbox=NO\npasv_promiscuous=YES\nport_promiscuous=YES\nmax_per_ip=64\n{more}"
    );
    let path = at.join(format!("vsftpd-{name}.conf"));
    fs::write(&path, text.replace('@', at.to_str().unwrap())).unwrap();
    Running::start(Command::new(peer("vsftpd", "usr/sbin/vsftpd")).arg(path))
}

fn proftpd(at: &Path) -> Running {
    let hash = run(Command::new("openssl").args(["passwd", "-1", "engine"]));
    let users = format!("ada:{}:{NOBODY}:{NOBODY}::@/pf:/bin/sh\n", hash.trim());
    fs::write(at.join("pf.users"), users.replace('@', at.to_str().unwrap())).unwrap();
    run(Command::new("chmod").arg("600").arg(at.join("pf.users")));
    let modules = peer("proftpd", "usr/lib/proftpd");
    let text = format!(
        "ServerType standalone\nDefaultServer on\nPort 2102\nUseIPv6 off\nUser nobody\nGroup nogroup\n\
         PidFile @/pf.pid\nScoreboardFile @/pf.score\nDelayTable none\nModulePath {}\n\
         LoadModule mod_tls.c\nLoadModule mod_digest.c\nAuthOrder mod_auth_file.c\nAuthUserFile @/pf.users\n\
         RequireValidShell off\nAuthPAM off\nWtmpLog off\nDefaultRoot ~\nAllowOverwrite on\n\
         AllowStoreRestart on\nAllowForeignAddress on\nDigestEngine on\nTLSEngine on\nTLSRequired off\n\
         TLSProtocol TLSv1.2 TLSv1.3\nTLSRSACertificateFile @/cert.pem\nTLSRSACertificateKeyFile @/key.pem\n",
        modules.display()
    );
    fs::write(at.join("proftpd.conf"), text.replace('@', at.to_str().unwrap())).unwrap();
    let config = at.join("proftpd.conf");
    Running::start(Command::new(peer("proftpd", "usr/sbin/proftpd")).args(["-n", "-c"]).arg(config))
}

fn pure_ftpd(at: &Path) -> Running {
    let place = |name: &str| at.join(name).to_str().unwrap().to_owned();
    // The hash that pure-pw makes itself takes seconds a login.
    let hash = run(Command::new("openssl").args(["passwd", "-6", "engine"]));
    let user = format!("ada:{}:65534:65534::{}/./::::::::::::\n", hash.trim(), place("pu"));
    fs::write(place("pu.users"), user).unwrap();
    let make = ["mkdb", &place("pu.pdb"), "-f", &place("pu.users")];
    run(Command::new(peer("pure-ftpd", "usr/bin/pure-pw")).args(make));
    let both = [fs::read(place("key.pem")).unwrap(), fs::read(place("cert.pem")).unwrap()].concat();
    fs::write(place("both.pem"), both).unwrap();
    run(Command::new("chmod").args(["600", &place("both.pem")]));
    let (users, certificate) = (format!("puredb:{}", place("pu.pdb")), place("both.pem"));
    let arguments =
        ["-S", "127.0.0.1,2103", "-l", &users, "-H", "-Y", "1", "-2", &certificate, "-g", &place("pu.pid")];
    Running::start(Command::new(peer("pure-ftpd", "usr/sbin/pure-ftpd")).args(arguments))
}

/// Each server: its URL, its folder here, and further arguments of our client.
const SERVERS: [(&str, &str, bool); 6] = [
    ("ftp://127.0.0.1:2101/pub", "vs/pub", false),
    ("ftp://127.0.0.1:2111/pub", "vs/pub", true),
    ("ftp://ada@127.0.0.1:2102/pub", "pf/pub", false),
    ("ftp://ada@127.0.0.1:2102/pub", "pf/pub", true),
    ("ftp://ada@127.0.0.1:2103/pub", "pu/pub", false),
    ("ftp://ada@127.0.0.1:2103/pub", "pu/pub", true),
];

#[test]
fn files_from_and_to_the_servers_of_others() {
    if !own_network() {
        return;
    }
    let servers = Servers::start("ftp-others");
    let data = pattern(3_000_000);
    let ca = servers.folder.0.join("cert.pem");
    for (number, (url, there, tls)) in SERVERS.into_iter().enumerate() {
        let secure: &[&str] = if tls { &["--tls", "--ca", ca.to_str().unwrap()] } else { &[] };
        let get = format!("{url}/f");
        let text = servers.ftp(&[&["get", &get, &format!("got{number}")], secure].concat());
        assert!(text.contains("3000000 bytes"), "{text}");
        assert!(servers.file(&format!("got{number}")) == data, "{get}");
        // An upload, twice: over nothing and over a file.
        for _ in 0..2 {
            let put = format!("{url}/sent{number}");
            servers.ftp(&[&["put", &format!("got{number}"), &put], secure].concat());
            assert!(servers.file(&format!("{there}/sent{number}")) == data, "{put}");
        }
        assert!(!servers.folder.0.join(format!("{there}/sent{number}.part")).exists());
        // A download that was broken off goes on.
        fs::write(servers.folder.0.join(format!(".more{number}.inhost-part")), &data[..1_234_567]).unwrap();
        let text = servers.ftp(&[&["get", &get, &format!("more{number}")], secure].concat());
        assert!(text.contains("1.2 MB were there"), "{text}");
        assert!(servers.file(&format!("more{number}")) == data, "{get}");
    }
}

#[test]
fn trees_with_several_connections() {
    if !own_network() {
        return;
    }
    let servers = Servers::start("ftp-trees");
    let ca = servers.folder.0.join("cert.pem");
    for (number, (url, there, tls)) in SERVERS.into_iter().enumerate() {
        let secure: &[&str] = if tls { &["--tls", "--ca", ca.to_str().unwrap()] } else { &[] };
        let tree = servers.folder.0.join(format!("tree{number}"));
        for file in 0..60 {
            let folder = tree.join(format!("folder {}", file % 3));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("file {file}")), pattern(file * 97)).unwrap();
        }
        let up = format!("{url}/tree{number}");
        let sent = servers.ftp(&[&["mirror", "-R", "-n", "4", &up, tree.to_str().unwrap()], secure].concat());
        assert!(sent.contains("60 files moved"), "{url}: {sent}");
        let back = format!("back{number}");
        let got = servers.ftp(&[&["mirror", "-n", "4", &up, &back], secure].concat());
        assert!(got.contains("60 files moved"), "{url}: {got}");
        run(Command::new("diff").arg("-r").arg(tree).arg(servers.folder.0.join(&back)));
        let again = servers.ftp(&[&["mirror", &up, &back], secure].concat());
        assert!(again.contains("0 files moved") && again.contains("60 were there"), "{there}: {again}");
    }
}

#[test]
fn from_one_server_to_another() {
    if !own_network() {
        return;
    }
    let servers = Servers::start("ftp-third");
    let data = pattern(3_000_000);
    servers.ftp(&["copy", "ftp://127.0.0.1:2101/pub/f", "ftp://ada@127.0.0.1:2102/pub/third"]);
    assert!(servers.file("pf/pub/third") == data);
    servers.ftp(&["copy", "ftp://ada@127.0.0.1:2102/pub/f", "ftp://127.0.0.1:2101/pub/third"]);
    assert!(servers.file("vs/pub/third") == data);
}

#[test]
fn active_mode_and_ipv6_through_a_running_host() {
    if !own_network() {
        return;
    }
    let servers = Servers::start("ftp-active");
    let six = vsftpd(&servers.folder.0, "six", 2121, "listen=NO\nlisten_ipv6=YES\n");
    let link = "tap:inact0,address=10.25.0.2/24,host=10.25.0.1/24,address=fd25::2/64,host=fd25::1/64";
    let serve = Serve::start("ftp-running", &["--link", link]);
    drop(connect("10.25.0.2:23"));
    drop(connect("[fd25::2]:23"));
    let ftp = |arguments: &[&str]| {
        let done = output(serve.inhost().arg("ftp").args(arguments));
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let said = ftp(&["get", "--active", "--verbose", "ftp://10.25.0.1:2101/pub/f", "got"]);
    assert!(said.contains("PORT 10,25,0,2,") || said.contains("EPRT |1|10.25.0.2|"), "{said}");
    assert!(fs::read(serve.folder.0.join("got")).unwrap() == pattern(3_000_000));
    ftp(&["put", "--active", "got", "ftp://10.25.0.1:2101/pub/active"]);
    assert!(servers.file("vs/pub/active") == pattern(3_000_000));
    // IPv6 as well, where there is nothing but the extended commands.
    for (number, (more, word)) in
        [(&[][..], "EPSV"), (&["--active"], "EPRT |2|fd25::2|")].into_iter().enumerate()
    {
        let name = format!("six{number}");
        let url = "ftp://[fd25::1]:2121/pub/";
        let said = ftp(&[&["get", "--verbose", &format!("{url}f"), &name], more].concat());
        assert!(said.contains(word), "{said}");
        assert!(fs::read(serve.folder.0.join(&name)).unwrap() == pattern(3_000_000));
        ftp(&[&["put", &name, &format!("{url}{name}")], more].concat());
        assert!(servers.file(&format!("vs/pub/{name}")) == pattern(3_000_000));
    }
    drop(six);
    assert!(serve.end().success());
}

#[test]
fn what_fails_is_said_in_a_line() {
    if !own_network() {
        return;
    }
    let servers = Servers::start("ftp-fails");
    let says = |arguments: &[&str], status: i32, word: &str| {
        let done = output(&mut servers.client(arguments));
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(text.contains(word) && text.trim_end().lines().count() == 1, "{arguments:?}: {text}");
    };
    says(&["get", "ftp://ada@127.0.0.1:2102/pub/none"], 1, "550");
    says(&["get", "ftp://ada:wrong@127.0.0.1:2102/pub/f"], 1, "530");
    says(&["get", "ftp://127.0.0.1:9/x"], 1, "127.0.0.1");
    // No downgrade: a server without TLS gets no password, and a certificate of nobody no trust.
    says(&["get", "--tls", "--insecure", "ftp://127.0.0.1:2101/pub/f"], 1, "AUTH TLS");
    says(&["get", "--tls", "ftp://ada@127.0.0.1:2102/pub/f"], 1, "TLS");
    says(&["get", "http://127.0.0.1/x"], 2, "ftp://");
}
