//! Facts about a project's server from the text of its files: a jar's manifest and entries, `pom.xml`, Gradle scripts,
//! a Dockerfile; and the framework that they indicate. No I/O.

mod dockerfile;
mod framework;
mod gradle;
mod manifest;
mod pom;
mod project;

pub(crate) use dockerfile::Dockerfile;
pub(crate) use framework::Framework;
pub(crate) use framework::{PAGES, health_of};
pub(crate) use gradle::{Scripts, of_gradle};
pub(crate) use manifest::Manifest;
pub(crate) use pom::of_maven;
pub(crate) use project::Project;
