//! Starts a JVM, waits until it is ready, ends it, and reports why it ended. No other module starts processes.
//!
//! ```text
//! Loadline ── guardian ── launcher, which becomes the command ── … ── JVM
//! ```
//! If any of these dies, everything to its right dies too: see `guardian`. A container's processes need not descend
//! from the guardian; it finds and removes the container by name.

pub(crate) mod allocators;
pub(crate) mod build_stamp;
mod build_step;
pub(crate) mod complaint;
mod contained;
pub(crate) mod container_files;
pub(crate) mod container_tool;
pub mod cpus;
mod driver;
pub mod file_pages;
mod first_answer;
mod guarded;
pub mod guardian;
mod heard;
pub(crate) mod image;
pub(crate) mod itself;
pub mod jdk;
mod keeper;
pub(crate) mod launch;
mod launch_image;
mod launcher;
pub mod limit;
mod limit_seen;
pub(crate) mod limit_ways;
mod lines;
mod log_file;
mod made_cgroup;
pub mod marker;
pub(crate) mod names;
pub mod output;
mod own_cgroup;
mod own_options;
pub(crate) mod private_jdk;
mod probe;
pub mod processes;
mod program;
mod protocol;
pub mod quota;
mod quoting;
mod ready;
mod refusal;
mod running;
mod secrets;
pub mod serving;
pub(crate) mod slurm_step;
pub(crate) mod sockets;
mod stack_traces;
mod stdin;
pub mod work_folder;

pub use complaint::{Complaint, ComplaintKind};
pub use container_tool::FoundTool;
pub use cpus::CpuPlan;
pub use driver::{DriverEnd, DriverLaunch, DriverRunning};
pub use file_pages::{Evicted, Eviction, Holders};
pub use first_answer::{FirstAnswer, Usual};
pub use guarded::Spawner;
pub use image::FoundImage;
pub use jdk::FoundJdk;
pub use launch::{Launch, LaunchPlace, OptionsPassed};
pub use launch_image::Container;
pub use limit::MemoryCgroup;
pub use limit_seen::LimitSeen;
pub use limit_ways::Way;
pub use marker::Marker;
pub use output::Output;
pub use private_jdk::PrivateJdk;
pub use protocol::Exit;
pub use ready::ReadyInfo;
pub use running::{GuardedSubject, RunningSubject, SubjectEnd};
pub use sockets::{check_port_free, free_port, free_ports};
pub use stack_traces::StackTraces;
pub use work_folder::WorkFolder;
