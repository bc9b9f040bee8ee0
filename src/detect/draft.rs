//! The text of a first scenario: known facts as settings, and unknown ones as comments.

use crate::scenario::Url;
use crate::subject::FirstAnswer;
use crate::units::steers;

/// The parts of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Draft {
    /// Names the scenario and its archives.
    pub name: String,
    /// The path of its schema, relative to the file's directory.
    pub schema: String,
    /// The sources of its facts, one line each.
    pub told: Vec<String>,
    /// The base directory of all paths, relative to the file's directory; empty if it is the same.
    pub dir: String,
    /// How to build the server, if known.
    pub build: Option<Build>,
    /// The command or image to start.
    pub start: Start,
    /// The port that it listens on regardless of options; `None` if `{port}` passes one.
    pub port: Option<u16>,
    /// How that port was found.
    pub port_by: String,
    /// The path of its health check, if that differs from the page.
    pub health: Option<String>,
    /// The page under load.
    pub page: String,
    /// How that page was found.
    pub page_by: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Build {
    /// A command line for `sh`.
    pub command: String,
    /// Whether the scenario has to build the server first.
    pub is_needed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    /// A command; `{jvm}` is inserted after `java`.
    Command(Vec<String>),
    Image(String),
}

impl Default for Start {
    fn default() -> Self {
        Self::Command(Vec::new())
    }
}

/// The text that follows the load; users uncomment the settings that they need.
const BUDGETS: &str = "\
# Budgets: run this file once to get the first numbers, then use each number plus a margin as a bound. If a budget is
# exceeded, the exit code is 1. Confidence intervals need about five trials.
# trials: 5
# budgets: [\"rss_in_use.rested<=300MiB\", \"heap_live.collected<=60MiB\", \"failed==0\"]
";

impl Draft {
    pub(crate) fn text(&self) -> String {
        let schema = comment(&self.schema);
        let told: String = self.told.iter().map(|told| format!("# {}\n", comment(told))).collect();
        let subject: String = self.subject().iter().map(|line| format!("  {line}\n")).collect();
        let (name, page, page_by) = (scalar(&self.name), scalar(&self.page), comment(&self.page_by));
        format!(
            "\
# yaml-language-server: $schema={schema}
#
{told}# Run this file with `loadline run`; the schema describes every key.
name: {name}
subject:
{subject}# To compare two configurations with `loadline compare`, add a second one.
configurations:
  as-is: {{}}
  # serial: {{gc: serial, heap: 128m}}
# The warm-up sends the same requests without measuring them, to compile code and fill pools.
load:
  # {page_by}
  - warmup: {{closed: {{connections: 25, duration: 10s}}, get: {page}}}
  - steady: {{same: warmup}}
  # By the end of an idle phase, the JIT has freed its working memory, so trials differ less.
  - rest: {{idle: 12s}}
{BUDGETS}"
        )
    }

    /// Replaces guessed program arguments with the user's.
    pub(crate) fn take_arguments(&mut self, arguments: &[String]) {
        let Start::Command(words) = &mut self.start else { return };
        if let Some(jar) = words.iter().position(|word| word == "-jar") {
            words.truncate(jar + 2);
        }
        if arguments.iter().any(|word| word.contains("{port}")) {
            words.retain(|word| !word.contains("{port}"));
            self.port = None;
        }
        words.extend_from_slice(arguments);
    }

    /// Replaces the guessed page with the user's; an explicit port becomes the server's port.
    pub(crate) fn take_page(&mut self, url: &Url) {
        self.page_by = "The page that you specified.".to_owned();
        (self.page, self.health) = (url.path.clone(), None);
        if let Some(port) = url.port {
            (self.port, self.port_by) = (Some(port), "The port that you specified.".to_owned());
        }
    }

    /// Replaces guesses with the results of the first start.
    pub(crate) fn settle(&mut self, found: FirstAnswer) {
        self.port = (!found.told_port).then_some(found.port);
        self.port_by = "The port it used when `loadline init` started it.".to_owned();
        self.page_by = match found.is_only_health() {
            true => format!("None of the usual pages returned 200 ({}). Choose one that works.", found.answered),
            false => format!(
                "{} returned 200. Choose a page that does real work.",
                match found.asked.as_slice() {
                    [page] => page.clone(),
                    asked => format!("The first of {} that", asked.join(", ")),
                }
            ),
        };
        (self.health, self.page) = (found.health, found.page);
        if let (Start::Command(words), false) = (&mut self.start, found.told_port) {
            // The port argument had no effect.
            words.retain(|word| !word.contains("{port}"));
        }
    }

