//! Scripts of Gradle, `build.gradle` and `settings.gradle` with their forms in Kotlin, as far as single lines of them
//! say what the build makes. They are programs: what is computed in them is not seen.
//!
//! ```text
//! plugins { id 'org.springframework.boot' version '3.4.1' }      id("io.quarkus")
//! version = '1.2'                                                rootProject.name = "shop"
//! include 'api', 'web'                                           include(":web")
//! ```

use super::Framework;

/// The texts of the two scripts; empty where there is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scripts<'a> {
    /// `build.gradle` or `build.gradle.kts`.
    pub build: &'a str,
    /// `settings.gradle` or `settings.gradle.kts`.
    pub settings: &'a str,
}

/// The facts in a project of Gradle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gradle {
    /// Its name; `None` where that is its folder's.
    pub name: Option<String>,
    /// Projects below it, by their folders.
    pub projects: Vec<String>,
    /// Its version; Gradle leaves it out of the name of a jar where there is none.
    pub version: Option<String>,
    /// Its framework.
    pub framework: Option<Framework>,
    /// Whether a plugin puts everything into one jar, whose name ends in `-all`.
    pub shadow: bool,
    /// Whether it is an application, and not only the root of others.
    pub starts: bool,
    /// The path of the server's health check, by its dependencies.
    pub health: Option<&'static str>,
}

impl Gradle {
    /// Reads the scripts line by line.
    pub fn parse(scripts: Scripts<'_>) -> Self {
        let mut found = Self::default();
        for line in scripts.settings.lines().map(without_comment) {
            if line.starts_with("rootProject.name") {
                found.name = quoted(line).next().map(str::to_owned).filter(|name| !name.is_empty());
            } else if let Some(rest) = line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '('])) {
                found.projects.extend(quoted(rest).map(|name| name.trim_start_matches(':').replace(':', "/")));
            }
        }
        for line in scripts.build.lines().map(without_comment) {
            if line.starts_with("version") && !line.contains('$') {
                found.version = quoted(line).next().map(str::to_owned).filter(|version| !version.is_empty());
            }
            found.starts |= line == "application" || quoted(line).any(|word| word == "application");
            for word in quoted(line) {
                let plugin = Framework::of_plugin(word);
                let artifact = word.split(':').nth(1);
                found.shadow |= word.ends_with(".shadow") || word.starts_with("io.micronaut.application");
                found.framework = found.framework.or(plugin).or_else(|| Framework::of_artifacts(artifact.into_iter()));
                found.health = found.health.or_else(|| found.framework?.health_by(artifact?));
            }
        }
        found.starts |= found.framework.is_some() || found.shadow;
        found
    }

    /// The jar that its build makes, below its folder.
    pub fn jar(&self, folder: &str) -> String {
        if self.framework == Some(Framework::Quarkus) {
            return "build/quarkus-app/quarkus-run.jar".to_owned();
        }
        let name = self.name.as_deref().unwrap_or(folder);
        let version = self.version.as_ref().map_or_else(String::new, |version| format!("-{version}"));
        let end = if self.shadow { "-all" } else { "" };
        format!("build/libs/{name}{version}{end}.jar")
    }

    /// The task that makes it.
    pub fn task(&self) -> &'static str {
        match self.framework {
            Some(Framework::SpringBoot) => "bootJar",
            Some(Framework::Quarkus) => "quarkusBuild",
            _ if self.shadow => "shadowJar",
            _ => "assemble",
        }
    }
}

/// A line without the comment at its end; `//` within a URL is none.
fn without_comment(line: &str) -> &str {
    let end = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':')).map_or(line.len(), |(at, _)| at);
    line[..end].trim()
}

/// The texts in quotes on a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let open = rest.find(['\'', '"'])?;
        let quote = rest[open..].chars().next()?;
        let inside = &rest[open + 1..];
        let close = inside.find(quote)?;
        rest = &inside[close + 1..];
        Some(&inside[..close])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_both_languages_say_what_they_make() {
        let build = "plugins {\n  id 'java' // no\n  id 'org.springframework.boot' version '3.4.1'\n}\nversion = '1.2'\n\
                     repositories { maven { url 'https://example.org' } }\n\
                     dependencies { implementation 'org.springframework.boot:spring-boot-starter-actuator' }\n";
        let groovy = Gradle::parse(Scripts { build, settings: "rootProject.name = 'shop'\n" });
        assert_eq!(groovy.jar("x"), "build/libs/shop-1.2.jar");
        assert_eq!((groovy.task(), groovy.health), ("bootJar", Some("/actuator/health")));

        let kotlin = "plugins {\n  id(\"io.micronaut.application\") version \"4\"\n}\n";
        let kotlin = Gradle::parse(Scripts { build: kotlin, settings: "include(\":api\", \":web:app\")\n" });
        assert_eq!((kotlin.jar("x").as_str(), kotlin.task()), ("build/libs/x-all.jar", "shadowJar"));
        assert_eq!(kotlin.projects, ["api", "web/app"]);
        assert!(!Gradle::parse(Scripts { build: "allprojects {}", settings: "include 'a'" }).starts);
    }

    #[test]
    fn scripts_cut_anywhere_do_no_harm() {
        let script = "rootProject.name = 'é'\ninclude \"a\", ':b:c' // '\nversion = \"1\"\nid('io.quarkus')\n";
        for cut in (0..script.len()).filter(|cut| script.is_char_boundary(*cut)) {
            let _ = Gradle::parse(Scripts { build: &script[..cut], settings: &script[..cut] });
        }
    }
}
