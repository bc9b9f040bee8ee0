//! The requested container image: the tool that has it, its command, and its environment.
//!
//! `podman image inspect NAME` (4.3.1) and `docker image inspect NAME` (20.10) print a list with one element: `[{"Id":
//! "sha256:2474…", "Config": {"Env": ["A=b"], "Entrypoint": ["java"], "Cmd": null}}]`

use super::container_tool::{FoundTool, Tool};
use super::launch_image::TOOL_OPTIONS;
use crate::clock::Clock;
use crate::error::{Error, Result};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// Options that an image uses to set the heap.
const OF_HEAP: [&str; 5] = ["-Xmx", "-XX:MaxHeapSize=", "-XX:MaxRAMPercentage=", "-XX:MaxRAMFraction=", "-XX:MaxRAM="];
/// Variables that override `JAVA_TOOL_OPTIONS`.
const WINNERS: [&str; 2] = ["JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];

/// A local image.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundImage {
    /// The tool that has the image and runs it.
    pub tool: FoundTool,
    /// The image's name, as requested.
    pub name: String,
    /// The digest of the image's contents.
    pub id: String,
    /// The variables that the image sets.
    pub env: Vec<(String, String)>,
    /// The start of the command line, which arguments do not replace.
    pub entrypoint: Vec<String>,
    /// Default arguments.
    pub command: Vec<String>,
    /// The lowest TCP port that it exposes.
    pub port: Option<u16>,
}

impl FoundImage {
    /// Heap options in its command line, which override `JAVA_TOOL_OPTIONS`; `arguments` replace its command.
    pub fn heap_options(&self, arguments: &[String]) -> Vec<String> {
        let command = if arguments.is_empty() { &self.command } else { arguments };
        let values = self.env.iter().filter(|(name, _)| WINNERS.contains(&name.as_str()));
        let values = values.flat_map(|(_, value)| value.split_ascii_whitespace());
        // A shell receives its whole command line as one word.
        let words = self.entrypoint.iter().chain(command).flat_map(|word| word.split_ascii_whitespace());
        let of_heap = |word: &&str| OF_HEAP.iter().any(|head| word.starts_with(head));
        words.chain(values).filter(of_heap).map(str::to_owned).collect()
    }

    /// The image's `JAVA_TOOL_OPTIONS`, or an empty string.
    pub fn tool_options(&self) -> &str {
        self.variable(TOOL_OPTIONS)
    }

    /// The value of a variable, or an empty string.
    pub(super) fn variable(&self, name: &str) -> &str {
        let set = self.env.iter().rev().find(|(known, _)| known == name);
        set.map(|(_, value)| value.as_str()).unwrap_or_default()
    }
}

/// Finds a local image with the first tool that has it; never pulls. Errors: `Machine` if there is no tool, none works,
/// or none has the image.
pub(crate) fn find(name: &str, clock: Clock) -> Result<FoundImage> {
    let tools = FoundTool::installed(clock);
    if tools.is_empty() {
        return Err(Error::machine("no container tool found: neither `podman` nor `docker` is on PATH")
            .hint("install podman, or start the server without an image: `-- java -jar app.jar`"));
    }
    let mut refusals = Vec::new();
    let mut working = None;
    for tool in tools {
        let inspected = tool.ask(&["image", "inspect", name]);
        if let Some(found) = parse(&inspected.out).filter(|_| inspected.is_good()) {
            return Ok(found.of(tool, name));
        }
        match tool.probe() {
            Ok(_) => {
                refusals.push(format!("{} has no image with that name: {}", tool.tool.word(), inspected.why()));
                working = working.or(Some(tool.tool));
            }
            Err(why) => refusals.push(format!("{} does not work: {why}", tool.tool.word())),
        }
    }
    Err(missing(name, working, refusals))
}

fn missing(name: &str, working: Option<Tool>, refusals: Vec<String>) -> Error {
    let what = match working {
        Some(_) => format!("the image `{name}` is not on this machine"),
        None => "no container tool works on this machine".to_owned(),
    };
    let hint = match working.map(Tool::word) {
        Some(tool) => format!("pull it first: `{tool} pull {name}`; Loadline does not download images"),
        None => "start its daemon (`systemctl start docker`), or install podman, which needs no daemon".to_owned(),
    };
    refusals.into_iter().fold(Error::machine(what), Error::at).hint(hint)
}

