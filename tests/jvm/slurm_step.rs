//! A memory limit for an ordinary user without cgroup permissions, in a Slurm job: each subject is a step of the job.

use crate::account_trouble::NOBODY;
use crate::invocation::{jdk, small};
use crate::slurm::{Cluster, VARIABLE, has_cgroups};
use crate::test_subjects::test_subjects;
use crate::waiting::{LONG, wait_for};
use loadline::record::{Document, EndCause, FindOutcome};
use loadline_test_support::{long_tests_run, skip};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const NODE: &str = "n1";

/// A job of user `nobody`, and the files to run Loadline in it.
struct Job {
    cluster: Cluster,
    id: String,
    folder: TempDir,
    java: PathBuf,
}

impl Job {
    /// Starts the job; `None` if Slurm cannot enforce memory limits here.
    fn start(java: PathBuf) -> Option<Self> {
        let cluster = Cluster::start()?;
        if !has_cgroups() {
            skip(VARIABLE, "without systemd, Slurm enforces memory limits only on cgroup v1");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        for (from, to) in [(env!("CARGO_BIN_EXE_loadline"), "loadline"), (test_subjects(), "subjects.jar")] {
            let _ = fs::copy(from, folder.path().join(to)).unwrap();
        }
        let submit = ["sbatch", "--parsable", "--mem=1500", "--output=/dev/null", "--wrap=sleep 3000"];
        let node = format!("--nodelist={NODE}");
        let chdir = format!("--chdir={}", folder.path().display());
        let of_nobody: Vec<&str> = NOBODY[1..].iter().chain(&submit).copied().chain([node.as_str(), &chdir]).collect();
        let id = cluster.ask(NOBODY[0], &of_nobody).trim().to_owned();
        let job = Self { cluster, id, folder, java };
        wait_for("the job runs", LONG, || {
            let state = job.cluster.ask("squeue", &["--noheader", "--format=%T", &format!("--jobs={}", job.id)]);
            if state.trim() == "RUNNING" { Ok(()) } else { Err(state) }
        });
        Some(job)
    }

    /// `loadline …` as user `nobody`, in the job but outside its cgroups, to which the user could write on v1.
    fn call(&self, options: &str, appetite: &str) -> Command {
        let mut command = self.cluster.client(NOBODY[0]);
        command.args(&NOBODY[1..]).arg(self.folder.path().join("loadline")).args(options.split_whitespace());
        if !appetite.is_empty() {
            let jar = self.folder.path().join("subjects.jar");
            command.arg("--").arg(&self.java).arg("-cp").arg(jar).arg("loadline.subjects.Appetite").arg("{port}");
            command.arg(appetite);
        }
        command.env("SLURM_JOB_ID", &self.id).env("SLURMD_NODENAME", NODE).env("HOME", self.folder.path());
        command.current_dir(self.folder.path());
        command
    }

    /// Its stdout and stderr; checks the exit code.
    fn run(&self, options: &str, appetite: &str, code: i32) -> (String, String) {
        let ran = self.call(options, appetite).output().unwrap();
        let [out, said] = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_eq!(ran.status.code(), Some(code), "{out}\n{said}\n{}", self.cluster.log());
        (out, said)
    }

    /// Loadline's steps in the job, according to Slurm.
    fn steps(&self) -> Vec<String> {
        let said = self.cluster.ask("squeue", &["--steps", "--noheader", "--format=%j"]);
        said.lines().filter(|name| name.starts_with("loadline-")).map(str::to_owned).collect()
    }

    fn until_no_step(&self) {
        wait_for("no step is left", LONG, || Some(self.steps()).filter(Vec::is_empty).map(drop).ok_or(self.steps()));
    }
}

fn document(text: &str) -> Document {
    serde_json::from_str(text).unwrap()
}

const WEIGH: &str = "weigh --json -n 200 --rest 200ms --warmup 100 --url http://127.0.0.1:{port}/";

fn weighed_under_a_limit(job: &Job) {
    let (out, _) = job.run(&format!("{WEIGH} --heap 24m --limit 100500k"), "live=8", 0);
    let trial = &document(&out).trials[0];
    let cgroup = trial.cgroup.unwrap();
    // The limit is in whole MiB, and never more than requested.
    assert_eq!((cgroup.limit_bytes, cgroup.grain_bytes, cgroup.oom_kills), (98 * MIB, Some(MIB), 0), "{cgroup:?}");
    assert!((24 * MIB..98 * MIB).contains(&cgroup.peak_bytes.unwrap()), "{cgroup:?}");
    assert!(trial.marks.len() > 2 && trial.image.is_none());
    job.until_no_step();
}

fn an_insufficient_limit_is_an_oom_kill(job: &Job) {
    let (out, said) = job.run(&format!("{WEIGH} --heap 200m --limit 60m"), "live=150", 3);
    assert_eq!(document(&out).trials[0].end.as_ref().unwrap().cause, EndCause::OomKill, "{said}");
    job.until_no_step();
}

fn a_killed_loadline_leaves_no_slurm_step(job: &Job) {
    let said = job.folder.path().join("said");
    let err = fs::File::create(&said).unwrap();
    let mut command = job.call("weigh -d 60s --heap 24m --limit 100m --url http://127.0.0.1:{port}/", "live=8");
    let mut loadline = command.stdout(Stdio::null()).stderr(err).spawn().unwrap();
    wait_for("it is under load", LONG, || {
        let said = fs::read_to_string(&said).unwrap();
        if said.contains("  steady: ") { Ok(()) } else { Err(said) }
    });
    assert_eq!(job.steps().len(), 1);
    loadline.kill().unwrap();
    loadline.wait().unwrap();
    job.until_no_step();
}

fn a_limit_is_proved(job: &Job) {
    let options = "find --json --rate 50 -d 1s --warmup 300ms -c 4 --gc serial --no-warm --proofs 1 --heap 24m \
                   --limit-max 256m --prove 128m --target failed==0 --url http://127.0.0.1:{port}/";
    let (out, _) = job.run(options, "live=8", 0);
    let find = document(&out).find.unwrap();
    assert_eq!((find.outcome, find.line.unwrap().limit_bytes), (FindOutcome::AtLowerBound, 128 * MIB));
}

fn slurm_refusals_are_reported(job: &Job) {
    let (_, said) = job.run(&format!("{WEIGH} --heap 24m --limit 1800m"), "live=8", 4);
    assert!(said.contains("srun: error: Unable to create step"), "{said}");
    let (out, _) = job.run("doctor", "", 0);
    assert!(out.contains("by Slurm: ") && out.contains("in a Slurm step of this job"), "{out}");
}

#[test]
fn slurm_steps_set_limits_without_cgroup_permissions() {
    if !long_tests_run() {
        return;
    }
    for release in small() {
        let Some(job) = Job::start(jdk(release).unwrap().java) else { return };
        assert!(Path::new(&job.java).is_absolute());
        weighed_under_a_limit(&job);
        an_insufficient_limit_is_an_oom_kill(&job);
        a_killed_loadline_leaves_no_slurm_step(&job);
        a_limit_is_proved(&job);
        slurm_refusals_are_reported(&job);
    }
}
