//! Which entry to run on which node: from options, else from the engine's variables.

use crate::error::{Error, Result};

/// Kubernetes, Jobs with `completionMode: Indexed`.
const OF_KUBERNETES: &str = "JOB_COMPLETION_INDEX";
/// Slurm, `sbatch --array`.
const OF_SLURM: &str = "SLURM_ARRAY_TASK_ID";
/// The entry of a Slurm array's task 0, if the plan has more entries than an array allows.
const FIRST: &str = "LOADLINE_FIRST";
/// How many times Slurm restarted this task.
const RESTARTS: &str = "SLURM_RESTART_COUNT";
/// Variables with the node's name: from Loadline's manifest, from Slurm.
const NODES: [&str; 2] = ["NODE_NAME", "SLURMD_NODENAME"];

/// The values given on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntrySelection<'a> {
    /// The entry.
    pub index: Option<u32>,
    /// The node's name.
    pub node: Option<&'a str>,
}

/// Which entry to run on which node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The entry's position in the plan.
    pub index: u32,
    /// The engine's name for the node; the host name without an engine.
    pub node: String,
    /// How many times the engine restarted this entry, if known.
    pub restarts: u32,
}

impl Started {
    /// Reads which entry to run. An empty variable counts as unset. Errors: `Request` if neither the user nor the
    /// engine names an entry, or if a variable is not a number.
    pub fn of(typed: EntrySelection<'_>, variable: &dyn Fn(&str) -> Option<String>, host: &str) -> Result<Self> {
        let said = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let number = |name: &str| said(name).map(|value| parse(name, &value)).transpose();
        let node = typed.node.map(str::to_owned).or_else(|| NODES.iter().find_map(|name| said(name)));
        Ok(Self {
            index: match typed.index {
                Some(index) => index,
                None => by_engine(&number)?,
            },
            node: node.unwrap_or_else(|| host.to_owned()),
            restarts: number(RESTARTS)?.unwrap_or(0),
        })
    }
}

fn by_engine(number: &dyn Fn(&str) -> Result<Option<u32>>) -> Result<u32> {
    if let Some(index) = number(OF_KUBERNETES)? {
        return Ok(index);
    }
    let task = number(OF_SLURM)?.ok_or_else(|| {
        Error::request(format!("no plan entry given: neither {OF_KUBERNETES} nor {OF_SLURM} is set"))
            .hint("specify `--index N`, or start it from a Job with `completionMode: Indexed` or with `sbatch --array`")
    })?;
    let first = number(FIRST)?.unwrap_or(0);
    first
        .checked_add(task)
        .ok_or_else(|| Error::request(format!("{FIRST} {first} plus {OF_SLURM} {task} is not a valid index")))
}

fn parse(name: &str, value: &str) -> Result<u32> {
    value.parse().map_err(|_| {
        Error::request(format!("{name} is `{value}`, which is not a number"))
            .hint(format!("specify `--index N`, or let the scheduler set {name}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(typed: EntrySelection<'_>, variables: &[(&str, &str)]) -> Result<Started> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Started::of(typed, &variable, "host")
    }

    fn check(typed: EntrySelection<'_>, variables: &[(&str, &str)], expect: (u32, &str, u32)) {
        let of = started(typed, variables).unwrap();
        assert_eq!((of.index, of.node.as_str(), of.restarts), expect, "{variables:?}");
    }

    #[test]
    fn command_line_indexes_override_scheduler_variables() {
        let typed = EntrySelection { index: Some(7), node: Some("mine") };
        let engines = [(OF_KUBERNETES, "1"), (OF_SLURM, "2"), ("NODE_NAME", "n1"), ("SLURMD_NODENAME", "n2")];
        check(typed, &engines, (7, "mine", 0));
        check(EntrySelection::default(), &engines, (1, "n1", 0));
        check(EntrySelection::default(), &engines[1..2], (2, "host", 0));
        check(EntrySelection::default(), &[(OF_SLURM, "2\n"), (FIRST, "1000"), (RESTARTS, "1")], (1002, "host", 1));
        check(EntrySelection::default(), &[(OF_KUBERNETES, "2"), (FIRST, "1000"), ("NODE_NAME", "")], (2, "host", 0));
    }

    #[test]
    fn a_missing_or_invalid_index_variable_is_named() {
        let refused = |variables: &[(&str, &str)], expect: &str| {
            let error = started(EntrySelection::default(), variables).unwrap_err();
            assert!(error.what.contains(expect) && error.kind == crate::error::ErrorKind::Request, "{}", error.what);
        };
        refused(&[], "neither JOB_COMPLETION_INDEX nor SLURM_ARRAY_TASK_ID is set");
        refused(&[(OF_KUBERNETES, "")], "neither JOB_COMPLETION_INDEX");
        refused(&[(OF_KUBERNETES, "-1")], "JOB_COMPLETION_INDEX is `-1`, which is not a number");
        refused(&[(OF_SLURM, "4294967296")], "SLURM_ARRAY_TASK_ID is `4294967296`");
        refused(&[(OF_SLURM, "1"), (FIRST, "x")], "LOADLINE_FIRST is `x`");
        refused(&[(OF_SLURM, "4000000000"), (FIRST, "4000000000")], "is not a valid index");
        refused(&[(OF_SLURM, "1"), (RESTARTS, "often")], "SLURM_RESTART_COUNT is `often`");
    }
}
