//! A jar given instead of a command, and the address of its load. If the user gave no address, the jar is started
//! once before all trials: this module plans the requests, and applies the first response.

use super::jar::Jar;
use super::pages;
use crate::error::{Error, Result};
use crate::scenario::{Ready, Scenario, ScenarioOptions, Url, bracketed};
use crate::subject::{FirstAnswer, Usual};
use std::path::{Path, PathBuf};

const HOST: &str = "127.0.0.1";

#[derive(Debug, Clone, Copy)]
pub(crate) struct TypedJar<'a> {
    pub path: &'a Path,
    pub arguments: &'a [String],
    /// The other command-line options.
    pub options: &'a ScenarioOptions,
}

/// The address of a jar's load.
#[derive(Debug)]
pub(crate) enum JarTarget {
    /// Given by the user.
    Known(Box<Scenario>),
    /// The jar's first response will show it.
    ToDetect(Box<Detection>),
}

/// A jar whose address was not given; a first start finds it.
#[derive(Debug)]
pub(crate) struct Detection {
    /// The scenario for the first start; the first response settles the rest.
    pub scenario: Scenario,
    /// A description of the jar.
    pub kind: String,
    /// The requests to send.
    pub usual: Usual,
    /// As written in a URL.
    host: String,
    has_page: bool,
    /// Whether the user specified the readiness check.
    has_sign: bool,
}

/// The result of the first response.
#[derive(Debug)]
pub(crate) struct Detected {
    /// The jar's scenario.
    pub scenario: Scenario,
    /// The equivalent command-line options; empty if the user already gave them.
    pub words: Vec<String>,
}

impl TypedJar<'_> {
    /// The address of its load. Errors: `Request` if the jar cannot be started, or if there is no known way to pass the
    /// requested port or socket.
    pub(crate) fn target(self) -> Result<JarTarget> {
        let jar = Jar::read(&self.seen_from_its_folder())?;
        let command = jar.command(self.arguments);
        let told_port = command.iter().any(|word| word.contains("{port}"));
        let asked = self.options.url.as_deref().map(Url::parse).transpose()?;
        if let (Some(typed), Some(url)) = (&self.options.url, &asked)
            && !told_port
            && !url.names_port(typed)
        {
            return Err(without_port(typed, url));
        }
        match &asked {
            Some(url) if told_port || url.port.is_some() => {
                let scenario = Scenario::of_command(&command, self.options)?;
                return Ok(JarTarget::Known(Box::new(Scenario { name: jar.name(), ..scenario })));
            }
            Some(Url { tls: true, .. }) => return Err(not_told("a free port")),
            None if self.options.load.unix_socket.is_some() => return Err(not_told("a Unix socket")),
            _ => {}
        }
        let host = bracketed(asked.as_ref().map_or(HOST, |url| url.host.as_str()));
        let scenario = Scenario::loaded_at(&command, &format!("http://{host}:{{port}}"), self.options)?;
        Ok(JarTarget::ToDetect(Box::new(Detection {
            scenario: Scenario { name: jar.name(), ..scenario },
            kind: jar.kind(),
            usual: Usual {
                pages: asked.as_ref().map_or_else(pages, |url| vec![url.path.clone()]),
                health: if asked.is_some() { Vec::new() } else { jar.health() },
                told_port,
            },
            host,
            has_page: asked.is_some(),
            has_sign: self.options.subject.ready.sign.is_some(),
        })))
    }

    /// The jar's path from the command's directory.
    fn seen_from_its_folder(&self) -> PathBuf {
        match self.options.subject.dir {
            Some(_) => std::path::absolute(self.path).unwrap_or_else(|_| self.path.to_owned()),
            None => self.path.to_owned(),
        }
    }
}

impl Detection {
    /// Completes the scenario from the first response. Errors: `Request` if an option does not fit.
    pub(crate) fn settle(self, found: &FirstAnswer) -> Result<Detected> {
        let Self { mut scenario, host, .. } = self;
        scenario.subject.port = (!found.told_port).then_some(found.port);
        if self.has_page {
            return Ok(Detected { scenario, words: Vec::new() });
        }
        let port = if found.told_port { "{port}".to_owned() } else { found.port.to_string() };
        let url = format!("http://{host}:{port}{}", found.page);
        scenario.change(&ScenarioOptions { url: Some(url.clone()), ..ScenarioOptions::default() })?;
        let mut words = vec!["--url".to_owned(), url];
        if !self.has_sign {
            scenario.subject.ready = Ready::Http(found.health.as_ref().unwrap_or(&found.page).clone());
            if found.health.is_some() {
                words.extend(["--ready".to_owned(), scenario.subject.ready.to_string()]);
            }
        }
        Ok(Detected { scenario, words })
    }
}

