//! Slurm on this machine: its controller, two nodes, and its accounting over MariaDB.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::{Running, output, run, within};

/// How long a job may take. Slurm finds after some 20 s that a node is gone.
pub const LONG: Duration = Duration::from_secs(150);

/// A cluster, which ends with its test.
pub struct Cluster {
    folder: PathBuf,
    nodes: BTreeMap<&'static str, Running>,
    _servers: Vec<Running>,
}

/// Ports that are free now.
fn ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Waits until the latest of the servers listens.
fn listens(port: u16, servers: &[Running]) {
    let found = within(LONG, || TcpStream::connect(("127.0.0.1", port)).ok());
    assert!(found.is_some(), "{}", servers.last().unwrap().printed());
}

impl Cluster {
    /// Starts one with the nodes `n1` and `n2`, its files below `folder`. It needs root and Debian's programs.
    pub fn start(folder: &Path) -> Cluster {
        let folder = folder.join("slurm");
        for name in ["database", "state", "n1", "n2"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        let [database, accounting, controller, first, second] = ports();
        let at = folder.display();
        let secret = |name: &str, text: String, mode: u32| {
            fs::write(folder.join(name), text).unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        secret("munge.key", "0123456789abcdef".repeat(64), 0o400);
        let host = run(Command::new("hostname").arg("-s"));
        let host = host.trim();
        secret(
            "slurmdbd.conf",
            format!(
                "AuthType=auth/munge\nAuthInfo=socket={at}/munge.socket\nDbdHost={host}\nDbdAddr=127.0.0.1\nDbdPort={accounting}\n\
                 SlurmUser=root\nStorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStoragePort={database}\n\
                 StorageUser=slurm\nStoragePass=tides\nStorageLoc=slurm\nPidFile={at}/slurmdbd.pid\n"
            ),
            0o600,
        );
        secret(
            "slurm.conf",
            format!(
                "ClusterName=inhost\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={controller}\nSlurmUser=root\nSlurmdUser=root\n\
                 AuthType=auth/munge\nAuthInfo=socket={at}/munge.socket\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
                 StateSaveLocation={at}/state\nSlurmdSpoolDir={at}/%n\nSlurmctldPidFile={at}/ctld.pid\nSlurmdPidFile={at}/%n.pid\n\
                 SlurmdTimeout=5\nKillWait=2\nMinJobAge=10\nReturnToService=2\nMpiDefault=none\nSwitchType=switch/none\n\
                 JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/slurmdbd\n\
                 AccountingStorageHost=127.0.0.1\nAccountingStoragePass={at}/munge.socket\nAccountingStoragePort={accounting}\nSlurmdParameters=config_overrides\n\
                 SchedulerParameters=sched_interval=1,sched_min_interval=200000\nSelectType=select/cons_tres\n\
                 SelectTypeParameters=CR_CPU\nNodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=4\n\
                 NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=4\n\
                 PartitionName=main Nodes=n1,n2 Default=YES State=UP MaxTime=INFINITE\n"
            ),
            0o644,
        );
        let own = |name: &str| folder.join(name);
        let server = |program: &str, arguments: &[String]| {
            let mut command = Command::new(program);
            Running::start(command.args(arguments).env("SLURM_CONF", own("slurm.conf")))
        };
        let flag = |name: &str, file: &str| format!("--{name}={}", own(file).display());
        let mut servers = vec![server(
            "munged",
            &[
                "--foreground".into(),
                "--force".into(),
                flag("key-file", "munge.key"),
                flag("socket", "munge.socket"),
                flag("pid-file", "munge.pid"),
                flag("seed-file", "munge.seed"),
            ],
        )];
        run(Command::new("mariadb-install-db").args([
            "--no-defaults",
            "--user=root",
            "--auth-root-authentication-method=normal",
            &flag("datadir", "database"),
        ]));
        fs::write(
            own("first.sql"),
            "CREATE DATABASE slurm;\nCREATE USER slurm@localhost IDENTIFIED BY 'tides';\nGRANT ALL ON slurm.* TO slurm@localhost;\n",
        )
        .unwrap();
        let more = ["--no-defaults".into(), "--user=root".into(), "--bind-address=127.0.0.1".into()];
        let more = more.into_iter().chain([
            format!("--port={database}"),
            flag("datadir", "database"),
            flag("socket", "database.socket"),
            flag("init-file", "first.sql"),
            "--innodb-buffer-pool-size=64M".into(),
        ]);
        servers.push(server("mariadbd", &more.collect::<Vec<_>>()));
        listens(database, &servers);
        let slurmdbd =
            Running::start(Command::new("slurmdbd").arg("-D").env("SLURM_CONF", own("slurm.conf")));
        servers.push(slurmdbd);
        listens(accounting, &servers);
        let mut cluster = Cluster { folder, nodes: BTreeMap::new(), _servers: servers };
        let mut said = String::new();
        let is_known = within(LONG, || {
            let mut add = cluster.tool("sacctmgr");
            let done = output(add.args(["--immediate", "add", "cluster", "inhost"]));
            said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
            done.status.success().then_some(())
        });
        assert!(is_known.is_some(), "{said}");
        let controller = Running::start(cluster.tool("slurmctld").arg("-D"));
        cluster._servers.push(controller);
        cluster.start_node("n1");
        cluster.start_node("n2");
        cluster.are_idle(2);
        cluster
    }
    /// The file that `SLURM_CONF` is to name.
    pub fn config(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }
    /// One of Slurm's programs.
    pub fn tool(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.folder.join("slurm.conf"));
        command
    }
    /// Starts a node again.
    pub fn start_node(&mut self, name: &'static str) {
        let node = Running::start(self.tool("slurmd").args(["-D", "-N", name]));
        self.nodes.insert(name, node);
    }
    /// Waits until so many nodes are idle.
    pub fn are_idle(&self, count: usize) {
        let shown = within(LONG, || {
            let text = output(self.tool("sinfo").args(["-h", "-N", "-o", "%T"])).stdout;
            (String::from_utf8_lossy(&text).matches("idle").count() == count).then_some(())
        });
        assert!(shown.is_some(), "{}", run(self.tool("sinfo").arg("-R")));
    }
    /// A node without power: its slurmd, the slurmstepd of its jobs, and all that they run.
    pub fn kill_node(&mut self, name: &str) {
        drop(self.nodes.remove(name));
        let told = format!("SLURMD_NODENAME={name}\0");
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let is_step = command.starts_with(b"slurmstepd") && is_of(&entry.path(), name);
            let is_job = environment.windows(told.len()).any(|part| part == told.as_bytes());
            let id = entry.file_name().to_str().and_then(|id| Pid::from_raw(id.parse().ok()?));
            if let Some(id) = id.filter(|_| is_step || is_job) {
                let _ = kill_process(id, Signal::KILL);
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill_node("n1");
        self.kill_node("n2");
    }
}

/// Whether a slurmstepd has a job of the node below it.
fn is_of(process: &Path, node: &str) -> bool {
    let id = process.file_name().unwrap().to_string_lossy().into_owned();
    let children = fs::read_to_string(process.join("task").join(&id).join("children")).unwrap_or_default();
    let told = format!("SLURMD_NODENAME={node}\0");
    children.split_whitespace().any(|child| {
        let environment = fs::read(format!("/proc/{child}/environ")).unwrap_or_default();
        environment.windows(told.len()).any(|part| part == told.as_bytes())
    })
}