/// The part of the inspection's output that is needed.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Inspected {
    id: String,
    config: Option<Config>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Config {
    env: Option<Vec<String>>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    exposed_ports: Option<BTreeMap<String, IgnoredAny>>,
}

impl Inspected {
    fn of(self, tool: FoundTool, name: &str) -> FoundImage {
        let config = self.config.unwrap_or_default();
        let ports = config.exposed_ports.unwrap_or_default();
        let ports = ports.keys().filter_map(|name| name.strip_suffix("/tcp")?.parse().ok());
        let pair = |text: String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        FoundImage {
            tool,
            name: name.to_owned(),
            id: self.id,
            env: config.env.unwrap_or_default().into_iter().filter_map(pair).collect(),
            entrypoint: config.entrypoint.unwrap_or_default(),
            command: config.cmd.unwrap_or_default(),
            port: ports.min(),
        }
    }
}

fn parse(text: &str) -> Option<Inspected> {
    let mut list: Vec<Inspected> = serde_json::from_str(text).ok()?;
    (!list.is_empty()).then(|| list.swap_remove(0)).filter(|inspected| !inspected.id.is_empty())
}

#[cfg(test)]
pub(super) fn sample(entrypoint: &[&str], command: &[&str], env: &[(&str, &str)]) -> FoundImage {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    FoundImage {
        tool: super::container_tool::sample(),
        name: "app:1".to_owned(),
        id: "sha256:01".to_owned(),
        env: env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
        entrypoint: words(entrypoint),
        command: words(command),
        port: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"[ { "Id": "sha256:2474", "RepoTags": ["app:1"], "Config": { "ExposedPorts": {"80/tcp": {}},
        "Env": ["PATH=/bin", "A=b=c", "é"], "Cmd": ["18080"], "Entrypoint": ["java", "-cp", "/x"] }, "Size": 1 } ]"#;

    #[test]
    fn an_image_inspection_is_parsed() {
        let found = parse(TEXT).unwrap().of(super::super::container_tool::sample(), "app:1");
        assert_eq!(
            (found.id.as_str(), found.entrypoint.len(), found.command.as_slice()),
            ("sha256:2474", 3, &["18080".to_owned()][..])
        );
        assert_eq!(found.port, Some(80));
        assert_eq!(found.env, [("PATH", "/bin"), ("A", "b=c")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        let bare = parse(r#"[{"Id":"1","Config":{"Env":null,"Cmd":null,"Entrypoint":null}},{}]"#).unwrap();
        assert_eq!(bare.config, Some(Config::default()));
        assert_eq!((parse("[]"), parse("[{}]"), parse("")), (None, None, None));
    }

    #[test]
    fn a_truncated_image_inspection_is_rejected() {
        for end in (0..TEXT.len()).filter(|&end| TEXT.is_char_boundary(end)) {
            assert_eq!(parse(&TEXT[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_heap_set_by_the_image_is_detected() {
        let check = |entrypoint: &[&str], env: &[(&str, &str)], arguments: &[&str], expect: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(sample(entrypoint, &["-Xmx9m"], env).heap_options(&arguments), expect);
        };
        check(&["java", "-Xmx64m", "-jar"], &[], &["x"], &["-Xmx64m"]);
        check(&["java"], &[], &[], &["-Xmx9m"]);
        check(&["sh", "-c", "exec java -XX:MaxRAMPercentage=75 -jar x"], &[], &["x"], &["-XX:MaxRAMPercentage=75"]);
        check(&["java"], &[("JDK_JAVA_OPTIONS", "-Da=b -Xmx1g")], &["x"], &["-Xmx1g"]);
        // Loadline's value is appended to this one, so it wins.
        check(&["java"], &[("JAVA_TOOL_OPTIONS", "-Xmx1g")], &["x"], &[]);
    }

    #[test]
    fn a_missing_image_or_tool_has_a_specific_hint() {
        let error = missing("app:1", Some(Tool::Docker), vec!["docker has none".to_owned()]);
        assert_eq!(error.what, "the image `app:1` is not on this machine");
        assert!(error.hint.unwrap().starts_with("pull it first: `docker pull app:1`"));
        let error = missing("app:1", None, vec!["docker does not work: no daemon".to_owned()]);
        assert_eq!((error.what.as_str(), error.context.len()), ("no container tool works on this machine", 1));
    }
}
