//! curl, lftp, Debian's ftp, Python's ftplib, rclone, aioftp and C-Kermit against our FTP server on a TAP device, in its
//! own network namespace. Needs root.

use crate::common::{Folder, PASSWORD, Pattern, Serve, connect, output_given, peer};
use inhost_interop::{Running, output, own_network, pause, run};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LINK: &str = "tap:inftp0,address=10.9.0.2/24,address=fd09::2/64,host=10.9.0.1/24,host=fd09::1/64";

/// A host with the files of `ada`, of whom `big` is one.
fn serve_in(folder: &Path, name: &str, more: &str) -> Serve {
    let at = folder.display();
    fs::create_dir_all(folder.join("root/sub")).unwrap();
    let mut big = vec![0; 5_000_000];
    Pattern::default().fill(&mut big);
    fs::write(folder.join("root/big"), &big).unwrap();
    fs::write(folder.join("root/sub/a.txt"), "hello\n").unwrap();
    let (key, certificate) = (format!("{at}/key.pem"), format!("{at}/cert.pem"));
    let request =
        ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=inhost.test"];
    let names = ["-addext", "subjectAltName=IP:10.9.0.2", "-keyout", &key, "-out", &certificate];
    run(Command::new("openssl").args(request).args(names));
    let text = format!(
        "link = [\"{LINK}\"]\n[little]\nenabled = false\n[ftp]\nenabled = true\nroot = \"{at}/root\"\n\
         rights = \"write\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\nimplicit_port = 990\n\
         passive_ports = \"50000-50009\"\n{more}"
    );
    fs::write(folder.join("host.toml"), text).unwrap();
    let config = folder.join("host.toml");
    let serve = Serve::start(name, &["--config", config.to_str().unwrap()]);
    // Both addresses are tested for doubles first.
    for at in ["10.9.0.2:21", "[fd09::2]:21"] {
        drop(connect(at));
    }
    serve
}

/// Runs a program of others in the folder, which must succeed.
fn runs(folder: &Path, program: &str, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(program);
    let done = output_given(command.args(arguments).current_dir(folder).env("HOME", folder), input);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: {:?}\n{text}{errors}", done.status);
    text
}

fn same(folder: &Path, one: &str, other: &str) {
    let read = |name: &str| fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(read(one) == read(other), "{one} and {other} differ");
}

#[test]
fn clients_of_others() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("ftp-clients");
    let at = &folder.0;
    let serve = serve_in(at, "ftp-clients", "");
    curl(at);
    lftp(at);
    debians_ftp(at);
    runs(at, "python3", &["-c", FTPLIB, PASSWORD], "");
    assert!(serve.end().success());
}

fn curl(at: &Path) {
    let user = format!("ada:{}", PASSWORD);
    // Active mode in TLS is ftplib's to show: Debian's curl fails at it with vsftpd too.
    let ccc = ["--ssl-reqd", "--cacert", "cert.pem", "--ftp-ssl-ccc", "--ftp-ssl-ccc-mode"];
    // Ending TLS on the control connection: curl ends it too, or leaves that to us.
    let (active, passive) = ([&ccc[..], &["active"]].concat(), [&ccc[..], &["passive"]].concat());
    let cases: [(&str, &[&str]); 10] = [
        ("ftp://10.9.0.2/big", &[]),
        ("ftp://10.9.0.2/big", &["--disable-epsv"]),
        ("ftp://10.9.0.2/big", &["-P", "-"]),
        ("ftp://[fd09::2]/big", &["-g"]),
        ("ftp://[fd09::2]/big", &["-g", "-P", "-"]),
        ("ftp://10.9.0.2/big", &["--ssl-reqd", "--cacert", "cert.pem"]),
        ("ftp://10.9.0.2/big", &["--ssl-reqd", "--cacert", "cert.pem", "--tls-max", "1.2"]),
        ("ftps://10.9.0.2/big", &["--cacert", "cert.pem"]),
        ("ftp://10.9.0.2/big", &active),
        ("ftp://10.9.0.2/big", &passive),
    ];
    for (number, (url, more)) in cases.into_iter().enumerate() {
        let (got, sent) = (format!("curl{number}"), format!("sent{number}"));
        runs(at, "curl", &[&["-sS", "-u", &user, "-o", &got, url], more].concat(), "");
        same(at, &got, "root/big");
        let to = url.replace("/big", &format!("/{sent}"));
        runs(at, "curl", &[&["-sS", "-u", &user, "-T", &got, &to], more].concat(), "");
        same(at, &format!("root/{sent}"), "root/big");
    }
    // REST: the first part is there.
    let big = fs::read(at.join("root/big")).unwrap();
    fs::write(at.join("more"), &big[..2_000_000]).unwrap();
    runs(at, "curl", &["-sS", "-u", &user, "-C", "-", "-o", "more", "ftp://10.9.0.2/big"], "");
    same(at, "more", "root/big");
    // An upload that was killed goes on; until then it has no name.
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-u", &user, "--limit-rate", "500K", "-T", "more", "ftp://10.9.0.2/killed"]);
    let sending = Running::start(curl.current_dir(at));
    pause(Duration::from_secs(3));
    drop(sending);
    pause(Duration::from_millis(500));
    assert!(!at.join("root/killed").exists(), "half a file has a name");
    assert!(at.join("root/.killed.inhost-part").exists());
    runs(at, "curl", &["-sS", "-u", &user, "-C", "-", "-T", "more", "ftp://10.9.0.2/killed"], "");
    same(at, "root/killed", "root/big");
}

