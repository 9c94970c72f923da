//! vsftpd, as it is measured: visitors may read and write.

use super::programs::{FOR_OWNER, Folder, peer};
use std::os::unix::fs::chown;
use std::process::Command;

/// The account that visitors have: every Debian has it.
const DAEMON: u32 = 1;
/// Where visitors may write; at the root vsftpd lets nobody.
pub const PUBLIC: &str = "root/pub";
/// The files of the certificate.
pub const CERTIFICATE: &str = "cert.pem";
/// Its key.
pub const KEY: &str = "key.pem";

const SETTINGS: &str = "listen=YES\nbackground=NO\nlisten_port=21\nanonymous_enable=YES\nlocal_enable=NO\n\
    no_anon_password=YES\nwrite_enable=YES\nanon_upload_enable=YES\nanon_mkdir_write_enable=YES\n\
    anon_other_write_enable=YES\nanon_world_readable_only=NO\nanon_umask=022\nanon_root=@/root\n\
    ftp_username=daemon\nnopriv_user=nobody\nsecure_chroot_dir=@/empty\nallow_writeable_chroot=YES\n\
    seccomp_sandbox=NO\nmax_per_ip=64\nssl_enable=YES\nallow_anon_ssl=YES\nrequire_ssl_reuse=YES\n\
    ssl_ciphers=HIGH\nrsa_cert_file=@/cert.pem\nrsa_private_key_file=@/key.pem\n";

/// Makes its folders, a certificate and its settings.
pub fn prepare(folder: &Folder) -> Result<(), String> {
    // It refuses to have its root, or the folder of those who are not logged in, where its visitors may write.
    folder.make("root", FOR_OWNER)?;
    folder.make("empty", FOR_OWNER)?;
    let public = folder.make(PUBLIC, FOR_OWNER)?;
    chown(&public, Some(DAEMON), None).map_err(|e| format!("{}: {e}", public.display()))?;
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=bench"])
        .args(["-keyout", &folder.text(KEY), "-out", &folder.text(CERTIFICATE)])
        .output()
        .map_err(|e| format!("openssl does not start: {e}; apt-get install openssl"))?;
    if !made.status.success() {
        return Err(format!("openssl: {}", String::from_utf8_lossy(&made.stderr).trim()));
    }
    folder.write("vsftpd.conf", SETTINGS.replace('@', &folder.text("")).replace("//", "/"))
}

/// The server.
pub fn command(folder: &Folder) -> Result<Command, String> {
    let mut command = peer("vsftpd", "sbin/vsftpd")?;
    command.arg(folder.text("vsftpd.conf"));
    Ok(command)
}
