//! The facts about a project's server, from the text of its files alone: the manifest and entries of a jar, `pom.xml`,
//! Gradle's scripts, a Dockerfile; and which framework that means. No input or output.

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
