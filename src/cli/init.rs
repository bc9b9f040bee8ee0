//! `loadline init`: a first scenario file, derived from a directory's contents and the server's first response.
//!
//! The schema is written next to the scenario, because every editor can read a local file, and it matches this release.

use super::exit::Code;
use super::of_jar::first_answer;
use super::run::SUFFIX;
use super::session::{Call, Output, Session};
use crate::detect::{self, DetectedServer, Draft};
use crate::error::{Error, ErrorKind, Result};
use crate::report::{self, Progress};
use crate::scenario::{Scenario, Url, parse, shell_word};
use crate::subject::container_tool::FoundTool;
use crate::subject::{FirstAnswer, Usual, WorkFolder, image};
use crate::units::shortened;
use clap::Parser;
use std::collections::{BTreeSet, VecDeque};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// `loadline init`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {
    /// Project directory, jar, or Dockerfile
    #[arg(value_name = "PATH", default_value = ".")]
    place: PathBuf,
    /// URL to load, instead of the usual paths: `http://127.0.0.1:{port}/hello`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Create the scenario for this container image
    #[arg(long, value_name = "IMAGE", conflicts_with = "place")]
    image: Option<String>,
    /// File to write [default: NAME.loadline.yaml in the working directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Guess the port and paths without starting the server
    #[arg(long)]
    no_start: bool,
    /// Print no progress on stderr
    #[arg(long, short)]
    quiet: bool,
    /// Arguments for the program, instead of the defaults; `{port}` expands to its port
    #[arg(last = true, value_name = "ARGUMENT", conflicts_with = "image")]
    arguments: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  loadline init
  loadline init services/shop --out load/shop.loadline.yaml
  loadline init target/app.jar --url 'http://127.0.0.1:{port}/orders'
  loadline init target/app.jar -- --listen '{port}'
  loadline init --image app:1.2";

/// The schema that editors use to check a scenario file.
pub(super) const SCENARIO_SCHEMA: &str = include_str!("../../docs/scenario.schema.json");
/// The schema's path relative to the scenario.
const SCHEMA: &str = ".loadline/scenario.schema.json";
const TOOL_USUAL: &str = "docker";
/// Maximum characters for listing the names of files that are not copied.
const LINKED_CHARS_MAX: usize = 200;

pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let Verb { quiet, .. } = verb;
    let output = Output { quiet, ..Output::default() };
    let session = Session::new(output, call)?;
    let mut progress = Progress::new(quiet);
    let DetectedServer { folder, mut draft, jar } = look(&verb, &session, &mut progress)?;
    let file = verb.out.unwrap_or_else(|| format!("{}{SUFFIX}", draft.name).into());
    if file.exists() && !verb.force {
        return Err(Error::request(format!("{} already exists", file.display()))
            .hint("overwrite it with `--force`, or write another file with `--out FILE`"));
    }
    let base = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
    std::fs::create_dir_all(&base).map_err(|cause| Error::io("create", &base, &cause))?;
    SCHEMA.clone_into(&mut draft.schema);
    draft.dir = detect::way(&base, &folder);
    if !verb.arguments.is_empty() {
        draft.take_arguments(&verb.arguments);
    }
    let url = verb.url.as_deref().map(Url::parse).transpose()?;
    if let Some(url) = &url {
        draft.take_page(url);
    }
    let is_built = draft.build.as_ref().is_none_or(|build| !build.is_needed);
    let mut started = Started::NotTried;
    if !verb.no_start && is_built {
        let health = || jar.as_ref().map_or_else(detect::health, detect::Jar::health);
        let told_port = draft.port.is_none();
        let usual = match url {
            Some(url) => Usual { pages: vec![url.path], health: Vec::new(), told_port },
            None => Usual { pages: detect::pages(), health: health(), told_port },
        };
        started = start(&mut draft, &base, &usual, &session, &mut progress)?;
    }
    let text = draft.text();
    read(&text, &base, &session)?;
    write(&base.join(SCHEMA), SCENARIO_SCHEMA, true)?;
    write(&file, &text, verb.force)?;
    report::print(&format!("{}\n", file.display()))?;
    let run = format!("loadline run {}", shell_word(&file.to_string_lossy()));
    let (next, code) = match started {
        Started::Failed => (format!("next: correct `subject` in it, then {run}"), Code::Subject),
        Started::Answered | Started::NotTried => (format!("next: {run}"), Code::Yes),
    };
    progress.step(&next);
    Ok(code)
}

