//! The script that works a plan on Slurm: one index of an array is one entry, alone on its node.

use super::layout::{JobSettings, comment, minutes_max, slug};
use super::plan::Plan;
use crate::scenario::shell_word;

/// Indexes of an array by default; `MaxArraySize` of slurm.conf raises it.
const ARRAY_MAX: u32 = 1001;
/// The minutes that a node takes in addition to those of its entry: a build, the copy of a JDK, the end.
const BESIDE_MINUTES: u32 = 10;

/// The script, for `sbatch`.
pub fn slurm(plan: &Plan, place: &JobSettings<'_>) -> String {
    let entries = plan.entries.len() as u32;
    let most = place.nodes.map_or_else(String::new, |nodes| format!("%{nodes}"));
    let range = |count: u32| format!("0-{}{most}", count.saturating_sub(1));
    let first = entries.min(ARRAY_MAX);
    HEAD.replace("{NAME}", &comment(&plan.header.name))
        .replace("{LOADLINE}", &comment(&plan.header.loadline))
        .replace("{ENTRIES}", &entries.to_string())
        .replace("{HASH}", &comment(&plan.header.hash))
        .replace("{PARTS}", &parts(entries, range))
        .replace("{JOB}", &slug(&plan.header.name))
        .replace("{ARRAY}", &range(first))
        .replace("{LONGEST}", &minutes_max(plan).to_string())
        .replace("{TIME}", &(minutes_max(plan) + BESIDE_MINUTES).to_string())
        + &format!("plan={}\nresults={}\n", shell_word(place.plan), shell_word(place.results))
        + BODY
}

/// How the entries beyond the first array are submitted.
fn parts(entries: u32, range: impl Fn(u32) -> String) -> String {
    if entries <= ARRAY_MAX {
        return String::new();
    }
    let mut text = format!(
        "#\n# The plan has more entries than an array may have indexes (MaxArraySize, {ARRAY_MAX} unless raised). The \
         others are\n# further arrays of the same script:\n#\n"
    );
    for first in (ARRAY_MAX..entries).step_by(ARRAY_MAX as usize) {
        let array = range((entries - first).min(ARRAY_MAX));
        text += &format!("#   sbatch --array={array} --export=ALL,LOADLINE_FIRST={first} THIS_FILE\n");
    }
    text
}

const HEAD: &str = r#"#!/bin/bash
# Works the plan `{NAME}` on Slurm: each index of the array is one entry of the plan, alone on its node.
# Made by Loadline {LOADLINE}; {ENTRIES} entries, plan {HASH}.
#
#   sbatch THIS_FILE
{PARTS}#
# Plan, results and Loadline itself have to be at the same place on every node. Variables change that place:
# LOADLINE (the program), LOADLINE_PLAN, LOADLINE_RESULTS. Afterwards: loadline merge of the folder of results.
#
#SBATCH --job-name={JOB}
# `%` bounds how many run at once.
#SBATCH --array={ARRAY}
# Other jobs on the node would show in every number.
#SBATCH --exclusive
#SBATCH --nodes=1
# All memory of the node. Loadline sets the limits of trials in cgroups below the job's: as root, or where the job's
# cgroup is delegated.
#SBATCH --mem=0
# Minutes. The longest entry ends by itself after {LONGEST} with what it knows; the rest is for a build and the end.
#SBATCH --time={TIME}
# A lost node gives its entry back. Should the first run still go on, one answer counts.
#SBATCH --requeue
#SBATCH --output=loadline-%A_%a.log
#SBATCH --open-mode=append
set -uo pipefail

"#;

const BODY: &str = r#"plan=${LOADLINE_PLAN:-$plan}
results=${LOADLINE_RESULTS:-$results}
loadline=${LOADLINE:-loadline}
# The entry of index 0, where a plan is several arrays.
first=${LOADLINE_FIRST:-0}
# How often an entry is tried elsewhere.
requeues_max=2

if [[ ! ${SLURM_ARRAY_TASK_ID:-} =~ ^[0-9]+$ ]]; then
    echo 'error: SLURM_ARRAY_TASK_ID is not set: this script is for sbatch' >&2
    exit 2
fi
if [[ ! $first =~ ^[0-9]+$ ]]; then
    echo "error: LOADLINE_FIRST is \`$first\`, and an entry is a number" >&2
    exit 2
fi
index=$((10#$first + SLURM_ARRAY_TASK_ID))
mkdir -p -- "$results"
"$loadline" work "$plan" --index "$index" --out "$results"
code=$?

# 0: there is an answer, and a limit that fails is one. 2: the request is wrong, 3: the subject fails; another node
# would say the same. 4: this node cannot measure, 70: a bug; another node may do better.
case $code in
4 | 70)
    if ((${SLURM_RESTART_COUNT:-0} < requeues_max)); then
        echo "entry $index ended with $code on ${SLURMD_NODENAME:-this node}, and is tried again" >&2
        # Not by SLURM_JOB_ID: of the last index that is the id of the whole array, and all of it would run again.
        scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
    else
        echo "entry $index ended with $code on ${SLURMD_NODENAME:-this node}, for the last time" >&2
    fi
    ;;
esac
exit "$code"
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::layout::tests::plan;

    #[test]
    fn the_script_of_a_small_plan() {
        let place = JobSettings {
            plan: "/shared/fleet/plan.jsonl",
            results: "/shared/fleet/results-0123456789ab",
            nodes: Some(10),
        };
        insta::assert_snapshot!(slurm(&plan("shop", 300), &place));
    }

    #[test]
    fn what_no_array_can_hold_is_several() {
        let place = JobSettings { plan: "p", results: "r", nodes: None };
        let script = slurm(&plan("shop", 2500), &place);
        for line in [
            "#SBATCH --array=0-1000\n",
            "#   sbatch --array=0-1000 --export=ALL,LOADLINE_FIRST=1001 THIS_FILE\n",
            "#   sbatch --array=0-497 --export=ALL,LOADLINE_FIRST=2002 THIS_FILE\n",
        ] {
            assert!(script.contains(line), "{line}{script}");
        }
        for (entries, arrays) in [(1, 0), (1000, 0), (1001, 0), (1002, 1), (2002, 1), (2003, 2)] {
            let script = slurm(&plan("shop", entries), &place);
            assert_eq!(script.matches("LOADLINE_FIRST=").count(), arrays, "{entries}");
            assert!(script.contains(&format!("--array=0-{}\n", entries.min(1001) - 1)));
        }
    }

    #[test]
    fn names_stay_names() {
        let hostile = "a'b\"c $(touch x)\n#SBATCH --uid=0\n`id` \\ ü";
        let place = JobSettings { plan: "/a b/it's $(id).jsonl", results: "/r\n\"x\"", nodes: Some(2) };
        let script = slurm(&plan(hostile, 2), &place);
        let of = |beginning: &str| script.lines().filter(|line| line.starts_with(beginning)).count();
        assert_eq!((of("#SBATCH --uid"), of("#SBATCH --job-name=loadline-a-b-c-touch-x-sbatch")), (0, 1), "{script}");
        assert!(script.contains(r"plan='/a b/it'\''s $(id).jsonl'"), "{script}");
        assert!(script.contains("results='/r\n\"x\"'\n"), "{script}");
        // Placeholders in names are no placeholders.
        let script = slurm(&plan("{PARTS}{ARRAY}", 2), &JobSettings { plan: "{HASH}", results: "r", nodes: None });
        assert!(script.contains("plan='{HASH}'"), "{script}");
    }
}
