//! A project as described by its build files.

use super::Framework;

/// The facts in the files of a build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Project {
    pub name: String,
    /// The file that the build creates, relative to its directory; `None` if its name depends on other data.
    pub makes: Option<String>,
    /// The build tool's task that creates it.
    pub task: &'static str,
    pub framework: Option<Framework>,
    /// The server's health check path, derived from its dependencies.
    pub health: Option<&'static str>,
    /// Directories of its modules, if any.
    pub parts: Vec<String>,
}