/// Whether the server responded at its first start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Started {
    Answered,
    Failed,
    NotTried,
}

/// Finds the subject.
fn look(verb: &Verb, session: &Session, progress: &mut Progress) -> Result<DetectedServer> {
    let Some(name) = &verb.image else {
        let tools = FoundTool::installed(session.clock);
        return DetectedServer::look(&verb.place, tools.first().map_or(TOOL_USUAL, |tool| tool.tool.word()));
    };
    let port = match image::find(name, session.clock) {
        Ok(found) => found.port,
        Err(error) => {
            progress.warn(&format!("cannot read the image: {}", error.what));
            None
        }
    };
    Ok(DetectedServer::of_image(name, port))
}

/// Starts the server once and adds what was learned to the draft. If it does not start, the guesses stay.
fn start(draft: &mut Draft, base: &Path, usual: &Usual, session: &Session, progress: &mut Progress) -> Result<Started> {
    let scenario = read(&draft.text(), base, session)?;
    progress.step("starting the server once to find its port and a path (`--no-start` skips this)");
    match ask(&scenario, usual, session, progress) {
        Ok(found) => {
            draft.settle(found);
            Ok(Started::Answered)
        }
        Err(error) if error.kind == ErrorKind::Interrupted => Err(error),
        Err(error) => {
            // The hint suggests options that `init` does not have.
            let error = Error { hint: None, ..error };
            progress.warn(&format!(
                "{error}\n\nthe port and path in the scenario are guesses: correct `get:`; if the program sets its \
                 port differently, specify its arguments after `--`, with `{{port}}`"
            ));
            Ok(Started::Failed)
        }
    }
}

/// Starts the server in a copy of its directory, so that its output is discarded; uses the original only if copying
/// fails. The server can still write to absolute paths outside.
fn ask(scenario: &Scenario, usual: &Usual, session: &Session, progress: &mut Progress) -> Result<FirstAnswer> {
    let folder = scenario.subject.dir.as_deref().filter(|_| scenario.subject.image.is_none());
    let Some(folder) = folder else { return first_answer(session, scenario, usual) };
    if let Ok(copy) = CopiedFolder::of(folder) {
        if !copy.linked.is_empty() {
            let linked = shortened(&copy.linked.join(", "), LINKED_CHARS_MAX);
            progress.step(&format!("too large to copy, so the server may write to the originals: {linked}"));
        }
        let mut elsewhere = scenario.clone();
        elsewhere.subject.dir = Some(copy.folder.path().to_owned());
        return first_answer(session, &elsewhere, usual);
    }
    let before = names(folder);
    let answered = first_answer(session, scenario, usual);
    let new: Vec<String> = names(folder).difference(&before).cloned().collect();
    if !new.is_empty() {
        progress.step(&format!("the server wrote files to {}: {}", folder.display(), new.join(", ")));
    }
    answered
}

/// Files that a JVM only reads: linked, because copying them takes too long.
const CODE: [&str; 4] = ["class", "jar", "so", "war"];
/// Directories that no server reads, and that may be huge.
const LEFT_OUT: [&str; 4] = [".git", ".gradle", "loadline-archive", "node_modules"];
/// Limits of a copy: entries, bytes, and depth, which a link to a parent directory would make infinite.
const ENTRIES_MAX: usize = 20_000;
const COPIED_BYTES_MAX: u64 = 256 << 20;
const DEPTH_MAX: usize = 32;

/// A copy of a directory, deleted with everything that a server writes to it.
struct CopiedFolder {
    folder: WorkFolder,
    /// Entries that were too large to copy. They are links, so the server can write to the originals.
    linked: Vec<String>,
}

