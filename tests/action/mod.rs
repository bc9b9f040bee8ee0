//! The GitHub action, the GitLab component, and the documents' workflows: scripts run with a runner's variables,
//! against a fake API on loopback; YAML is checked for its form, and by actionlint.

mod api;
mod metadata;
mod runner;
mod scripts;