/// Rejects a URL without a port; if the jar does listen on port 80, the user can specify that port.
fn without_port(typed: &str, url: &Url) -> Error {
    let Url { tls, host, path, .. } = url;
    let scheme = if *tls { "https" } else { "http" };
    Error::request(format!("the URL `{typed}` has no port for the jar to listen on")).hint(format!(
        "use `--url '{scheme}://{}:{{port}}{path}'`, or write the port that the jar uses",
        bracketed(host)
    ))
}

fn not_told(what: &str) -> Error {
    Error::request(format!("Loadline does not know how to pass {what} to the jar"))
        .hint("put it in the arguments after `--`, and specify `--url`; `{port}` stands for a free port")
}

/// ``loaded: GET /hello on port 8080 (first of /, /hello to return 200; `--url` chooses another); ready when GET
/// /health succeeds``
pub(crate) fn describe(found: &FirstAnswer) -> String {
    let port = if found.told_port { String::new() } else { format!(" on port {}", found.port) };
    let why = match found.is_only_health() {
        true => format!("{}; `--url` chooses a page that works", found.answered),
        false => format!("first of {} to return 200; `--url` chooses another", found.asked.join(", ")),
    };
    let ready = found.health.as_ref().map_or_else(String::new, |health| format!("; ready when GET {health} succeeds"));
    format!("loaded: GET {}{port} ({why}){ready}", found.page)
}

#[cfg(test)]
mod tests {
    use super::super::draft::tests::found;
    use super::super::jar::tests::jar;
    use super::*;

    fn goes<R>(manifest: &str, options: &ScenarioOptions, then: impl FnOnce(Result<JarTarget>) -> R) -> R {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.jar");
        std::fs::write(&path, jar(manifest, &[])).unwrap();
        then(TypedJar { path: &path, arguments: &[], options }.target())
    }

    fn sought(manifest: &str, options: &ScenarioOptions, found: &FirstAnswer) -> Detected {
        goes(manifest, options, |goes| match goes.unwrap() {
            JarTarget::ToDetect(sought) => sought.settle(found).unwrap(),
            JarTarget::Known(told) => panic!("{told:?}"),
        })
    }

    const PLAIN: &str = "Main-Class: a.B\n";
    const SPRING: &str = "Main-Class: x.JarLauncher\nSpring-Boot-Version: 3.4.1\n";

    #[test]
    fn the_first_response_determines_the_url_and_readiness_check() {
        let options = ScenarioOptions::default();
        let Detected { scenario, words } = sought(PLAIN, &options, &found(false));
        assert_eq!(words, ["--url", "http://127.0.0.1:9000/greet", "--ready", "http:/health"]);
        assert_eq!((scenario.name.as_str(), scenario.subject.port), ("app", Some(9000)));
        assert_eq!(scenario.subject.ready, Ready::Http("/health".to_owned()));
        let Detected { scenario, words } = sought(SPRING, &options, &found(true));
        assert_eq!((words[1].as_str(), scenario.subject.port), ("http://127.0.0.1:{port}/greet", None));
        let said = describe(&found(false));
        let expect = "loaded: GET /greet on port 9000 (first of /, /greet to return 200; `--url` chooses another); \
                      ready when GET /health succeeds";
        assert_eq!(said, expect);
    }

    #[test]
    fn only_the_requested_page_is_tried() {
        let options = ScenarioOptions { url: Some("http://[::1]:{port}/own".to_owned()), ..ScenarioOptions::default() };
        let usual = goes(PLAIN, &options, |goes| match goes.unwrap() {
            JarTarget::ToDetect(sought) => sought.usual,
            JarTarget::Known(told) => panic!("{told:?}"),
        });
        assert_eq!(usual, Usual { pages: vec!["/own".to_owned()], health: Vec::new(), told_port: false });
        let Detected { scenario, words } = sought(PLAIN, &options, &found(false));
        assert_eq!((words, scenario.subject.port, scenario.subject.host.as_str()), (Vec::new(), Some(9000), "::1"));
    }

    #[test]
    fn given_settings_are_not_detected_and_unusable_ones_rejected() {
        let of = |url: &str| ScenarioOptions { url: Some(url.to_owned()), ..ScenarioOptions::default() };
        for (manifest, url) in [(PLAIN, "http://127.0.0.1:8080/"), (SPRING, "http://127.0.0.1:{port}/")] {
            goes(manifest, &of(url), |goes| assert!(matches!(goes.unwrap(), JarTarget::Known(_)), "{url}"));
        }
        goes(PLAIN, &of("https://127.0.0.1:{port}/"), |goes| {
            assert_eq!(goes.unwrap_err().what, "Loadline does not know how to pass a free port to the jar");
        });
    }
}
