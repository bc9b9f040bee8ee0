//! A complete Slurm in a directory: munged, slurmctld, and three slurmd on loopback, for as long as a test needs them.
//! The nodes share the machine, so only actions are checked, never speed.

use crate::invocation::Permit;
use crate::ports::free_ports;
use crate::waiting::{LONG, wait_for, wait_until};
use loadline_test_support::{on_path, skip};
use rustix::process::{Pid, Signal};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// The programs of Debian's packages `munge`, `slurmctld`, `slurmd`, and `slurm-client`.
const PROGRAMS: [&str; 6] = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol"];
/// If set to `required`, a machine without Slurm fails the test.
pub(crate) const VARIABLE: &str = "LOADLINE_SLURM";
/// A variable in the environment of every daemon and its processes.
const MARK: &str = "LOADLINE_TEST_CLUSTER";
const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// Each node's declared memory; the sum may exceed the machine's.
const NODE_MIB: u32 = 2048;
/// The v1 controllers for jobs.
const CONTROLLERS: [&str; 5] = ["freezer", "memory", "cpuset", "cpuacct", "devices"];
/// Canceled jobs end after two seconds, by `KillWait`.
const ENDS_WITHIN: Duration = Duration::from_secs(8);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Only one cluster can run at a time, because the nodes' cgroups have fixed names.
static ONE: Mutex<()> = Mutex::new(());

/// Three running nodes.
pub(crate) struct Cluster {
    /// The nodes' subjects share the machine with one other test.
    _permit: Permit,
    _only: MutexGuard<'static, ()>,
    folder: TempDir,
    munged: Child,
    controller: Child,
    nodes: Vec<(&'static str, Child)>,
}

impl Cluster {
    /// Starts it. `None`, after reporting a skip, if Slurm is not installed or cannot run here.
    pub(crate) fn start() -> Option<Self> {
        if let Some(missing) = PROGRAMS.iter().find(|program| on_path(program).is_none()) {
            skip(VARIABLE, &format!("there is no {missing} (Debian: munge, slurmctld, slurmd, slurm-client)"));
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            skip(VARIABLE, "slurmd must run as root, because it runs jobs of other users");
            return None;
        }
        // A test that waits here holds no share that others need.
        let only = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let permit = Permit::one();
        let folder = tempfile::tempdir().unwrap();
        // Users other than root read the configuration, too.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        configure(folder.path());
        let daemon = |program: &str, arguments: &[&str]| start(folder.path(), program, arguments);
        let [socket, key, seed] = ["munge/socket", "munge/key", "munge/seed"].map(|name| folder.path().join(name));
        fs::write(&key, [7; 128]).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let [socket, key, seed] = [&socket, &key, &seed].map(|path| path.to_str().unwrap().to_owned());
        let munged = daemon(
            "munged",
            &[
                "--foreground",
                "--force",
                &format!("--socket={socket}"),
                &format!("--key-file={key}"),
                &format!("--pid-file={}", folder.path().join("munge/pid").display()),
                &format!("--seed-file={seed}"),
                "--num-threads=1",
                "--origin=127.0.0.1",
            ],
        );
        wait_until("munged listens", LONG, || Path::new(&socket).exists());
        let controller = daemon("slurmctld", &["-D"]);
        let nodes = NODES.map(|name| (name, daemon("slurmd", &["-D", "-N", name]))).into();
        let cluster = Self { _permit: permit, _only: only, folder, munged, controller, nodes };
        cluster.until_up();
        Some(cluster)
    }

    /// Waits until every node accepts work.
    fn until_up(&self) {
        wait_for("three nodes are up", LONG, || {
            let said = self.ask("sinfo", &["--noheader", "--Node", "--format=%N %t"]);
            let up = said.lines().filter(|line| [" idle", " mix", " alloc"].iter().any(|state| line.ends_with(state)));
            if up.count() == NODES.len() { Ok(()) } else { Err(said) }
        });
    }

    /// A client of this cluster.
    pub(crate) fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf")).env(MARK, self.folder.path());
        command
    }

