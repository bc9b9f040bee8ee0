//! `loadline init`: a first scenario file, from what is found in a folder and from what the server first answers.
//!
//! The schema is written next to the scenario, for two reasons: every editor can reach a local file, and it is the
//! schema of this very release.

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
use clap::Parser;
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// `loadline init`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {
    /// A folder of a project, a jar, or a Dockerfile
    #[arg(value_name = "WHERE", default_value = ".")]
    place: PathBuf,
    /// The page to load, instead of the usual ones: `http://127.0.0.1:{port}/hello`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Write it for this container image instead
    #[arg(long, value_name = "IMAGE", conflicts_with = "place")]
    image: Option<String>,
    /// The file to write [default: NAME.loadline.yaml in the working directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Do not start the server to see where it answers; port and paths are then guesses
    #[arg(long)]
    no_start: bool,
    /// Print no progress on stderr
    #[arg(long, short)]
    quiet: bool,
    /// Arguments of the program, instead of the usual ones; `{port}` stands for its port
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

/// The schema by which an editor checks a scenario file.
pub(super) const SCENARIO_SCHEMA: &str = include_str!("../../docs/scenario.schema.json");
/// The path of the schema, from the folder of the scenario.
const SCHEMA: &str = ".loadline/scenario.schema.json";
const TOOL_USUAL: &str = "docker";

pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let Verb { quiet, .. } = verb;
    let output = Output { quiet, ..Output::default() };
    let session = Session::new(output, call)?;
    let mut progress = Progress::new(quiet);
    let DetectedServer { folder, mut draft, jar } = look(&verb, &session, &mut progress)?;
    let file = verb.out.unwrap_or_else(|| format!("{}{SUFFIX}", draft.name).into());
    if file.exists() && !verb.force {
        return Err(Error::request(format!("{} is there already", file.display()))
            .hint("`--force` writes over it, `--out FILE` writes another"));
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

/// Whether the server answered when it was started once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Started {
    Answered,
    Failed,
    NotTried,
}

/// Finds the subject that is to be weighed.
fn look(verb: &Verb, session: &Session, progress: &mut Progress) -> Result<DetectedServer> {
    let Some(name) = &verb.image else {
        let tools = FoundTool::installed(session.clock);
        return DetectedServer::look(&verb.place, tools.first().map_or(TOOL_USUAL, |tool| tool.tool.word()));
    };
    let port = match image::find(name, session.clock) {
        Ok(found) => found.port,
        Err(error) => {
            progress.warn(&format!("the image was not looked at: {}", error.what));
            None
        }
    };
    Ok(DetectedServer::of_image(name, port))
}

/// Starts it once, and puts into the draft what was learned. A server that does not start leaves the guesses.
fn start(draft: &mut Draft, base: &Path, usual: &Usual, session: &Session, progress: &mut Progress) -> Result<Started> {
    let scenario = read(&draft.text(), base, session)?;
    progress.step("starting it once, to see where it answers (--no-start leaves that out)");
    match ask(&scenario, usual, session, progress) {
        Ok(found) => {
            draft.settle(found);
            Ok(Started::Answered)
        }
        Err(error) if error.kind == ErrorKind::Interrupted => Err(error),
        Err(error) => {
            // Its hint names options that `init` does not have.
            let error = Error { hint: None, ..error };
            progress.warn(&format!(
                "{error}\n\nthe scenario has guesses now: correct its `get:`; if the program takes its port in another \
                 way, give its arguments after `--`, with `{{port}}`"
            ));
            Ok(Started::Failed)
        }
    }
}

/// Starts it where files that it writes are removed with it; in its own folder only if that cannot be had.
fn ask(scenario: &Scenario, usual: &Usual, session: &Session, progress: &mut Progress) -> Result<FirstAnswer> {
    let folder = scenario.subject.dir.as_deref().filter(|_| scenario.subject.image.is_none());
    let Some(folder) = folder else { return first_answer(session, scenario, usual) };
    if let Ok(aside) = linked(folder) {
        let mut elsewhere = scenario.clone();
        elsewhere.subject.dir = Some(aside.path().to_owned());
        return first_answer(session, &elsewhere, usual);
    }
    let before = names(folder);
    let answered = first_answer(session, scenario, usual);
    let new: Vec<String> = names(folder).difference(&before).cloned().collect();
    if !new.is_empty() {
        progress.step(&format!("the server wrote into {}: {}", folder.display(), new.join(", ")));
    }
    answered
}

/// A temporary folder with a link to all that is in this one.
fn linked(folder: &Path) -> Result<WorkFolder> {
    let aside = WorkFolder::create()?;
    let link = || {
        for name in names(folder) {
            symlink(folder.canonicalize()?.join(&name), aside.path().join(name))?;
        }
        Ok(())
    };
    link().map_err(|cause| Error::io("link", folder, &cause))?;
    Ok(aside)
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Reads the scenario as `loadline run` will.
fn read(text: &str, base: &Path, session: &Session) -> Result<Scenario> {
    parse(text, base, &session.releases())
        .map_err(|error| Error { kind: ErrorKind::Bug, ..error }.at("the scenario that `init` wrote"))
}

/// Writes a file, its folder too; over another one only where that is meant.
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
