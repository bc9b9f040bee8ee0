//! A Dockerfile (Dockerfile reference, BuildKit 1): the ports and the command of the last stage.
//!
//! ```text
//! FROM eclipse-temurin:21-jre
//! EXPOSE 8080/tcp
//! ENTRYPOINT ["java", "-jar", "/app.jar"]
//! ```

use crate::error::{Error, Result};

/// The facts in a Dockerfile about its server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Dockerfile {
    /// The first port of the last stage; `None` if there is none, or it is a variable.
    pub port: Option<u16>,
    /// The command line, if written as a list.
    pub starts: Vec<String>,
    /// Whether a shell between the container and its JVM keeps SIGTERM from the JVM.
    pub through_shell: bool,
}

impl Dockerfile {
    /// Parses a Dockerfile. Errors: `Request` if it has no `FROM`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (mut stage, mut entrypoint, mut command) = (None::<Self>, None::<Started>, None::<Started>);
        for line in instructions(text) {
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
            let rest = rest.trim();
            match (word.to_ascii_uppercase().as_str(), &mut stage) {
                ("FROM", stage) => (*stage, entrypoint, command) = (Some(Self::default()), None, None),
                ("EXPOSE", Some(stage)) => stage.port = stage.port.or_else(|| port(rest)),
                ("ENTRYPOINT", Some(_)) => (entrypoint, command) = (Some(Started::parse(rest)), None),
                ("CMD", Some(_)) => command = Some(Started::parse(rest)),
                _ => {}
            }
        }
        let mut stage = stage.ok_or_else(|| Error::request("it is not a Dockerfile: it has no `FROM`"))?;
        // An entrypoint in shell form ignores CMD and arguments.
        let shell = |of: &Option<Started>| matches!(of, Some(Started::ByShell));
        stage.through_shell = shell(&entrypoint) || (entrypoint.is_none() && shell(&command));
        let words = [entrypoint, command].into_iter().flatten().flat_map(Started::words);
        stage.starts = if stage.through_shell { Vec::new() } else { words.collect() };
        Ok(stage)
    }
}

/// The form of ENTRYPOINT or CMD.
enum Started {
    /// `["java", "-jar", "app.jar"]`
    Words(Vec<String>),
    /// `java -jar app.jar`
    ByShell,
}

impl Started {
    fn parse(text: &str) -> Self {
        serde_json::from_str(text).map_or(Self::ByShell, Self::Words)
    }

    fn words(self) -> Vec<String> {
        match self {
            Self::Words(words) => words,
            Self::ByShell => Vec::new(),
        }
    }
}

/// `8080` in `8080/tcp 9000`; UDP ports do not carry HTTP/1.1.
fn port(text: &str) -> Option<u16> {
    let first = text.split_whitespace().find(|word| !word.ends_with("/udp"))?;
    first.trim_end_matches("/tcp").parse().ok().filter(|port| *port > 0)
}

/// Instructions with `\` continuations joined and comments removed.
fn instructions(text: &str) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), String::new());
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        match line.strip_suffix('\\') {
            Some(begun) => open.push_str(begun),
            None => {
                open.push_str(line);
                found.push(std::mem::take(&mut open));
            }
        }
    }
    found.push(open);
    found.retain(|line| !line.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_dockerfile_stage_counts() {
        let text = "FROM maven AS build\nEXPOSE 1\nCMD mvn\nFROM jre\n# EXPOSE 2\nexpose 53/udp 8080/tcp\n\
                    ENTRYPOINT [\"java\", \\\n  # why\n  \"-jar\", \"/a b.jar\"]\nCMD [\"--x\"]\n";
        let found = Dockerfile::parse(text).unwrap();
        assert_eq!((found.port, found.through_shell), (Some(8080), false));
        assert_eq!(found.starts, ["java", "-jar", "/a b.jar", "--x"]);
        for cut in 0..text.len() {
            let _ = Dockerfile::parse(&text[..cut]);
        }
    }

    #[test]
    fn a_shell_entrypoint_is_noted_and_a_variable_port_ignored() {
        let found = Dockerfile::parse("FROM jre\nEXPOSE $PORT\nENTRYPOINT java -jar app.jar\nCMD [\"x\"]\n").unwrap();
        assert_eq!(found, Dockerfile { port: None, starts: Vec::new(), through_shell: true });
        assert!(Dockerfile::parse("EXPOSE 8080\n").unwrap_err().what.contains("no `FROM`"));
        assert!(Dockerfile::parse("").is_err());
    }
}
