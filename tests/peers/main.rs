//! The load engine through its library against servers that are not ours: what they count must be what it counts.
//!
//! Without a peer its tests are skipped, unless `LOADLINE_PEERS=required`.
//! A timing decides nothing here, but for bounds that follow from the schedule alone.
#![expect(clippy::disallowed_methods, reason = "certificates are made by `openssl`")]
#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on should stop it")]

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
