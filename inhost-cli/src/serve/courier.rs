//! Output of jobs on its way out: by the commands `inhost ftp put` and `inhost mail send`, as its user would give them.

use crate::ftp::url_without_password;
use inhost_base::Duration;
use inhost_common::{Cleaner, LocalFuture};
use inhost_jobs::codec::Job;
use inhost_jobs::deliver::{Courier, Deliver, Parcel};
use inhost_socket::Host;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// How long a delivery may take.
const WITHIN: Duration = Duration::from_secs(600);

/// The courier of a host that serves.
pub struct Commands {
    /// The host, through which they connect.
    pub host: Host,
    /// Its control socket.
    pub control: PathBuf,
    /// The configuration file, if one was named.
    pub config: Option<PathBuf>,
}

impl Courier for Commands {
    fn deliver(&self, parcel: Parcel) -> LocalFuture<Result<(), String>> {
        let (command, input) = match self.command(&parcel) {
            Ok(made) => made,
            Err(why) => return Box::pin(std::future::ready(Err(why))),
        };
        let host = self.host.clone();
        Box::pin(async move { run(&host, command, input).await })
    }
}

impl Commands {
    fn command(&self, parcel: &Parcel) -> Result<(Command, String), String> {
        let program = std::env::current_exe().map_err(|e| format!("this program is not found: {e}"))?;
        let mut command = Command::new(program);
        let job = &parcel.job;
        let mut input = String::new();
        match &parcel.to {
            Deliver::Ftp(url) => {
                let (url, password) = url_without_password(url).map_err(|e| e.to_string())?;
                command
                    .args(["ftp", "put", "--quiet", "--via"])
                    .arg(&self.control)
                    .arg(&parcel.stdout)
                    .arg(url_of(job, url));
                // Arguments are seen by other users of the machine, the environment is not.
                match password {
                    Some(password) => command.env("INHOST_FTP_PASSWORD", password),
                    None => command.env_remove("INHOST_FTP_PASSWORD"),
                };
            }
            Deliver::Mail(address) => {
                let subject = format!("Job {} ({}): {}", job.id, job.name, job.state().name());
                command.args(["mail", "send", "--subject", &subject]);
                if ["EMAIL", "USER", "LOGNAME"].iter().all(|name| std::env::var_os(name).is_none()) {
                    // Services of systemd that run as root have none of them.
                    command.env("USER", "inhost");
                }
                if let Some(config) = &self.config {
                    command.arg("--config").arg(config);
                }
                for file in [&parcel.stdout, &parcel.stderr] {
                    if file.metadata().is_ok_and(|file| file.len() > 0) {
                        command.arg("--attach").arg(file);
                    }
                }
                command.arg("--").arg(address);
                let ended = match job.exit_status {
                    Some(status) => format!("The job ended with status {status}."),
                    None => format!("The job is {}.", job.state().name()),
                };
                input = format!("{ended} {}", job.reason).trim_end().to_owned() + "\n";
            }
            other => return Err(format!("this host does not deliver to {other:?}")),
        }
        Ok((command, input))
    }
}

/// The URL of a file; in a folder each job has a name of its own.
fn url_of(job: &Job, url: String) -> String {
    if url.ends_with('/') { format!("{url}job-{}.txt", job.id) } else { url }
}

/// Runs a command with this input; what it said if it fails.
async fn run(host: &Host, mut command: Command, input: String) -> Result<(), String> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cannot start the command: {e}"))?;
    let pid = Pid::from_child(&child);
    let ending = blocking::unblock(move || {
        if let Some(mut pipe) = child.stdin.take() {
            // A command that ends early says why itself.
            let _ = pipe.write_all(input.as_bytes());
        }
        child.wait_with_output()
    });
    let Ok(ended) = host.timeout(WITHIN, ending).await else {
        let _ = kill_process(pid, Signal::KILL);
        return Err(format!("not delivered within {WITHIN}"));
    };
    let ended = ended.map_err(|e| format!("the command is lost: {e}"))?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(Cleaner::line(ended.stderr.trim_ascii())),
    }
}
