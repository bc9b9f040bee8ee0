//! Real Maven builds against a repository in a folder: the binary as an artifact, the plugin's two goals, the client
//! for JUnit. Needs what `tests/maven/fetch` brings. If only the verdict matters, a script stands for Loadline; if a
//! server is weighed, it is the program that was built.
#![expect(clippy::disallowed_methods, reason = "these tests run Maven")]
#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on should stop it")]

mod boot;
mod build;
mod ide;
mod junit;
mod resolving;
mod stand_in;
mod verdicts;
mod weighing;
