//! A load without a subject: phases from a file or the default, modified by options.

use super::load_file::parse_load;
use super::load_options::{change_paths, change_phases};
use super::load_settings::{LoadOptions, usual_work};
use super::{Method, Phase, PhaseKind, Request, Server, Url, defaults, validate_load};
use crate::error::{Error, Result};
use std::path::Path;

/// A load on a running server.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadAlone {
    /// The server.
    pub server: Server,
    /// The phases; at least one does work.
    pub load: Vec<Phase>,
    /// Seed of all random choices.
    pub seed: u64,
}

/// A file with load phases.
#[derive(Debug, Clone, Copy)]
pub struct PhasesFile<'a> {
    /// The file's path; relative paths in it are resolved against its directory.
    pub path: &'a Path,
    /// The file's content.
    pub text: &'a str,
}

impl LoadAlone {
    /// The load from options, applied to a file's phases if there is one. Errors: `Request` for a URL without a port,
    /// an option that does not fit, or phases that are not driven by the engine.
    pub fn of(url: &str, file: Option<PhasesFile<'_>>, typed: &LoadOptions) -> Result<Self> {
        let url = Url::parse(url)?;
        if url.port.is_none() {
            return Err(Error::request(
                "`{port}` stands for a free port, so it works only if Loadline starts the server",
            )
            .hint("write the port on which the server listens"));
        }
        let mut server = Server::of(&url);
        server.change(typed)?;
        let (mut load, seed) = match file {
            Some(file) => planned(file, &url)?,
            None => (usual(&url), None),
        };
        change_phases(&mut load, typed)?;
        validate_load(&load)?;
        refuse_drivers(&load)?;
        Ok(Self { server, load, seed: typed.seed.or(seed).unwrap_or(defaults::SEED) })
    }
}

/// A file's phases. A path in the URL replaces their paths, unless it is empty or the root.
fn planned(file: PhasesFile<'_>, url: &Url) -> Result<(Vec<Phase>, Option<u64>)> {
    let PhasesFile { path, text } = file;
    let at = |error: Error| error.at(format!("plan: {}", path.display()));
    let base = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (mut load, seed) = parse_load(text, base).map_err(at)?;
    if !load.iter().any(|phase| phase.kind.works()) {
        return Err(at(Error::request("the plan has no load phase")));
    }
    if url.path != "/" {
        change_paths(&mut load, &url.path)?;
    }
    Ok((load, seed))
}

/// A phase with default settings.
fn usual(url: &Url) -> Vec<Phase> {
    let work = usual_work(Request::new(Method::Get, url.path.clone()));
    vec![Phase::new("steady", PhaseKind::Work(work))]
}

fn refuse_drivers(load: &[Phase]) -> Result<()> {
    let done_by = |phase: &Phase| match phase.kind {
        PhaseKind::Driver(_) => Some("another program"),
        PhaseKind::Own(_) => Some("the server itself"),
        PhaseKind::Work(_) | PhaseKind::Idle(_) => None,
    };
    match load.iter().find_map(|phase| Some((phase, done_by(phase)?))) {
        Some((phase, whom)) => Err(Error::request(format!("phase {} is driven by {whom}", phase.name))
            .hint("`loadline load` only runs the load generator; `loadline run` runs such phases")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::load_settings::typed;
    use super::*;

    fn alone(url: &str, text: Option<&str>, words: &str) -> Result<LoadAlone> {
        LoadAlone::of(url, text.map(|text| PhasesFile { path: Path::new("/x/a.yaml"), text }), &typed(words))
    }

    #[test]
    fn options_override_a_file_and_a_file_overrides_defaults() {
        let usual = alone("http://127.0.0.1:8080/a", None, "").unwrap();
        assert_eq!((usual.load.len(), usual.seed, usual.server.authority()), (1, 1, "127.0.0.1:8080".to_owned()));
        let file = "seed: 7\nload: [{a: {closed: {requests: 9}, post: /b, body: {file: b.txt}}}, {rest: {idle: 1s}}]\n";
        let of = |url: &str, words: &str| {
            let asked = alone(url, Some(file), words).unwrap();
            let work = asked.load[0].kind.work().unwrap();
            (work.request.path.clone(), work.schedule.to_string(), asked.seed)
        };
        let expect = |path: &str, schedule: &str, seed| (path.to_owned(), schedule.to_owned(), seed);
        assert_eq!(of("http://h:1/", ""), expect("/b", "closed, 25 connections, 9 requests", 7));
        assert_eq!(of("http://h:1/c", "-n 3 --seed 8"), expect("/c", "closed, 25 connections, 3 requests", 8));
    }

    #[test]
    fn invalid_standalone_loads_are_rejected() {
        let check = |url: &str, text: Option<&str>, expect: &str| {
            let error = alone(url, text, "").unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check("http://127.0.0.1:{port}/", None, "only if Loadline starts the server");
        check("http://h:1/", Some("load: [{a: {driver: wrk}}]"), "driven by another program");
        check("http://h:1/", Some("load: [{a: {phases: [x]}}]"), "driven by the server itself");
        check("http://h:1/", Some("load: [{a: {idle: 1s}}]"), "no load phase");
        check("http://h:1/", Some("laod: []"), "plan: /x/a.yaml");
    }
}