fn lftp(at: &Path) {
    let user = format!("ada,{}", PASSWORD);
    let plain = format!(
        "set net:timeout 10; set ftp:ssl-allow no; open -u {user} 10.9.0.2; ls; get big -o lftp1; \
         put lftp1 -o lftp2; mirror sub lsub; mirror -R lsub lback"
    );
    runs(at, "lftp", &["-c", &plain], "");
    let secure = format!(
        "set net:timeout 10; set ftp:ssl-force yes; set ftp:ssl-protect-data yes; set ssl:ca-file cert.pem; \
         set ssl:check-hostname no; open -u {user} 10.9.0.2; ls; get big -o lftp3; put lftp3 -o lftp4; ls; \
         mirror many lmany"
    );
    // More files than a handshake gives tickets: each data connection has to resume the session all the same.
    fs::create_dir(at.join("root/many")).unwrap();
    for number in 0..40 {
        fs::write(at.join(format!("root/many/{number}")), vec![b'x'; number * 100]).unwrap();
    }
    runs(at, "lftp", &["-c", &secure], "");
    runs(at, "diff", &["-r", "root/many", "lmany"], "");
    for (one, other) in
        [("lftp1", "root/big"), ("root/lftp2", "root/big"), ("lftp3", "root/big"), ("root/lftp4", "root/big")]
    {
        same(at, one, other);
    }
    same(at, "root/lback/a.txt", "root/sub/a.txt");
}

fn debians_ftp(at: &Path) {
    let script = format!(
        "user ada {}\nbinary\nls\nget big inet1\nput inet1 inet2\npassive\nget big inet3\nsize big\n\
         ascii\nget sub/a.txt inet4\nquit\n",
        PASSWORD
    );
    runs(at, "inetutils-ftp", &["-n", "-v", "10.9.0.2"], &script);
    same(at, "inet1", "root/big");
    same(at, "root/inet2", "root/big");
    same(at, "inet3", "root/big");
    same(at, "inet4", "root/sub/a.txt");
}

/// Both families, active and passive, in clear text and in TLS with the session resumed as Python's users do it; then
/// without, which is refused, and an abort.
const FTPLIB: &str = r"
import ftplib, ssl, io, sys
big = open('root/big', 'rb').read()
class Tls(ftplib.FTP_TLS):
    def ntransfercmd(self, cmd, rest=None):
        conn, size = ftplib.FTP.ntransfercmd(self, cmd, rest)
        if self._prot_p:
            conn = self.context.wrap_socket(conn, server_hostname=self.host, session=self.sock.session)
        return conn, size
def go(f, tls):
    f.login('ada', sys.argv[1])
    if tls: f.prot_p()
    facts = dict(f.mlsd())
    assert facts['big']['size'] == '5000000' and facts['sub']['type'] == 'dir', facts
    b = io.BytesIO(); f.retrbinary('RETR big', b.write); assert b.getvalue() == big
    b = io.BytesIO(); f.retrbinary('RETR big', b.write, rest=4999990); assert b.getvalue() == big[-10:]
    f.storbinary('STOR py', io.BytesIO(b'x' * 3000000)); assert f.size('py') == 3000000
    f.storlines('STOR lines', io.BytesIO(b'a\nb\n')); assert open('root/lines').read() == 'a\nb\n'
    f.rename('py', 'py2'); f.delete('py2'); f.mkd('d'); f.rmd('d')
    try: f.retrlines('MLSD big'); raise SystemExit('a file was listed as a folder')
    except ftplib.error_perm as e: assert str(e).startswith('501 '), e
    names = []; f.retrlines('LIST', names.append); assert any(n.endswith(' big') for n in names)
    assert 'big' in f.nlst() and f.nlst('b*') == ['big']
    assert f.sendcmd('SITE CHMOD 600 lines').startswith('200')
    assert ' a.txt' in f.sendcmd('STAT sub')
    f.quit()
