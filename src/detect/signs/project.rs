//! A project, as far as the files of its build say what it makes.

use super::Framework;

/// The facts in the files of a build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Project {
    /// Its name.
    pub name: String,
    /// The file that its build makes, below its folder; `None` where its name rests on what the files do not say.
    pub makes: Option<String>,
    /// The words by which its tool makes that.
    pub task: &'static str,
    /// Its framework.
    pub framework: Option<Framework>,
    /// The path of the server's health check, by its dependencies.
    pub health: Option<&'static str>,
    /// Folders of its parts, where it is the root of others.
    pub parts: Vec<String>,
}
