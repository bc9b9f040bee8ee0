//! `pom.xml` (Maven 3, model version 4.0.0), reduced to what the build creates: names, modules, plugins, and
//! dependencies. Values from an external parent are not inherited.
//!
//! ```text
//! <project>
//!   <parent><artifactId>spring-boot-starter-parent</artifactId><version>3.4.1</version></parent>
//!   <artifactId>shop</artifactId><version>1.2</version>
//!   <build><finalName>shop</finalName></build>
//! </project>
//! ```

use super::{Framework, Project};
use crate::error::{Error, Result};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::BTreeMap;

/// Deeper than any Maven model.
const DEPTH_MAX: usize = 64;
/// Levels of properties that refer to other properties.
const RESOLVED_MAX: usize = 8;

/// A file's text by element path below `project`.
#[derive(Default)]
struct Texts {
    by_path: BTreeMap<String, String>,
    modules: Vec<String>,
    artifacts: Vec<String>,
}

/// Parses a `pom.xml`. Errors: `Request` if it is not XML, or not a project.
pub(crate) fn of_maven(text: &str) -> Result<Project> {
    let texts = Texts::read(text)?;
    let get = |path: &str| texts.by_path.get(path).map(|value| texts.resolve(value));
    let Some(artifact) = get("artifactId").filter(|artifact| !artifact.is_empty()) else {
        return Err(Error::request("it is not a Maven project: `project` has no `artifactId`"));
    };
    let framework = Framework::of_artifacts(texts.artifacts.iter().map(String::as_str));
    let version = get("version").or_else(|| get("parent/version"));
    let usual = version.map(|version| format!("{artifact}-{version}"));
    let name = get("build/finalName").or(usual);
    let end = get("packaging").unwrap_or_else(|| "jar".to_owned());
    let makes = match framework {
        Some(Framework::Quarkus) => Some("target/quarkus-app/quarkus-run.jar".to_owned()),
        _ => name.map(|name| format!("target/{name}.{end}")).filter(|jar| !jar.contains("${")),
    };
    let health = texts.artifacts.iter().find_map(|artifact| framework?.health_by(artifact));
    Ok(Project { name: artifact, makes, task: "-DskipTests package", framework, health, parts: texts.modules })
}

impl Texts {
    fn read(text: &str) -> Result<Self> {
        let mut reader = Reader::from_str(text);
        let (mut texts, mut path, mut value) = (Self::default(), Vec::<String>::new(), String::new());
        loop {
            let at = reader.buffer_position();
            let refuse = |why: &str| {
                let line = text.get(..at as usize).map_or(1, |before| before.matches('\n').count() + 1);
                Error::request(format!("line {line}: it is not XML: {why}"))
            };
            match reader.read_event().map_err(|cause| refuse(&cause.to_string()))? {
                Event::Start(element) => {
                    path.push(element.local_name().as_ref().to_owned());
                    value.clear();
                    if path.len() > DEPTH_MAX {
                        return Err(refuse("its elements are nested too deeply"));
                    }
                }
                Event::Text(words) => value.push_str(&words.xml10_content()),
                Event::CData(words) => value.push_str(&words.xml10_content()),
                Event::GeneralRef(name) => match name.resolve_char_ref() {
                    Ok(Some(c)) => value.push(c),
                    _ => value.push_str(quick_xml::escape::resolve_predefined_entity(&name).unwrap_or_default()),
                },
                Event::End(_) => {
                    texts.take(&path, value.trim());
                    path.pop();
                    value.clear();
                }
                Event::Eof if path.is_empty() => return Ok(texts),
                Event::Eof => return Err(refuse(&format!("it ends within `{}`", path.join("/")))),
                _ => {}
            }
        }
    }