for active in (False, True):
    for host in ('10.9.0.2', 'fd09::2'):
        f = ftplib.FTP(host, timeout=20); f.set_pasv(not active); go(f, False)
        c = ssl.create_default_context(cafile='cert.pem'); c.check_hostname = False
        f = Tls(host, context=c, timeout=20); f.set_pasv(not active); go(f, True)
c = ssl.create_default_context(cafile='cert.pem'); c.check_hostname = False
f = ftplib.FTP_TLS('10.9.0.2', context=c, timeout=20); f.login('ada', sys.argv[1]); f.prot_p()
try:
    f.retrlines('LIST')
    raise SystemExit('a session that is not resumed was taken')
except (ftplib.Error, ssl.SSLError, OSError): pass
f = ftplib.FTP('10.9.0.2', timeout=20); f.login('ada', sys.argv[1]); f.voidcmd('TYPE I')
s = f.transfercmd('RETR big'); s.recv(1000)
assert f.abort().startswith('426'); s.close()
assert f.voidresp().startswith('226') and f.pwd() == '/'
";

/// Small files, as a tree of `many`; each is its own data connection.
const SMALL_FILES: usize = 300;

fn many_small_files(at: &Path) {
    fs::create_dir(at.join("many")).unwrap();
    for number in 0..SMALL_FILES {
        let mut file = vec![0; number * 100];
        Pattern::default().fill(&mut file);
        fs::write(at.join(format!("many/{number}")), file).unwrap();
    }
}

/// With its own defaults and ours: several connections at once, which share the tickets of their TLS.
#[test]
fn rclone_copies_hundreds_of_files_both_ways() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("ftp-rclone");
    let at = &folder.0;
    many_small_files(at);
    let serve = serve_in(at, "ftp-rclone", "");
    let hidden = runs(at, "rclone", &["obscure", PASSWORD], "");
    let server = ["--ftp-host", "10.9.0.2", "--ftp-user", "ada", "--ftp-pass", hidden.trim()];
    for (name, tls) in [("clear", &[][..]), ("tls", &["--ftp-explicit-tls"])] {
        let there = format!(":ftp:{name}");
        for (from, to) in [("many", &*there), (&there, name)] {
            let mut rclone = Command::new("rclone");
            // What fails is not tried again.
            rclone.args(["copy", "--retries", "1", from, to]).args(server).args(tls);
            let done =
                output(rclone.current_dir(at).env("HOME", at).env("SSL_CERT_FILE", at.join("cert.pem")));
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success() && !said.contains("ERROR"), "{from} to {to}: {said}");
        }
        runs(at, "diff", &["-r", "many", &format!("root/{name}")], "");
        runs(at, "diff", &["-r", "many", name], "");
    }
    assert!(serve.end().success());
}

/// aioftp resumes the session, and does the handshake of a data connection before it says what it is for.
const AIOFTP: &str = r"
import asyncio, ssl, sys
sys.path.insert(0, sys.argv[2])
import aioftp
async def main():
    for tls in (False, True):
        name = 'tls' if tls else 'clear'
        client = aioftp.Client()
        await client.connect('10.9.0.2')
        if tls:
            context = ssl.create_default_context(cafile='cert.pem'); context.check_hostname = False
            await client.upgrade_to_tls(context)
        await client.login('ada', sys.argv[1])
        await client.upload('many', name, write_into=True)
        await client.download(name, name, write_into=True)
        await client.quit()
asyncio.run(asyncio.wait_for(main(), 40))
";

