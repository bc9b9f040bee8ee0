//! Real Maven builds with a directory repository: the binary as an artifact, the plugin's goals, and the JUnit client.
//! Needs the files fetched by `tests/maven/fetch`. A script replaces Loadline if only the verdict matters; otherwise,
//! the built program measures a server.
#![expect(clippy::disallowed_methods, reason = "these tests run Maven")]
#![expect(clippy::unwrap_used, reason = "a test helper that cannot continue should fail the test")]

mod boot;
mod build;
mod ide;
mod junit;
mod resolving;
mod stand_in;
mod verdicts;
mod weighing;
