//! Arguments for planning a fleet: the verb `plan`.

use clap::Parser;
use std::path::PathBuf;

/// `loadline plan`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Plan {
    /// A fleet file; scenarios, each of which is a service; one scenario whose configurations are compared; or a plan
    #[arg(value_name = "FLEET | SCENARIO | PLAN", required = true)]
    pub(super) what: Vec<PathBuf>,
    /// File of the plan; what lies below its folder is named from there [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Minutes that an entry may take [default: what the fleet file says, or 15; of a comparison three times its load]
    #[arg(long, value_name = "N", value_parser = minutes)]
    pub(super) minutes: Option<f64>,
    /// Nodes: entries of a comparison, and how many a script takes at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) nodes: Option<u32>,
    /// Blocks of a comparison, in all [default: the trials of the scenario, or 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) blocks: Option<u32>,
    /// Prior knowledge of the services: output of `loadline merge --json`, or an earlier plan
    #[arg(long, value_name = "FILE", conflicts_with = "blocks", help_heading = "Lines")]
    pub(super) last: Option<PathBuf>,
    /// Search the line of this service again, whatever is known of it; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with_all = ["blocks", "search_all"], help_heading = "Lines")]
    pub(super) search: Vec<String>,
    /// Search all lines again
    #[arg(long, conflicts_with = "blocks", help_heading = "Lines")]
    pub(super) search_all: bool,
    /// Print the script of a job array for Slurm
    #[arg(long, conflicts_with = "kubernetes", help_heading = "Engines")]
    pub(super) slurm: bool,
    /// Print the manifest of an Indexed Job for Kubernetes
    #[arg(long, help_heading = "Engines")]
    pub(super) kubernetes: bool,
    /// Run build steps even if nothing they read has changed
    #[arg(long)]
    pub(super) rebuild: bool,
    /// No talk on stderr
    #[arg(long, short)]
    pub(super) quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  loadline plan fleet.yaml --out plan.jsonl
  loadline plan fleet.yaml --out plan.jsonl --last fleet.json --slurm --nodes 10 > fleet.sbatch
  loadline plan orders.loadline.yaml cart.loadline.yaml --out plan.jsonl
  loadline plan collectors.loadline.yaml --blocks 20 --nodes 10 --out plan.jsonl
  loadline plan plan.jsonl --kubernetes > job.yaml";

fn minutes(text: &str) -> Result<f64, String> {
    let sound = text.parse().ok().filter(|minutes: &f64| *minutes > 0.0 && *minutes <= 525_600.0);
    sound.ok_or_else(|| format!("`{text}` is no number of minutes; write it as `15`"))
}