#[test]
fn aioftp_moves_a_tree_in_clear_text_and_in_tls() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("ftp-aioftp");
    let at = &folder.0;
    many_small_files(at);
    let serve = serve_in(at, "ftp-aioftp", "limits = { connections_per_minute = 10000 }\n");
    let client = peer("aioftp", "aioftp/client.py");
    let library = client.ancestors().nth(2).unwrap().to_str().unwrap();
    runs(at, "/usr/bin/python3", &["-c", AIOFTP, PASSWORD, library], "");
    for name in ["clear", "tls"] {
        runs(at, "diff", &["-r", "many", &format!("root/{name}")], "");
        runs(at, "diff", &["-r", "many", name], "");
    }
    assert!(serve.end().success());
}

/// Sends and fetches `big` by C-Kermit. It shows what the server says, and its status names the step that failed.
fn kermit(at: &Path, tls: bool, name: &str) -> (Option<i32>, String) {
    let security = match tls {
        true => "set authentication tls verify no\nset ftp authtype tls",
        false => "set ftp autoauthentication off",
    };
    let script = format!(
        "{security}\nftp open 10.9.0.2 /user:ada /password:{PASSWORD}\nif fail exit 3\nftp put root/big {name}\n\
         if fail exit 4\nftp get {name} {name}\nif fail exit 5\nftp bye\nexit 0\n"
    );
    fs::write(at.join("script"), script).unwrap();
    let mut kermit = Command::new(peer("ckermit", "usr/bin/kermit"));
    let done = output_given(kermit.args(["script", "-Y", "-B"]).current_dir(at).env("HOME", at), "");
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// C-Kermit resumes no session. The server says which line of its host.toml takes such clients.
#[test]
fn c_kermit_moves_files_in_clear_text_and_in_tls() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("ftp-kermit");
    let at = &folder.0;
    let serve = serve_in(at, "ftp-kermit", "");
    let (status, said) = kermit(at, false, "clear");
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = kermit(at, true, "refused");
    assert!(matches!(status, Some(4 | 5)) && said.contains("\"resumption = false\" under [ftp]"), "{said}");
    assert!(serve.end().success());
    let serve = serve_in(at, "ftp-kermit", "resumption = false\n");
    let (status, said) = kermit(at, true, "tls");
    assert!(status == Some(0) && said.contains("Data channel is Private"), "{said}");
    for name in ["clear", "tls"] {
        same(at, "root/big", name);
        same(at, "root/big", &format!("root/{name}"));
    }
    assert!(serve.end().success());
}

/// How many of pyftpdlib's tests are for any server, and pass.
const PYFTPDLIB_TESTS: u32 = 71;

/// pyftpdlib's own tests, at our server instead of its own; `lab/interop/pyftpdlib_tests.py` says which are left out.
#[test]
fn pyftpdlibs_tests() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("ftp-pyftpdlib");
    let root = folder.0.join("root");
    let more = format!("anonymous = \"{}\"\nlimits = {{ connections_per_minute = 10000 }}\n", root.display());
    let serve = serve_in(&folder.0, "ftp-pyftpdlib", &more);
    let source = peer("pyftpdlib", "pyftpdlib/test/test_functional.py");
    let source = source.ancestors().nth(3).unwrap();
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/interop/pyftpdlib_tests.py");
    let wanted = PYFTPDLIB_TESTS.to_string();
    let mut tests = Command::new("/usr/bin/python3");
    tests.arg(driver).arg(source).args(["10.9.0.2", "fd09::2", "ada", PASSWORD, &wanted]);
    run(tests.current_dir(&root));
    assert!(serve.end().success());
}

const FILLS_THE_DISK: &str = r"
import ftplib, sys
f = ftplib.FTP('10.9.0.2', timeout=20); f.login('ada', sys.argv[1])
try: f.storbinary('STOR kept', open('root/big', 'rb')); raise SystemExit('it was stored')
except ftplib.error_temp as e: assert str(e) == '452 No space is left on the disk.', e
assert f.pwd() == '/'
";

