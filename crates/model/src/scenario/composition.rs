//! A subject's composition: JVM or not, one process or several, one port or a block.

use serde::{Deserialize, Serialize};

/// The kind of program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A HotSpot JVM, which can be queried.
    #[default]
    Jvm,
    /// Any other program; Loadline measures it only through the kernel and glibc's heaps.
    Native,
}

/// Which processes of the subject to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Processes {
    /// The process that serves requests.
    #[default]
    One,
    /// The command and its descendants, as one subject.
    All,
    /// All processes in a dedicated memory cgroup, and everything else charged to it.
    Cgroup,
}

/// How many of the subject's ports must respond before it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answers {
    /// Every port; the load goes to the first.
    #[default]
    Each,
    /// One port; the load goes to it.
    Any,
}

/// The block of consecutive ports that begins with `{port}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ports {
    /// The number of ports.
    pub count: u16,
    /// How many of them must respond.
    pub answers: Answers,
}

impl Ports {
    /// More nodes than users start on one machine.
    pub const COUNT_MAX: u16 = 100;

    /// The ports of the block that begins with `first`, up to the last valid port.
    pub fn from(self, first: u16) -> impl Iterator<Item = u16> {
        (0..self.count).map_while(move |offset| first.checked_add(offset))
    }
}

impl Default for Ports {
    fn default() -> Self {
        Self { count: 1, answers: Answers::Each }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_block_ends_at_65535() {
        let ports = |count, first| Ports { count, ..Ports::default() }.from(first).collect::<Vec<_>>();
        assert_eq!(ports(3, 18_080), [18_080, 18_081, 18_082]);
        assert_eq!(ports(3, 65_534), [65_534, 65_535]);
        assert_eq!(Ports::default().from(80).collect::<Vec<_>>(), [80]);
    }
}
