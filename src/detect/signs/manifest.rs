//! The main section of `META-INF/MANIFEST.MF` (JAR File Specification, "JAR Manifest"), as build tools write it:
//!
//! ```text
//! Manifest-Version: 1.0
//! Main-Class: org.springframework.boot.loader.launch.JarLauncher
//! Class-Path: libs/helidon-webserver-4.1.0.jar libs/helidon-http-4.1.0.j
//!  ar
//! ```
//! A line that begins with a space continues the previous one; an empty line ends the section.

/// Names and values of the main section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Manifest(Vec<(String, String)>);

impl Manifest {
    /// Parses the section; skips lines that are neither a name with a value nor a continuation.
    pub(crate) fn parse(text: &str) -> Self {
        let mut found: Vec<(String, String)> = Vec::new();
        for line in text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
            match (line.strip_prefix(' '), line.split_once(':')) {
                (Some(more), _) => {
                    if let Some((_, value)) = found.last_mut() {
                        value.push_str(more);
                    }
                }
                (None, Some((name, value))) => found.push((name.to_owned(), value.trim_start().to_owned())),
                (None, None) if line.is_empty() && !found.is_empty() => break,
                (None, None) => {}
            }
        }
        Self(found)
    }

    /// The value of a name, ignoring case; `None` if missing or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// The files of its class path, without directories.
    pub(crate) fn class_path(&self) -> impl Iterator<Item = &str> {
        let words = self.get("Class-Path").unwrap_or_default().split_ascii_whitespace();
        words.map(|word| word.rsplit('/').next().unwrap_or(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_lines_continue_and_the_main_section_ends() {
        let text = "Manifest-Version: 1.0\r\nmain-class: a.B\r\nClass-Path: libs/x.jar lib\r\n s/y.jar\r\n\r\n\
                    Name: z\r\nMain-Class: other\r\n";
        let manifest = Manifest::parse(text);
        assert_eq!(manifest.get("Main-Class"), Some("a.B"));
        assert_eq!(manifest.class_path().collect::<Vec<_>>(), ["x.jar", "y.jar"]);
        assert_eq!(manifest.get("Name"), None);
        assert_eq!(Manifest::parse("Main-Class:  \n").get("Main-Class"), None);
        assert_eq!(Manifest::parse(" begins with a blank\nno colon\n"), Manifest::default());
    }
}
