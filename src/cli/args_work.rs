//! Arguments for one entry of a plan: the verb `work`.

use clap::Parser;
use std::path::PathBuf;

/// `loadline work`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES, after_help = CODES)]
pub(super) struct Work {
    /// The plan, a file that `loadline plan` made
    #[arg(value_name = "PLAN")]
    pub(super) plan: PathBuf,
    /// The entry to do, from 0 [default: JOB_COMPLETION_INDEX, or LOADLINE_FIRST + SLURM_ARRAY_TASK_ID]
    #[arg(long, value_name = "N")]
    pub(super) index: Option<u32>,
    /// Folder of all results, the same for every entry; those of this one go to DIR/index-N
    #[arg(long, value_name = "DIR")]
    pub(super) out: PathBuf,
    /// Name of this node [default: NODE_NAME, SLURMD_NODENAME, or the host's name]
    #[arg(long, value_name = "NAME")]
    pub(super) node: Option<String>,
    /// End after so many minutes with what there is, where the plan allows more
    #[arg(long, value_name = "MINUTES", value_parser = minutes)]
    pub(super) minutes: Option<f64>,
    /// Run the build steps also where they would only repeat themselves
    #[arg(long)]
    pub(super) rebuild: bool,
    /// Print the result as a document instead of a sentence
    #[arg(long)]
    pub(super) json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    pub(super) quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  loadline work plan.jsonl --out results --index 3
  srun loadline work plan.jsonl --out results          # in a task of `sbatch --array`
  loadline work /plan/plan.jsonl --out /results        # in a Job with `completionMode: Indexed`";

const CODES: &str = "\
Exit codes, for what an engine tries again:
    0  an answer stands; also a limit that fails, and what was found when time was up
    2  the request is wrong: no such entry, another plan, other files; do not try again
    3  the subject failed; do not try again
    4  this node cannot measure it; try again elsewhere
   70  a bug in Loadline; try again once
  130  interrupted; the next start goes on";

fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().ok().filter(|minutes: &f64| minutes.is_finite() && *minutes > 0.0);
    minutes.ok_or_else(|| format!("`{text}` is no number of minutes; write it as `30` or `0.5`"))
}