impl CopiedFolder {
    /// Copies a directory, breadth first.
    fn of(folder: &Path) -> Result<Self> {
        let failed = |cause: &std::io::Error| Error::io("copy", folder, cause);
        let from = folder.canonicalize().map_err(|cause| failed(&cause))?;
        let mut copy = Self { folder: WorkFolder::create()?, linked: Vec::new() };
        let to = copy.folder.path().to_owned();
        let (mut entries, mut bytes) = (0, 0);
        let mut folders = VecDeque::from([PathBuf::new()]);
        while let Some(folder) = folders.pop_front() {
            for name in names(&from.join(&folder)) {
                let way = folder.join(&name);
                let (old, new) = (from.join(&way), to.join(&way));
                // Skips pipes, sockets, and dangling links.
                let Ok(kind) = std::fs::metadata(&old).map(|of| (of.is_dir(), of.is_file(), of.len())) else {
                    continue;
                };
                let within = old.is_symlink().then(|| old.canonicalize().ok()).flatten();
                let within = within.and_then(|target| Some(to.join(target.strip_prefix(&from).ok()?)));
                entries += 1;
                let made = match (kind, within) {
                    ((true, ..), _) if LEFT_OUT.contains(&name.as_str()) => Ok(()),
                    (_, Some(target)) => symlink(target, &new),
                    ((true, ..), None) if entries < ENTRIES_MAX && way.components().count() < DEPTH_MAX => {
                        folders.push_back(way);
                        std::fs::create_dir(&new)
                    }
                    ((_, true, _), None) if CODE.iter().any(|code| way.extension().is_some_and(|of| of == *code)) => {
                        symlink(&old, &new)
                    }
                    ((_, true, size), None) if entries < ENTRIES_MAX && bytes + size <= COPIED_BYTES_MAX => {
                        bytes += size;
                        std::fs::copy(&old, &new).map(drop)
                    }
                    ((false, false, _), None) => Ok(()),
                    _ => {
                        copy.linked.push(way.display().to_string());
                        symlink(&old, &new)
                    }
                };
                match made {
                    // The server probably cannot read it either.
                    Err(cause) if cause.kind() == std::io::ErrorKind::PermissionDenied => {}
                    made => made.map_err(|cause| failed(&cause))?,
                }
            }
        }
        Ok(copy)
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Reads the scenario as `loadline run` would.
fn read(text: &str, base: &Path, session: &Session) -> Result<Scenario> {
    parse(text, base, &session.releases())
        .map_err(|error| Error { kind: ErrorKind::Bug, ..error }.at("the scenario that `init` wrote"))
}

/// Writes a file, creating its directory; overwrites a file only if `over` is set.
fn write(file: &Path, text: &str, over: bool) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    if over {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| options.open(file))
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|cause| Error::io("write", file, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{read_to_string, write};

    #[test]
    fn a_server_in_a_copied_directory_cannot_write_to_the_original() {
        let own = tempfile::tempdir().unwrap();
        let at = |name: &str| own.path().join(name);
        for folder in ["data/deep", "elsewhere", ".git/x", "target"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["data/deep/app.db", "app.log", "elsewhere/own.db", "target/app.jar", ".git/x/HEAD"] {
            write(at(file), "old").unwrap();
        }
        symlink("data", at("same")).unwrap();
        symlink(at("app.log"), at("data/app.log")).unwrap();
        symlink(at(""), at("data/loop")).unwrap();
        symlink("nowhere", at("gone")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let copy = CopiedFolder::of(own.path()).unwrap();
        let new = |name: &str| copy.folder.path().join(name);
        for file in ["data/deep/app.db", "same/deep/app.db", "app.log", "data/app.log", "data/loop/elsewhere/own.db"] {
            assert_eq!(read_to_string(new(file)).unwrap().trim_end_matches('+'), "old", "{file}");
            write(new(file), "old+").unwrap();
        }
        write(new("data/deep/new"), "new").unwrap();
        for file in ["data/deep/app.db", "app.log", "elsewhere/own.db"] {
            assert_eq!(read_to_string(at(file)).unwrap(), "old", "{file}");
        }
        assert!(!at("data/deep/new").exists() && !new(".git").exists() && !new("pipe").exists());
        assert!(new("target/app.jar").is_symlink() && copy.linked.is_empty(), "{:?}", copy.linked);
    }
}
