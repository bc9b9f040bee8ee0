//! Starts a JVM, waits until it is ready, ends it, says why it ended; the only place that starts processes.
//!
//! ```text
//! Loadline ── guardian ── launcher, which becomes the command ── … ── JVM
//! ```
//! Whatever of these dies, and however, everything to its right dies with it: see `guardian`. The processes of a
//! container need not descend from the guardian; a container is found by its name, and the guardian removes it.

pub mod allocators;
pub mod build_stamp;
mod build_step;
pub mod complaint;
mod contained;
pub mod container_files;
pub mod container_tool;
pub mod cpus;
mod driver;
pub mod file_pages;
mod first_answer;
mod guarded;
pub mod guardian;
mod heard;
pub mod image;
pub mod itself;
pub mod jdk;
mod keeper;
pub mod launch;
mod launch_image;
mod launcher;
pub mod limit;
mod limit_seen;
pub mod limit_ways;
mod lines;
mod log_file;
pub mod marker;
pub mod names;
pub mod output;
mod own_cgroup;
pub mod private_jdk;
mod probe;
pub mod processes;
mod program;
mod protocol;
mod quoting;
mod ready;
mod refusal;
mod running;
mod secrets;
pub mod serving;
pub mod slurm_step;
pub mod sockets;
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
pub use work_folder::WorkFolder;
