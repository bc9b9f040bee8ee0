//! Searches a directory for a server: a built jar, a Maven or Gradle project, a Dockerfile.

use super::draft::{Build, Draft, Start};
use super::jar::{self, Jar, programs_in};
use super::signs::{Dockerfile, PAGES, Project, Scripts, of_gradle, of_maven};
use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::scenario::{plain_name, shell_word};
use std::path::{Component, Path, PathBuf};

/// Directories where builds leave executable jars, most likely first.
const BUILT: [&str; 5] = ["target/quarkus-app", "build/quarkus-app", "target", "build/libs", "."];
/// More than any build script has.
const TEXT_BYTES_MAX: u64 = 4 << 20;
/// Modules listed in an error.
const MODULES_SHOWN: usize = 12;
/// The usual default port of servers.
const PORT_USUAL: u16 = 8080;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetectedServer {
    /// The base directory of paths.
    pub folder: PathBuf,
    /// The part of the scenario that is known before a start.
    pub draft: Draft,
    /// The jar that can be started now, if any.
    pub jar: Option<Jar>,
}

#[derive(Default)]
struct BuiltProject {
    project: Project,
    told: Vec<String>,
    build: Option<String>,
}

impl DetectedServer {
    /// Inspects a directory, a jar, or a build file; `container_tool` names the program that builds images. Errors:
    /// `Request` if there is nothing to start, if there are several modules, or if a file is not what its name implies.
    pub(crate) fn look(at: &Path, container_tool: &str) -> Result<Self> {
        if !at.exists() {
            return Err(Error::request(format!("`{}` does not exist", at.display()))
                .hint("specify a directory, a jar, or `--image NAME`"));
        }
        if at.is_dir() {
            return Self::of_folder(at, None, container_tool);
        }
        let folder = at.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match at.file_name().unwrap_or_default().to_string_lossy().as_ref() {
            "pom.xml" | "build.gradle" | "build.gradle.kts" => Self::of_folder(folder, None, container_tool),
            name if name.starts_with("Dockerfile") || name == "Containerfile" => {
                Self::of_dockerfile(folder, name, container_tool)
            }
            _ => {
                let jar = Jar::read(at)?;
                // A path below the current directory stays relative to it.
                let folder = if at.is_relative() && !at.starts_with("..") { Path::new(".") } else { folder };
                Self::of_folder(folder, Some(jar), container_tool)
            }
        }
    }

    fn of_folder(folder: &Path, named: Option<Jar>, container_tool: &str) -> Result<Self> {
        let project = project(folder)?;
        let (jar, others) = match named {
            Some(jar) => (Some(jar), Vec::new()),
            None => built(folder, project.as_ref())?,
        };
        let dockerfile = ["Dockerfile", "Containerfile"].into_iter().find(|name| folder.join(name).is_file());
        let project = match (&jar, project, dockerfile) {
            (None, Some(BuiltProject { project, .. }), _) if !project.parts.is_empty() => {
                return Err(several(folder, &project.parts));
            }
            (_, Some(project), _) => project,
            (Some(_), None, _) => BuiltProject::default(),
            (None, None, Some(name)) => return Self::of_dockerfile(folder, name, container_tool),
            (None, None, None) => return Err(nothing(folder)),
        };
        let mut draft = project.draft(folder, jar.as_ref())?;
        if !others.is_empty() {
            draft.told.push(format!("Other runnable jars: {}.", others.join(", ")));
        }
        if let Some(name) = dockerfile {
            draft.told.push(format!("There is also a {name}: `loadline init {name}` writes a scenario for the image."));
        }
        Ok(Self { folder: folder.to_owned(), draft, jar })
    }

    fn of_dockerfile(folder: &Path, file: &str, container_tool: &str) -> Result<Self> {
        let path = folder.join(file);
        let found = Dockerfile::parse(&text(&path)?).map_err(|error| error.at(path.display().to_string()))?;
        let name = plain_name(&name_of(folder)).to_ascii_lowercase();
        let of_file = if file == "Dockerfile" { String::new() } else { format!("-f {} ", shell_word(file)) };
        let command = format!("{container_tool} build -t {name} {of_file}.");
        let mut draft = of_image(&name, found.port);
        draft.told = vec![format!("Written by `loadline init` from {file}.")];
        if !found.starts.is_empty() {
            draft.told.push(format!("It starts {}.", found.starts.join(" ")));
        }
        if found.through_shell {
            draft
                .told
                .push("Its ENTRYPOINT or CMD runs in a shell, which does not pass SIGTERM on to the JVM.".to_owned());
        }
        draft.build = Some(Build { command, is_needed: true });
        Ok(Self { folder: folder.to_owned(), draft, jar: None })
    }

    pub(crate) fn of_image(image: &str, port: Option<u16>) -> Self {
        let mut draft = of_image(image, port);
        draft.told = vec![format!("Written by `loadline init` from the image {image}.")];
        Self { folder: PathBuf::from("."), draft, jar: None }
    }
}

fn of_image(image: &str, port: Option<u16>) -> Draft {
    let short = image.rsplit('/').next().unwrap_or_default();
    let port_by = match port {
        Some(_) => "The port it exposes.",
        None => "A guess: the image exposes no numeric port.",
    };
    Draft {
        name: plain_name(short.split([':', '@']).next().unwrap_or(short)),
        start: Start::Image(image.to_owned()),
        port: Some(port.unwrap_or(PORT_USUAL)),
        port_by: port_by.to_owned(),
        ..guessed()
    }
}

/// A draft with a guessed page; no request has been sent yet.
fn guessed() -> Draft {
    Draft {
        page: PAGES[0].to_owned(),
        page_by: "A guess, because the server was not started. Choose a page that does real work.".to_owned(),
        ..Draft::default()
    }
}

