//! Gradle scripts: `build.gradle`, `settings.gradle`, and their Kotlin forms. Scripts are programs, so this finds only
//! facts that are visible in single lines, not computed values.
//!
//! ```text
//! plugins { id 'org.springframework.boot' version '3.4.1' }      id("io.quarkus")
//! version = '1.2'                                                rootProject.name = "shop"
//! include 'api', 'web'                                           include(":web")
//! ```

use super::{Framework, Project};

/// The text of the two scripts; empty if missing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scripts<'a> {
    /// `build.gradle` or `build.gradle.kts`.
    pub build: &'a str,
    /// `settings.gradle` or `settings.gradle.kts`.
    pub settings: &'a str,
}

/// Reads a project's scripts line by line; a project without a name gets its directory's.
pub(crate) fn of_gradle(scripts: Scripts<'_>, folder: &str) -> Project {
    let text = |line| quoted(line).next().filter(|text: &&str| !text.is_empty());
    let (mut name, mut below) = (folder, Vec::new());
    for line in scripts.settings.lines().map(without_comment) {
        if line.starts_with("rootProject.name") {
            name = text(line).unwrap_or(folder);
        } else if let Some(rest) = line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '('])) {
            below.extend(quoted(rest).map(|name| name.trim_start_matches(':').replace(':', "/")));
        }
    }
    // Whether a plugin builds an all-in-one jar named `-all`, and whether the project is an application.
    let (mut shadow, mut starts) = (false, false);
    let (mut version, mut framework, mut health) = (None, None, None);
    for line in scripts.build.lines().map(without_comment) {
        if line.starts_with("version") && !line.contains('$') {
            version = text(line);
        }
        starts |= line == "application" || quoted(line).any(|word| word == "application");
        for word in quoted(line) {
            let artifact = word.split(':').nth(1);
            shadow |= word.ends_with(".shadow") || word.starts_with("io.micronaut.application");
            let by_word = || Framework::of_plugin(word).or_else(|| Framework::of_artifacts(artifact.into_iter()));
            framework = framework.or_else(by_word);
            health = health.or_else(|| framework?.health_by(artifact?));
        }
    }
    // Gradle omits a missing version from the jar's name.
    let version = version.map_or_else(String::new, |version| format!("-{version}"));
    let usual = |end: &str| format!("build/libs/{name}{version}{end}.jar");
    let (makes, task) = match framework {
        Some(Framework::Quarkus) => ("build/quarkus-app/quarkus-run.jar".to_owned(), "quarkusBuild"),
        Some(Framework::SpringBoot) => (usual(if shadow { "-all" } else { "" }), "bootJar"),
        _ if shadow => (usual("-all"), "shadowJar"),
        _ => (usual(""), "assemble"),
    };
    let parts = if starts || framework.is_some() || shadow { Vec::new() } else { below };
    Project { name: name.to_owned(), makes: Some(makes), task, framework, health, parts }
}

/// A line without its trailing comment; `//` in a URL is not a comment.
fn without_comment(line: &str) -> &str {
    let end = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':')).map_or(line.len(), |(at, _)| at);
    line[..end].trim()
}

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
    fn gradle_scripts_in_both_languages_give_the_jar() {
        let build = "plugins {\n  id 'java' // no\n  id 'org.springframework.boot' version '3.4.1'\n}\nversion = '1.2'\n\
                     repositories { maven { url 'https://example.org' } }\n\
                     dependencies { implementation 'org.springframework.boot:spring-boot-starter-actuator' }\n";
        let of = |build, settings| of_gradle(Scripts { build, settings }, "x");
        let groovy = of(build, "rootProject.name = 'shop'\n");
        assert_eq!(groovy.makes.as_deref(), Some("build/libs/shop-1.2.jar"));
        assert_eq!((groovy.task, groovy.health), ("bootJar", Some("/actuator/health")));

        let build = "plugins {\n  id(\"io.micronaut.application\") version \"4\"\n}\n";
        let settings = "include(\":api\", \":web:app\")\n";
        let kotlin = of(build, settings);
        assert_eq!((kotlin.makes.as_deref(), kotlin.task), (Some("build/libs/x-all.jar"), "shadowJar"));
        assert!(kotlin.parts.is_empty(), "a shadow jar is self-contained, so it needs no further parts");
        assert_eq!(of("allprojects {}", settings).parts, ["api", "web/app"]);
        assert_eq!(of("allprojects {}", "include 'a'").parts, ["a"]);
    }

    #[test]
    fn truncated_gradle_scripts_do_not_panic() {
        let script = "rootProject.name = 'é'\ninclude \"a\", ':b:c' // '\nversion = \"1\"\nid('io.quarkus')\n";
        for cut in (0..script.len()).filter(|cut| script.is_char_boundary(*cut)) {
            of_gradle(Scripts { build: &script[..cut], settings: &script[..cut] }, "x");
        }
    }
}
