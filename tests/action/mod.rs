//! The GitHub action, the component of GitLab and the workflows of the documents: scripts are run with the variables
//! that a runner sets, against a made-up API on loopback; their YAML is held to its form, and to actionlint.

mod api;
mod metadata;
mod runner;
mod scripts;