impl BuiltProject {
    /// The scenario of the existing jar, or of the one that the build would create.
    fn draft(self, folder: &Path, jar: Option<&Jar>) -> Result<Draft> {
        let Self { project, mut told, build } = self;
        let path = match (jar, &project.makes) {
            (Some(jar), _) => jar.path.strip_prefix(folder).unwrap_or(&jar.path).display().to_string(),
            (None, Some(makes)) => makes.clone(),
            (None, None) => {
                return Err(Error::request(format!("cannot tell which jar {} builds", folder.display()))
                    .hint("build it, then run `loadline init` again, or specify the jar"));
            }
        };
        let framework = jar.map_or(project.framework, |jar| jar.framework);
        told.push(match jar {
            Some(jar) => format!("Written by `loadline init` from {path} ({}).", jar.kind()),
            None => format!("Written by `loadline init` before {path} was built."),
        });
        let command = jar::command(&path, framework, &[]);
        let is_told = command.iter().any(|word| word.contains("{port}"));
        let name = if project.name.is_empty() { jar.map_or_else(String::new, Jar::name) } else { project.name };
        Ok(Draft {
            name: plain_name(&name),
            told,
            build: build.map(|command| Build { command, is_needed: jar.is_none() }),
            start: Start::Command(command),
            port: (!is_told).then_some(PORT_USUAL),
            port_by: "A guess: Loadline cannot set this server's port and did not start it.".to_owned(),
            health: project.health.map(str::to_owned),
            ..guessed()
        })
    }
}

fn built(folder: &Path, project: Option<&BuiltProject>) -> Result<(Option<Jar>, Vec<String>)> {
    let expected = project.and_then(|built| Some(folder.join(built.project.makes.as_ref()?)));
    let mut found: Vec<PathBuf> = BUILT.iter().flat_map(|place| programs_in(&folder.join(place))).collect();
    // Prefers the build's expected jar, then the one in a framework's directory.
    if let Some(at) = found.iter().position(|path| Some(path) == expected.as_ref()) {
        found[..=at].rotate_right(1);
    }
    let shown = |path: &PathBuf| path.strip_prefix(folder).unwrap_or(path).display().to_string();
    let jar = found.first().map(|first| Jar::read(first)).transpose()?;
    Ok((jar, found.iter().skip(1).map(shown).collect()))
}

/// Reads the build files in a directory; `None` if there are none.
fn project(folder: &Path) -> Result<Option<BuiltProject>> {
    let exists = |name: &str| folder.join(name).is_file();
    let first = |names: [&'static str; 2]| names.into_iter().find(|name| exists(name));
    let built = |project: Project, tool: &str, told: String| {
        let build = Some(format!("{tool} -q {}", project.task));
        Ok(Some(BuiltProject { project, told: vec![told], build }))
    };
    if exists("pom.xml") {
        let path = folder.join("pom.xml");
        let project = of_maven(&text(&path)?).map_err(|error| error.at(path.display().to_string()))?;
        let tool = if exists("mvnw") { "./mvnw" } else { "mvn" };
        return built(project, tool, "Built by Maven (pom.xml).".to_owned());
    }
    let Some(build) = first(["build.gradle.kts", "build.gradle"]) else { return Ok(None) };
    let settings = first(["settings.gradle.kts", "settings.gradle"]);
    let settings = settings.map(|name| text(&folder.join(name))).transpose()?.unwrap_or_default();
    let scripts = Scripts { build: &text(&folder.join(build))?, settings: &settings };
    let tool = if exists("gradlew") { "./gradlew" } else { "gradle" };
    built(of_gradle(scripts, &name_of(folder)), tool, format!("Built by Gradle ({build})."))
}

fn several(folder: &Path, parts: &[String]) -> Error {
    let shown = parts.iter().take(MODULES_SHOWN).map(|part| part.escape_debug().to_string());
    let rest = parts.len().saturating_sub(MODULES_SHOWN);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let list = shown.collect::<Vec<_>>().join(", ");
    let first = folder.join(&parts[0]);
    Error::request(format!("{} is a project of {} modules: {list}{more}", folder.display(), parts.len()))
        .hint(format!("specify the server's module, such as `loadline init {}`", shell_word(&first.to_string_lossy())))
}

fn nothing(folder: &Path) -> Error {
    Error::request(format!("found nothing in {} that starts a server", folder.display()))
        .at(format!("no jar with a main class in it or in {}", BUILT[..4].join(", ")))
        .at("no pom.xml, build.gradle, build.gradle.kts, or Dockerfile")
        .hint("specify a jar (`loadline init path/app.jar`) or an image (`--image NAME`)")
}

/// The name of a directory, resolving `.`.
fn name_of(folder: &Path) -> String {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let whole = whole.canonicalize().unwrap_or(whole);
    whole.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The relative path from one directory to another; empty if they are the same.
pub(crate) fn way(from: &Path, to: &Path) -> String {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or(path.to_owned());
    let (from, to) = (whole(from), whole(to));
    let (from, to): (Vec<Component<'_>>, Vec<Component<'_>>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = from[common..].iter().map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(to[common..].iter().copied()).collect();
    way.display().to_string()
}

fn text(path: &Path) -> Result<String> {
    let bytes = bounded::bytes(path, TEXT_BYTES_MAX)
        .map_err(|cause| Error::request(format!("cannot read {}: {}", path.display(), plain(&cause))))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_lead_up_and_down() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::create_dir_all(at("c")).unwrap();
        let check = |from: &str, to: &str, expect: &str| assert_eq!(way(&at(from), &at(to)), expect);
        check("a", "a", "");
        check("a/b", "a", "..");
        check("a", "a/b", "b");
        check("a/b", "c", "../../c");
    }
}