/// A full disk is reported as such, at either end, also to clients that read the reply only once they have sent all; what
/// there was of a file stays, and the next one goes on.
#[test]
fn a_full_disk_is_told_in_true_words() {
    if !own_network() {
        return;
    }
    // SAFETY: its own mount namespace is unshared for this thread, and no descriptor depends on it.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.unwrap();
    run(Command::new("mount").args(["--make-rprivate", "/"]));
    let folder = Folder::new("ftp-full");
    let at = &folder.0;
    let small = at.join("small");
    fs::create_dir(&small).unwrap();
    run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&small));
    let more = format!("[[ftp.user]]\nname = \"ada\"\nroot = \"{}\"\n", small.display());
    let serve = serve_in(at, "ftp-full", &more);
    fs::write(small.join("kept"), "kept").unwrap();
    runs(at, "python3", &["-c", FILLS_THE_DISK, PASSWORD], "");
    for tls in [&[][..], &["--ssl-reqd", "--cacert", "cert.pem"]] {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-u", &format!("ada:{PASSWORD}"), "-T", "root/big", "ftp://10.9.0.2/sent"]);
        let done = output(curl.args(tls).current_dir(at));
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.contains("452"), "curl {tls:?}: {:?} {said}", done.status);
    }
    let mut put = serve.inhost();
    put.env("INHOST_FTP_PASSWORD", PASSWORD).current_dir(at);
    let done = output(put.args(["ftp", "put", "root/big", "ftp://ada@10.9.0.2/sent"]));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && said.contains("452 No space is left on the disk"), "{said}");
    assert_eq!(fs::read(small.join("kept")).unwrap(), b"kept");
    assert!(serve.end().success());
    run(Command::new("umount").arg(&small));
    run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&small));
    // The client's own disk.
    let serve = serve_in(at, "ftp-full-client", "");
    let mut get = serve.inhost();
    get.env("INHOST_FTP_PASSWORD", PASSWORD).current_dir(&small);
    let done = output(get.args(["ftp", "get", "ftp://ada@10.9.0.2/big", "got"]));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && said.contains("got: No space is left on the disk"), "{said}");
    assert!(!small.join("got").exists());
    run(Command::new("umount").arg(&small));
    assert!(serve.end().success());
}

/// Killed in mid-transfer, host or client leaves no half file under its name, and the next attempt goes on.
#[test]
fn whoever_is_killed_leaves_no_half_file() {
    if !own_network() {
        return;
    }
    let slow = |at: &Path| {
        format!("[[ftp.user]]\nname = \"ada\"\nroot = \"{}/root\"\nrate = \"1M\"\n", at.display())
    };
    let folder = Folder::new("ftp-killed");
    let at = &folder.0;
    let start = || serve_in(at, "ftp-killed", &slow(at));
    // Through the running host, which serves itself at 10.9.0.2.
    let ftp = |serve: &Serve, arguments: [&str; 3]| {
        let mut ftp = serve.inhost();
        ftp.env("INHOST_FTP_PASSWORD", PASSWORD).current_dir(at).arg("ftp").args(arguments);
        ftp
    };
    let put = |serve: &Serve| ftp(serve, ["put", "root/big", "ftp://ada@10.9.0.2/sent"]);
    let there = || fs::metadata(at.join("root/.sent.part.inhost-part")).map_or(0, |m| m.len());
    let half = |what: &str| {
        let named = at.join("root/sent").exists() || at.join("root/sent.part").exists();
        assert!(!named && there() > 0, "after {what}: {named}, {} bytes", there());
    };
    let first = start();
    let mut sending = Running::start(&mut put(&first));
    pause(Duration::from_secs(2));
    first.process.signal(Signal::KILL);
    sending.wait();
    half("the host was killed");
    drop(first);
    let before = there();
    let second = start();
    let sending = Running::start(&mut put(&second));
    pause(Duration::from_secs(2));
    drop(sending);
    pause(Duration::from_millis(500));
    half("the client was killed");
    assert!(there() > before, "it goes on: {before} and {} bytes", there());
    let text = run(&mut put(&second));
    assert!(text.contains("were there); size and hash agree"), "{text}");
    same(at, "root/sent", "root/big");
    // The other way: what is fetched is as long half a file without a name.
    let get = |serve: &Serve| ftp(serve, ["get", "ftp://ada@10.9.0.2/big", "fetched"]);
    let there = || fs::metadata(at.join(".fetched.inhost-part")).map_or(0, |m| m.len());
    let fetching = Running::start(&mut get(&second));
    pause(Duration::from_secs(2));
    drop(fetching);
    let before = there();
    assert!(!at.join("fetched").exists() && before > 0, "after the client was killed: {before} bytes");
    let mut fetching = Running::start(&mut get(&second));
    pause(Duration::from_secs(2));
    second.process.signal(Signal::KILL);
    assert!(!fetching.wait().success());
    assert!(!at.join("fetched").exists() && there() > before, "{before} and {} bytes", there());
    drop(second);
    let third = start();
    let text = run(&mut get(&third));
    assert!(text.contains("were there"), "{text}");
    same(at, "fetched", "root/big");
    assert!(third.end().success());
}
