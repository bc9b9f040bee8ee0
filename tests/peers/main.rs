//! The load engine's library against third-party servers, whose counts must match the engine's.
//!
//! Without a peer, its tests are skipped unless `LOADLINE_PEERS=required`. Nothing depends on timing, except bounds
//! that follow from the schedule.
#![expect(clippy::disallowed_methods, reason = "certificates are made by `openssl`")]
#![expect(clippy::unwrap_used, reason = "a test helper that cannot continue should fail the test")]

mod certificates;
mod http2;
mod java;
mod laws;
mod nginx;
mod nginx_tls;
mod nginx_uploads;
mod openssl;
mod peer;
mod stall;
#[path = "../shared/waiting.rs"]
mod waiting;