    fn take(&mut self, path: &[String], value: &str) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let Some(("project", below)) = path.split_first().map(|(first, below)| (*first, below)) else { return };
        match below {
            ["modules", "module"] => self.modules.push(value.to_owned()),
            ["artifactId" | "version" | "packaging"] | ["properties", _] | ["build", "finalName"] => {
                self.by_path.insert(below.join("/"), value.to_owned());
            }
            ["parent", "version"] => drop(self.by_path.insert(below.join("/"), value.to_owned())),
            ["parent", "artifactId"]
            | ["build", "plugins", "plugin", "artifactId"]
            | ["dependencies", "dependency", "artifactId"] => self.artifacts.push(value.to_owned()),
            _ => {}
        }
    }

    /// Replaces properties that the file defines.
    fn resolve(&self, value: &str) -> String {
        let mut value = value.to_owned();
        for _ in 0..RESOLVED_MAX {
            let Some((before, rest)) = value.split_once("${") else { break };
            let Some((name, after)) = rest.split_once('}') else { break };
            let own = name.strip_prefix("project.").map_or_else(|| format!("properties/{name}"), str::to_owned);
            let inherited = || self.by_path.get(&format!("parent/{own}"));
            let Some(found) = self.by_path.get(&own).or_else(inherited) else { break };
            value = format!("{before}{found}{after}");
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPRING: &str = "<?xml version=\"1.0\"?>\n<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n\
        <parent><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-parent</artifactId>\
        <version>3.4.1</version></parent>\n<artifactId>shop</artifactId><version>${revision}</version>\n\
        <properties><revision>1.2</revision></properties>\n<dependencies><dependency>\
        <artifactId>spring-boot-starter-actuator</artifactId></dependency></dependencies>\n</project>\n";

    #[test]
    fn a_maven_project_gives_its_jar_framework_and_health_path() {
        let pom = of_maven(SPRING).unwrap();
        assert_eq!((pom.name.as_str(), pom.makes.as_deref()), ("shop", Some("target/shop-1.2.jar")));
        assert_eq!((pom.framework, pom.health), (Some(Framework::SpringBoot), Some("/actuator/health")));
        let of = |inside: &str| of_maven(&format!("<project><artifactId>a</artifactId>{inside}</project>")).unwrap();
        let named = of("<build><finalName>x &amp; y</finalName></build><packaging>war</packaging>");
        assert_eq!(named.makes.as_deref(), Some("target/x & y.war"));
        assert_eq!(of("<version>${elsewhere}</version>").makes, None);
        assert_eq!(
            of("<version>${version}</version><properties><version>${version}</version></properties>").makes,
            None
        );
        let quarkus =
            of("<build><plugins><plugin><artifactId>quarkus-maven-plugin</artifactId></plugin></plugins></build>");
        assert_eq!(quarkus.makes.as_deref(), Some("target/quarkus-app/quarkus-run.jar"));
        assert_eq!(of("<modules><module>api</module><module>web</module></modules>").parts, ["api", "web"]);
    }

    #[test]
    fn an_invalid_pom_is_rejected() {
        let refused = |text: &str| of_maven(text).unwrap_err().what;
        assert!(refused("<settings/>").contains("no `artifactId`"));
        assert!(refused("<project>\n<artifactId>a</project>").contains("line 2: it is not XML"));
        assert!(refused("<project>").contains("it ends within `project`"));
        assert!(refused(&"<a>".repeat(100_000)).contains("nested too deeply"));
        // DTDs are ignored, so an entity cannot expand.
        let bomb =
            "<!DOCTYPE p [<!ENTITY a \"xx\"><!ENTITY b \"&a;&a;\">]><project><artifactId>&b;</artifactId></project>";
        assert!(of_maven(bomb).is_err());
    }

    #[test]
    fn a_truncated_pom_does_not_panic() {
        for cut in 0..SPRING.len() {
            let _ = of_maven(&SPRING[..cut]);
        }
    }

    proptest! {
        #[test]
        fn a_damaged_pom_does_not_panic(at in 0usize..400, put in "[<>&;!\\-\\[\\]/\"a\u{e9}]{1,4}") {
            let at = at.min(SPRING.len());
            let _ = of_maven(&format!("{}{put}{}", &SPRING[..at], &SPRING[at..]));
        }
    }
}
