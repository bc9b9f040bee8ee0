//! The facts about a project's server, from the text of its files alone: the manifest and entries of a jar, `pom.xml`,
//! Gradle's scripts, a Dockerfile; and which framework that means. No input or output.

mod dockerfile;
mod framework;
mod gradle;
mod manifest;
mod pom;

pub use dockerfile::Dockerfile;
pub use framework::Framework;
pub(crate) use framework::{PAGES, health_of};
pub use gradle::{Gradle, Scripts};
pub use manifest::Manifest;
pub use pom::Pom;
