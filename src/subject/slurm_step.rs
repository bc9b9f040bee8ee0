//! A memory limit in a Slurm job for users who cannot create cgroups: the subject becomes a step of the job, `srun
//! --mem=…`, in a cgroup owned by Slurm. Slurm limits are whole MiB.
//!
//! A step's task descends from slurmstepd, which adopts its orphans. On cgroup v1, the limit is on the step's cgroup,
//! and the task is in a child of it.

use super::names::{self, is_left_behind};
use super::processes::Process;
use super::program::{self, Printed};
use crate::clock::Clock;
use crate::units::{Bytes, MIB};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The granularity of Slurm's memory limits.
pub(super) const GRAIN: Bytes = Bytes::mib(1);
/// A task's name before it execs its command.
const BEFORE_EXEC: &str = "slurmstepd";
/// The columns requested from `squeue --steps`: ID, name, nodes.
const COLUMNS: &str = "--format=%i|%j|%N";

/// Loadline's job on this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The job ID; for an array, the index's own ID.
    id: String,
    node: String,
    /// `srun`; the other clients are in the same directory.
    srun: PathBuf,
}

impl Job {
    /// The job of this process; `None` outside a job, or without Slurm's programs.
    pub(crate) fn here() -> Option<Self> {
        let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let srun = program::on_path("srun", &std::env::var_os("PATH")?)?;
        Some(Self { id: text("SLURM_JOB_ID")?, node: text("SLURMD_NODENAME")?, srun })
    }

    fn ask(&self, client: &str, arguments: &[&str], clock: Clock) -> Printed {
        program::ask(&self.srun.with_file_name(client), arguments, clock)
    }

    /// Its steps on this node, by ID and name.
    fn steps(&self, clock: Clock) -> Result<Vec<(String, String)>, String> {
        let said = self.ask("squeue", &["--steps", "--noheader", &format!("--jobs={}", self.id), COLUMNS], clock);
        Ok(parse_steps(&said.good()?, &self.node))
    }

    fn kill(&self, id: &str, clock: Clock) -> Result<(), String> {
        let said = self.ask("scancel", &["--signal=KILL", id], clock);
        // The step may have already ended.
        if said.errors.contains("already complet") { Ok(()) } else { said.good().map(drop) }
    }

    /// Kills the steps of dead Loadlines on this node. Returns the number killed.
    pub(crate) fn sweep(&self, clock: Clock) -> usize {
        let left = self.steps(clock).unwrap_or_default();
        left.into_iter().filter(|(id, name)| is_left_behind(name) && self.kill(id, clock).is_ok()).count()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    job: Job,
    name: String,
}

#[derive(Debug)]
pub(super) struct StepOptions<'a> {
    pub limit: Bytes,
    pub cpus: Option<&'a [u32]>,
    /// Whether the command reads stdin.
    pub reads: bool,
}

