//! Complete commands on real JVMs: the binary runs on subjects with known memory. Bounds on times are generous enough
//! for a busy machine.
#![expect(clippy::disallowed_methods, reason = "these tests run the binary itself, and `mount`, `ps` and `kill`")]
#![expect(clippy::print_stdout, reason = "helpers show the figures that they judge")]
#![expect(clippy::unwrap_used, reason = "a test helper that cannot continue should fail the test")]

mod account;
mod account_trouble;
mod account_truth;
mod accounts_beside;
mod added;
mod advise;
mod appetite;
mod archives;
mod bisect;
mod captured;
mod causes;
mod collected;
mod composition;
mod deaths;
mod detect;
mod doctor;
mod drivers;
mod endings;
mod explain;
mod find;
mod findings;
mod flags;
mod fleet;
mod gallery;
mod gallery_frameworks;
mod gallery_http;
mod gallery_memory;
mod grown;
mod hostile;
mod images;
mod inside;
mod interrupts;
#[path = "../shared/interval_log.rs"]
mod interval_log;
mod invocation;
mod loaders;
mod matrix;
mod musl;
mod native;
mod netty;
#[path = "../shared/nmt_detail.rs"]
mod nmt_detail;
mod outside;
mod own;
mod pods;
#[path = "../shared/ports.rs"]
mod ports;
mod quota;
mod readiness;
mod scenarios;
mod scraped;
mod slurm;
mod slurm_step;
#[path = "../shared/small_disk.rs"]
mod small_disk;
mod sources;
mod standing;
mod tables;
#[path = "../shared/test_subjects.rs"]
mod test_subjects;
mod truth;
mod tune;
#[path = "../shared/waiting.rs"]
mod waiting;
mod watch;
mod work;