    /// A client's output.
    pub(crate) fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.client(program).args(arguments).output().unwrap();
        let [out, err] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        if status.success() { out } else { format!("{program}: {status}: {out}{err}") }
    }

    /// Whether nothing is queued or running.
    pub(crate) fn is_idle(&self) -> Result<(), String> {
        let queued = self.ask("squeue", &["--noheader", "--format=%i %T %N %r"]);
        if queued.trim().is_empty() { Ok(()) } else { Err(queued) }
    }

    /// Kills a node's daemon; its jobs continue.
    pub(crate) fn lose(&mut self, name: &str) {
        let (_, daemon) = self.nodes.iter_mut().find(|(node, _)| *node == name).unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// The daemons' logs.
    pub(crate) fn log(&self) -> String {
        let logs = fs::read_dir(self.folder.path().join("log")).unwrap();
        let text = |path: PathBuf| format!("{}:\n{}", path.display(), fs::read_to_string(&path).unwrap_or_default());
        logs.map(|entry| text(entry.unwrap().path())).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The jobs end first, while the daemons can end them cleanly; a slurmstepd outlives its slurmd.
        for arguments in [&["--partition=all"][..], &["--partition=all", "--signal=KILL", "--full"]] {
            self.ask("scancel", arguments);
        }
        let nodes = self.nodes.iter_mut().map(|(_, child)| child);
        let mut daemons: Vec<&mut Child> = nodes.chain([&mut self.controller, &mut self.munged]).collect();
        let own: Vec<u32> = daemons.iter().map(|child| child.id()).collect();
        let mark = mark(self.folder.path());
        let jobs = || marked(&mark).into_iter().filter(|pid| !own.contains(pid)).collect::<Vec<_>>();
        for _ in 0..ENDS_WITHIN.as_millis() / LOOK_AGAIN_AFTER.as_millis() {
            if jobs().is_empty() {
                break;
            }
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
        for daemon in &mut daemons {
            let _ = daemon.kill().and_then(|()| daemon.wait());
        }
        for pid in jobs() {
            let _ = rustix::process::kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL);
        }
        CONTROLLERS.iter().flat_map(|name| NODES.map(|node| format!("/sys/fs/cgroup/{name}/slurm_{node}"))).for_each(
            |folder| {
                remove_cgroup(Path::new(&folder));
            },
        );
    }
}

/// Removes a cgroup and its descendants, which have no processes anymore.
fn remove_cgroup(folder: &Path) {
    for below in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()) {
        if below.is_dir() {
            remove_cgroup(&below);
        }
    }
    let _ = fs::remove_dir(folder);
}

fn mark(folder: &Path) -> String {
    format!("{MARK}={}", folder.display())
}

/// Pids with this mark.
fn marked(mark: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let carries = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    pids.filter(carries).collect()
}

/// A foreground daemon, as the test's child.
fn start(folder: &Path, program: &str, arguments: &[&str]) -> Child {
    let log =
        fs::File::create(folder.join("log").join(arguments.last().map_or(program.to_owned(), |last| {
            format!("{program}{}", last.trim_start_matches('-').replace('/', "_"))
        })));
    let log = log.unwrap();
    let mut command = Command::new(on_path(program).unwrap());
    command.args(arguments).env(MARK, folder).env("SLURM_CONF", folder.join("slurm.conf"));
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

/// Whether Slurm can create cgroups here: v1 with the memory controller. On v2, it needs systemd.
pub(crate) fn has_cgroups() -> bool {
    let probe = Path::new("/sys/fs/cgroup/memory/slurm_probe");
    fs::create_dir(probe).is_ok_and(|()| fs::remove_dir(probe).is_ok())
}

fn configure(folder: &Path) {
    for name in ["log", "state", "spool", "munge", "spool/n1", "spool/n2", "spool/n3"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let [controller, nodes @ ..] = free_ports::<4>();
    let host = rustix::system::uname().nodename().to_string_lossy().split('.').next().unwrap_or_default().to_owned();
    let cpus = std::thread::available_parallelism().unwrap();
    let limits = has_cgroups();
    let (tracks, task) = if limits { ("cgroup", "cgroup") } else { ("linuxproc", "none") };
    let at = folder.display();
    let mut conf = format!(
        "ClusterName=loadline\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={controller}\n\
         CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\nSlurmUser=root\nAuthType=auth/munge\n\
         AuthInfo=socket={at}/munge/socket,cred_expire=5\nStateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool/%n\n\
         SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/slurmd-%n.pid\nJobCompType=jobcomp/none\n\
         ProctrackType=proctrack/{tracks}\nTaskPlugin=task/{task}\nSelectType=select/cons_tres\n\
         SelectTypeParameters=CR_CPU_Memory\nSchedulerParameters=sched_interval=2,bf_interval=2\n\
         SlurmdParameters=config_overrides\nMpiDefault=none\nReturnToService=2\nSlurmdTimeout=10\nKillWait=2\n\
         NodeName=DEFAULT CPUs={cpus} RealMemory={NODE_MIB}\n"
    );
    for (name, port) in NODES.iter().zip(nodes) {
        conf += &format!("NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}\n");
    }
    conf += "PartitionName=all Nodes=n[1-3] Default=YES MaxTime=60 State=UP\n";
    fs::write(folder.join("slurm.conf"), conf).unwrap();
    let limits = if limits { "yes" } else { "no" };
    fs::write(
        folder.join("cgroup.conf"),
        format!(
            "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace={limits}\n\
             ConstrainSwapSpace=no\nAllowedRAMSpace=100\nMinRAMSpace=1\n"
        ),
    )
    .unwrap();
}