impl Step {
    pub(super) fn new(job: Job) -> Self {
        Self { job, name: names::new() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The command line that runs this one as the step.
    ///
    /// The step shares all of the job's resources (`--overlap`): Loadline chooses the CPUs, and the step that Loadline
    /// itself runs in keeps its own.
    pub(super) fn argv(&self, asked: &StepOptions, command: &[String]) -> Vec<String> {
        let Job { id, node, srun } = &self.job;
        let mut argv = vec![srun.display().to_string(), format!("--jobid={id}"), format!("--nodelist={node}")];
        argv.extend(["--nodes=1", "--ntasks=1", "--overlap", "--cpu-bind=none", "--export=ALL"].map(str::to_owned));
        argv.extend([format!("--job-name={}", self.name), format!("--mem={}M", limit_set(asked.limit).0 / MIB)]);
        argv.push(format!("--input={}", if asked.reads { "0" } else { "none" }));
        if let Some(cpus) = asked.cpus {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            argv.extend(["taskset".to_owned(), "--cpu-list".to_owned(), cpus.join(",")]);
        }
        argv.extend_from_slice(command);
        argv
    }

    /// The pid of its task, once that has become the command.
    pub(super) fn task(&self, clock: Clock) -> Option<u32> {
        let (id, _) = self.job.steps(clock).ok()?.into_iter().find(|(_, name)| *name == self.name)?;
        let said = self.job.ask("scontrol", &["listpids", &id, &self.job.node], clock);
        let pid = parse_pids(&said.out)?;
        Process::read(pid).is_none_or(|task| task.name != BEFORE_EXEC).then_some(pid)
    }

    /// Kills it with its processes. A missing step counts as killed.
    pub(super) fn remove(&self, clock: Clock) -> Result<(), String> {
        let own = self.job.steps(clock)?.into_iter().filter(|(_, name)| *name == self.name);
        own.map(|(id, _)| self.job.kill(&id, clock)).fold(Ok(()), Result::and)
    }
}

/// The limit that Slurm sets for a request: whole MiB, never zero, which would mean all of the node's memory.
pub(super) fn limit_set(limit: Bytes) -> Bytes {
    Bytes((limit.0 / MIB).max(1) * MIB)
}

/// Whether these lines from Slurm report an OOM kill. srun itself exits with 1.
///
/// ```text
/// slurmstepd-n1: error: Detected 1 oom-kill event(s) in StepId=1.2. Some of your processes may have been killed …
/// srun: error: n1: task 0: Out Of Memory
/// ```
pub(super) fn says_killed_for_memory(lines: &[String]) -> bool {
    lines.iter().any(|line| {
        let of_step = line.starts_with("slurmstepd") && (line.contains("oom-kill") || line.contains("oom_kill"));
        of_step || (line.starts_with("srun: error: ") && line.trim_end().ends_with(": Out Of Memory"))
    })
}

/// Whether srun could not begin, according to these lines: `srun: error: Unable to create step for job 1: Memory
/// required by task is not available`.
pub(super) fn says_not_begun(lines: &[String]) -> bool {
    let begins = ["srun: error: Unable to ", "srun: fatal: ", "srun: error: Invalid ", "srun: error: slurm_"];
    lines.iter().any(|line| begins.iter().any(|begin| line.starts_with(begin)))
}

/// The steps on a node by ID and name, as `squeue --steps` of Slurm 22.05 prints them:
///
/// ```text
/// 1.1|loadline-7-1|n1
/// 1.batch|batch|n1
/// ```
fn parse_steps(text: &str, node: &str) -> Vec<(String, String)> {
    let parse = |line: &str| {
        let (id, rest) = line.trim().split_once('|')?;
        let (name, nodes) = rest.rsplit_once('|')?;
        (nodes == node && id.contains('.')).then(|| (id.to_owned(), name.to_owned()))
    };
    // In a truncated line, n12 could look like n1.
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(parse).collect()
}

/// The pid of the first task, as `scontrol listpids` of Slurm 22.05 prints it; its descendants have no LOCALID:
///
/// ```text
/// PID      JOBID    STEPID   LOCALID GLOBALID
/// 21583    1        1        0       0
/// 21588    1        1        -       -
/// ```
fn parse_pids(text: &str) -> Option<u32> {
    let mut rows = text.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    rows.find_map(|row| match row[..] {
        [pid, _, _, "0", _] => pid.parse().ok().filter(|pid| *pid > 0),
        _ => None,
    })
}

#[cfg(test)]
pub(super) fn sample() -> Step {
    let job = Job { id: "7".to_owned(), node: "n1".to_owned(), srun: "/usr/bin/srun".into() };
    Step { job, name: "loadline-1-0".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slurm_step_gets_limit_cpus_and_input() {
        let shown = |limit, cpus, reads| {
            let command = ["java", "-jar", "a b.jar"].map(str::to_owned);
            sample().argv(&StepOptions { limit, cpus, reads }, &command).join(" ")
        };
        let begin = "/usr/bin/srun --jobid=7 --nodelist=n1 --nodes=1 --ntasks=1 --overlap --cpu-bind=none \
                     --export=ALL --job-name=loadline-1-0";
        let limit = Bytes(Bytes::mib(64).0 + 4096);
        assert_eq!(
            shown(limit, Some(&[0, 2][..]), false),
            format!("{begin} --mem=64M --input=none taskset --cpu-list 0,2 java -jar a b.jar")
        );
        assert_eq!(shown(limit, None, true), format!("{begin} --mem=64M --input=0 java -jar a b.jar"));
    }

    #[test]
    fn slurm_limits_are_rounded_down_to_at_least_one_mib() {
        let set = |bytes| limit_set(Bytes(bytes)).0;
        assert_eq!([MIB, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1].map(set), [MIB, MIB, 2 * MIB, 2 * MIB]);
        assert_eq!([0, 1, MIB - 1].map(set), [MIB; 3], "a limit of 0 would allow all of the node's memory");
    }

    const STEPS: &str = "12_3.1|loadline-7-1|n1\n12_3.2|odd|name|n1\n12_3.3|loadline-7-1|n12\n12_3.batch|batch|n1\n";
    const PIDS: &str = "PID      JOBID    STEPID   LOCALID GLOBALID\n21588    1        1        -       -       \n\
                        21583    1        1        0       0       \n";

    #[test]
    fn steps_of_this_node_and_the_first_task_are_read() {
        let expect = [("12_3.1", "loadline-7-1"), ("12_3.2", "odd|name"), ("12_3.batch", "batch")];
        assert_eq!(parse_steps(STEPS, "n1"), expect.map(|(id, name)| (id.to_owned(), name.to_owned())));
        assert_eq!(parse_pids(PIDS), Some(21583));
        assert_eq!(parse_pids("slurm_load_job error: Invalid job id specified\n"), None);
    }

    #[test]
    fn truncated_slurm_output_names_no_wrong_step_or_process() {
        for end in 0..STEPS.len() {
            let cut = parse_steps(&STEPS[..end], "n1");
            assert!(cut.iter().all(|step| parse_steps(STEPS, "n1").contains(step)), "{cut:?}");
        }
        for end in 0..PIDS.len() {
            assert!([None, Some(21583)].contains(&parse_pids(&PIDS[..end])), "{end}");
        }
    }

    #[test]
    fn a_kill_is_recognized_from_slurms_output_only() {
        let says = |line: &str| says_killed_for_memory(&[line.to_owned()]);
        assert!(says("srun: error: n1: task 0: Out Of Memory"));
        assert!(says("slurmstepd-n1: error: Detected 1 oom-kill event(s) in StepId=1.2. Some of your processes may"));
        assert!(says("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been"));
        assert!(!says("srun: error: n1: task 0: Killed") && !says("app: Out Of Memory") && !says("oom-kill"));
        assert!(says_not_begun(&["srun: error: Unable to create step for job 1: Memory required".to_owned()]));
        assert!(!says_not_begun(&["srun: error: n1: task 0: Exited with exit code 1".to_owned()]));
    }
}