    fn subject(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.dir.is_empty() {
            lines.push(format!("dir: {}", scalar(&self.dir)));
        }
        match &self.build {
            Some(Build { command, is_needed: true }) => {
                lines.push("# Runs before the first trial, and again if its inputs changed.".to_owned());
                lines.push(format!("build: {}", scalar(command)));
            }
            Some(Build { command, is_needed: false }) => {
                lines.push("# Builds the server before the first trial, and again if the sources changed:".to_owned());
                lines.push(format!("# build: {}", scalar(command)));
            }
            None => {}
        }
        match &self.start {
            Start::Command(words) => {
                lines.push(
                    "# Loadline replaces `{jvm}` with a configuration's options, and `{port}` with the port."
                        .to_owned(),
                );
                let words = words.iter().map(|word| scalar(word));
                let (mut words, options) = (words.collect::<Vec<_>>(), scalar("{jvm}"));
                words.insert(1.min(words.len()), options);
                lines.push(format!("command: [{}]", words.join(", ")));
            }
            Start::Image(name) => lines.push(format!("image: {}", scalar(name))),
        }
        if let Some(port) = self.port {
            lines.push(format!("# {}", comment(&self.port_by)));
            lines.push(format!("port: {port}"));
        }
        let ready = self.health.as_ref().unwrap_or(&self.page);
        lines.push(format!("ready: {{http: {}, within: 60s}}", scalar(ready)));
        lines
    }
}

