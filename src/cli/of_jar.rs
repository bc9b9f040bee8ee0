//! A jar that was named instead of a command: how it is started, and where its load goes. Where nobody says so it is
//! started once before all trials.

use super::session::Session;
use crate::beginning::{self, Jar};
use crate::error::{Error, Result};
use crate::report::Progress;
use crate::scenario::{Options, Ready, Scenario, TrialPlan, Url};
use crate::series::machine_now;
use crate::subject::{FirstAnswer, Usual};
use crate::trial;
use std::path::Path;

const HOST: &str = "127.0.0.1";

/// What was typed.
pub(super) struct OfJar<'a> {
    pub(super) path: &'a Path,
    /// Its own arguments.
    pub(super) arguments: &'a [String],
    pub(super) options: &'a Options,
}

impl OfJar<'_> {
    /// The scenario of the jar; its URL is settled, and is part of the command line that repeats the run.
    ///
    /// # Errors
    /// `Request` where it cannot be started; `Subject` where it answers nowhere.
    pub(super) fn scenario(&self, session: &mut Session) -> Result<Scenario> {
        let jar = Jar::read(&self.seen_from_its_folder())?;
        let command = jar.command(self.arguments);
        let told_port = command.iter().any(|word| word.contains("{port}"));
        let asked = self.options.url.as_deref().map(Url::parse).transpose()?;
        match &asked {
            Some(url) if told_port || url.port.is_some() => {
                let scenario = Scenario::of_command(&command, self.options)?;
                return Ok(Scenario { name: jar.name(), ..scenario });
            }
            Some(Url { tls: true, .. }) => return Err(not_told("a free port")),
            None if self.options.load.unix_socket.is_some() => return Err(not_told("a Unix socket")),
            _ => {}
        }
        let host = asked.as_ref().map_or(HOST, |url| url.host.as_str());
        let base = format!("http://{}:{{port}}", in_url(host));
        let usual = Usual {
            pages: asked.as_ref().map_or_else(beginning::pages, |url| vec![url.path.clone()]),
            health: if asked.is_some() { Vec::new() } else { jar.health() },
            told_port,
        };
        let mut progress = Progress::new(session.output.quiet);
        progress.step(&format!("starting {} once, to see where it answers ({})", self.path.display(), jar.kind()));
        let found = first_answer(session, &Scenario::loaded_at(&command, &base, self.options)?, &usual)?;
        let port = if found.told_port { "{port}".to_owned() } else { found.port.to_string() };
        let url = format!("http://{}:{port}{}", in_url(host), found.page);
        progress.step(&said(&found));
        let mut scenario = Scenario::loaded_at(&command, &url, self.options)?;
        scenario.name = jar.name();
        if asked.is_some() {
            // The options, which win, have `{port}` where the port that was found belongs.
            scenario.subject.port = Url::parse(&url)?.port;
        }
        let mut words = vec!["--url".to_owned(), url];
        if let (None, Some(health)) = (&self.options.subject.ready, &found.health) {
            scenario.subject.ready = Ready::Http(health.clone());
            words.extend(["--ready".to_owned(), scenario.subject.ready.to_string()]);
        }
        if asked.is_none() {
            session.settle(&words);
        }
        Ok(scenario)
    }

    /// The jar as the command will see it, which may run in another folder.
    fn seen_from_its_folder(&self) -> std::path::PathBuf {
        match self.options.subject.dir {
            Some(_) => std::path::absolute(self.path).unwrap_or_else(|_| self.path.to_owned()),
            None => self.path.to_owned(),
        }
    }
}

fn not_told(what: &str) -> Error {
    Error::request(format!("how the jar is told {what} is not known"))
        .hint("put it into its arguments, after `--`, and give `--url`; `{port}` stands for a free port there")
}

fn in_url(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// Starts the subject of a scenario once, as its first configuration, and sees where it answers.
///
/// # Errors
/// As [`trial::first_answer`].
pub(super) fn first_answer(session: &Session, scenario: &Scenario, usual: &Usual) -> Result<FirstAnswer> {
    scenario.validate()?;
    let configuration = scenario.configurations.first().ok_or_else(|| Error::bug("no configuration"))?;
    let machine = machine_now(session.clock);
    trial::first_answer(&TrialPlan::of(scenario, configuration), &session.tools(&machine), usual)
}

/// ``loaded: GET /hello on port 8080 (first 200 of /, /hello; `--url` chooses another); ready by GET /health``
fn said(found: &FirstAnswer) -> String {
    let port = if found.told_port { String::new() } else { format!(" on port {}", found.port) };
    let why = match &found.health {
        Some(health) if *health == found.page => format!("{}; `--url` chooses a page that works", found.answered),
        _ => format!("first 200 of {}; `--url` chooses another", found.asked.join(", ")),
    };
    let ready = found.health.as_ref().map_or_else(String::new, |health| format!("; ready by GET {health}"));
    format!("loaded: GET {}{port} ({why}){ready}", found.page)
}