/// Text for a comment. Characters that would end its line, or that YAML rejects, become spaces.
fn comment(text: &str) -> String {
    text.chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

/// Words that YAML parses as a different type.
const NOT_TEXT: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A YAML value: plain if unambiguous, otherwise quoted.
fn scalar(text: &str) -> String {
    let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=".contains(c);
    let plain = (begins(text) || text.strip_prefix('-').is_some_and(begins)) && text.chars().all(is_plain);
    if plain && !NOT_TEXT.contains(&text.to_ascii_lowercase().as_str()) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            // Escapes only characters that are unprintable in YAML, to keep text readable.
            _ if steers(c) => quoted.push_str(&format!("\\U{:08x}", c as u32)),
            _ => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::scenario::{PhaseKind, Ready, Scenario, parse};
    use proptest::prelude::*;
    use std::path::Path;

    fn read(draft: &Draft) -> Scenario {
        let text = draft.text();
        parse(&text, Path::new("/base"), &[17]).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn page(scenario: &Scenario) -> &str {
        match &scenario.load[0].kind {
            PhaseKind::Work(work) => &work.request.path,
            other => panic!("{other:?}"),
        }
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn user_arguments_replace_guessed_ones() {
        let after = |words: &[&str], arguments: &[&str]| {
            let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
            let mut draft = Draft { start: Start::Command(owned(words)), port: Some(8080), ..Draft::default() };
            draft.take_arguments(&owned(arguments));
            let Start::Command(words) = draft.start else { panic!("the draft has no command") };
            (words.join(" "), draft.port)
        };
        let jar = ["java", "{jvm}", "-jar", "app.jar", "--server.port={port}"];
        let given = after(&jar, &["--listen", "{port}"]);
        assert_eq!(given, ("java {jvm} -jar app.jar --listen {port}".to_owned(), None));
        // If no argument contains the port, the server keeps its own.
        assert_eq!(after(&jar, &["serve"]), ("java {jvm} -jar app.jar serve".to_owned(), Some(8080)));
        let property = ["java", "{jvm}", "-Dhttp.port={port}", "-jar", "app.jar"];
        assert_eq!(after(&property, &["{port}"]), ("java {jvm} -jar app.jar {port}".to_owned(), None));
    }

    fn draft() -> Draft {
        Draft {
            name: "app".to_owned(),
            schema: ".loadline/scenario.schema.json".to_owned(),
            start: Start::Command(words("java -jar target/app.jar --server.port={port}")),
            page: "/hello".to_owned(),
            page_by: "the first 200 of /, /hello".to_owned(),
            ..Draft::default()
        }
    }

    /// A server with a health check that returns 200 on its second page.
    pub(in crate::detect) fn found(told_port: bool) -> FirstAnswer {
        FirstAnswer {
            port: 9000,
            told_port,
            page: "/greet".to_owned(),
            asked: vec!["/".to_owned(), "/greet".to_owned()],
            answered: "404 on /; 200 on /greet".to_owned(),
            health: Some("/health".to_owned()),
            took: std::time::Duration::ZERO,
        }
    }

    #[test]
    fn detected_settings_replace_guesses() {
        let words = ["java", "-Dquarkus.http.port={port}", "-jar", "a.jar"].map(str::to_owned).to_vec();
        let mut draft = Draft { start: Start::Command(words), ..Draft::default() };
        let found = found(false);
        draft.settle(found.clone());
        let (text, words) = (draft.text(), ["java", "-jar", "a.jar"].map(str::to_owned).to_vec());
        assert_eq!((draft.port, &draft.start), (Some(9000), &Start::Command(words)));
        assert!(text.contains("ready: {http: /health, within: 60s}") && text.contains("get: /greet"), "{text}");
        draft.settle(FirstAnswer { told_port: true, page: "/health".to_owned(), ..found });
        assert!(draft.port.is_none() && draft.page_by.starts_with("None of the usual pages"), "{draft:?}");
    }

    #[test]
    fn a_drafted_command_round_trips_after_the_schema_line() {
        let text = draft().text();
        assert!(text.starts_with("# yaml-language-server: $schema=.loadline/scenario.schema.json\n"), "{text}");
        let scenario = read(&draft());
        let expect = words("java {jvm} -jar target/app.jar --server.port={port}");
        assert_eq!((scenario.subject.command.clone(), page(&scenario)), (expect, "/hello"));
        assert_eq!((scenario.subject.ready, scenario.subject.port), (Ready::Http("/hello".to_owned()), None));
        assert_eq!(scenario.subject.build, None);
    }

    #[test]
    fn an_image_with_port_health_and_build_round_trips() {
        let build = Some(Build { command: "podman build -t 'a b' . # \"x\"".to_owned(), is_needed: true });
        let (health, start) = (Some("/q/health".to_owned()), Start::Image("localhost/app:1".to_owned()));
        let scenario = read(&Draft { build: build.clone(), start, health, port: Some(8080), ..draft() });
        assert_eq!(scenario.subject.ready, Ready::Http("/q/health".to_owned()));
        assert_eq!((scenario.subject.port, scenario.subject.build), (Some(8080), build.map(|build| build.command)));
        assert_eq!(scenario.subject.image.unwrap().name, "localhost/app:1");
    }

    #[test]
    fn commented_out_settings_are_valid() {
        let build = Some(Build { command: "./mvnw -q package".to_owned(), is_needed: false });
        let text = Draft { build, dir: "..".to_owned(), ..draft() }.text();
        let open = ["# build:", "# serial:", "# trials:", "# budgets:"];
        let taken_in = open.iter().fold(text.clone(), |text, line| {
            assert_eq!(text.matches(line).count(), 1, "{line}\n{text}");
            text.replace(line, &line[2..])
        });
        let scenario =
            parse(&taken_in, Path::new("/base"), &[17]).unwrap_or_else(|error| panic!("{error}\n{taken_in}"));
        assert_eq!((scenario.configurations.len(), scenario.trials, scenario.budgets.len()), (2, 5, 3));
        assert_eq!(scenario.subject.build.as_deref(), Some("./mvnw -q package"));
    }

    #[test]
    fn yaml_keywords_are_quoted() {
        let words = [
            "true", "No", "null", "~", "1.10", "-1", ".inf", "0x1f", "a: b", "[x", "{port}", "*a", "&a", "!t", "#c",
            "a #c", "'q'", "\"", "\\", "", " ", "-", "---", "%a", "@a", "`a`", "<<", "=", "a\nb",
        ];
        for word in words.into_iter().chain(["\u{85}é😀"]) {
            let start = Start::Command(vec!["java".to_owned(), word.to_owned()]);
            assert_eq!(read(&Draft { start, ..draft() }).subject.command[2], word, "{word:?}");
        }
    }

    #[test]
    fn characters_not_printable_in_yaml_round_trip() {
        let text = "a\u{ffff}\u{fffe}\u{feff}\u{85}\u{2028}\u{202e}\u{7}z".to_owned();
        let start = Start::Command(vec!["java".to_owned(), text.clone()]);
        let scenario = read(&Draft { start, told: vec![text.clone()], page_by: text.clone(), ..draft() });
        assert_eq!(scenario.subject.command.last(), Some(&text));
    }

    proptest! {
        #[test]
        fn any_text_in_a_draft_round_trips(text in "\\PC{0,20}|(?s).{0,20}", told in "(?s).{0,30}") {
            let start = Start::Command(vec!["java".to_owned(), "-jar".to_owned(), text.clone()]);
            let scenario = read(&Draft { start, told: vec![told.clone()], page_by: told.clone(), ..draft() });
            prop_assert_eq!(&scenario.subject.command[3], &text);
        }
    }
}
