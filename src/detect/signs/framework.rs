//! A server's framework: how to recognize it, how to set its port, and the path of its health check.
//!
//! | framework | port | health |
//! |---|---|---|
//! | Spring Boot ("Common Application Properties", "Actuator") | `server.port` | `/actuator/health` |
//! | Quarkus ("All configuration options", "SmallRye Health") | `quarkus.http.port` | `/q/health` |
//! | Micronaut ("Server Configuration", "Built-In Endpoints") | `micronaut.server.port` | `/health` |
//! | Helidon 4 ("Server Configuration", "Observability"; 3 had `/health`) | `server.port` | `/observe/health` |
//! | Dropwizard ("Configuration") | `dw.server.applicationConnectors[0].port` | on another port |

use super::Manifest;

/// Paths to try for a page, in order: the root, then those of framework tutorials.
pub(crate) const PAGES: [&str; 8] =
    ["/", "/hello", "/greet", "/greeting", "/hello-world", "/index.html", "/api", "/api/hello"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framework {
    /// Spring Boot.
    SpringBoot,
    Quarkus,
    Micronaut,
    /// Helidon SE and MP.
    Helidon,
    Dropwizard,
}

struct Signs {
    framework: Framework,
    name: &'static str,
    main_class: &'static str,
    /// The prefix of a file name in the class path.
    in_class_path: &'static str,
    /// Prefixes of entries in an all-in-one jar.
    entries: &'static [&'static str],
    /// Prefixes of a build's plugins, parents, and dependencies.
    artifacts: &'static [&'static str],
    /// The ID of a Gradle plugin, or its prefix before a dot.
    plugin: &'static str,
}

/// Checked in this order, because a Spring Boot jar can contain classes of the others.
const SIGNS: [Signs; 5] = [
    Signs {
        framework: Framework::SpringBoot,
        name: "Spring Boot",
        main_class: "org.springframework.boot.loader.",
        in_class_path: "spring-boot-",
        entries: &["BOOT-INF/", "org/springframework/boot/SpringApplication"],
        artifacts: &["spring-boot-"],
        plugin: "org.springframework.boot",
    },
    Signs {
        framework: Framework::Quarkus,
        name: "Quarkus",
        main_class: "io.quarkus.",
        in_class_path: "io.quarkus.",
        entries: &["io/quarkus/runner/", "io/quarkus/bootstrap/runner/"],
        artifacts: &["quarkus-"],
        plugin: "io.quarkus",
    },
    Signs {
        framework: Framework::Micronaut,
        name: "Micronaut",
        main_class: "io.micronaut.",
        in_class_path: "micronaut-http-server",
        entries: &["io/micronaut/http/server/"],
        artifacts: &["micronaut-"],
        plugin: "io.micronaut",
    },
    Signs {
        framework: Framework::Helidon,
        name: "Helidon",
        main_class: "io.helidon.",
        in_class_path: "helidon-",
        entries: &["io/helidon/webserver/"],
        artifacts: &["helidon-"],
        plugin: "io.helidon",
    },
    Signs {
        framework: Framework::Dropwizard,
        name: "Dropwizard",
        main_class: "io.dropwizard.",
        in_class_path: "dropwizard-core",
        // Many projects use `io/dropwizard/metrics`.
        entries: &["io/dropwizard/core/", "io/dropwizard/setup/"],
        artifacts: &["dropwizard-core"],
        plugin: "io.dropwizard",
    },
];

impl Framework {
    /// Finds a jar's framework from its manifest and entry names.
    pub(crate) fn of_jar<'a>(manifest: &Manifest, entries: impl Iterator<Item = &'a str> + Clone) -> Option<Self> {
        let main = manifest.get("Main-Class").unwrap_or_default();
        if manifest.get("Spring-Boot-Version").is_some() {
            return Some(Self::SpringBoot);
        }
        let by_manifest = |signs: &&Signs| {
            main.starts_with(signs.main_class)
                || manifest.class_path().any(|file| file.starts_with(signs.in_class_path))
        };
        let by_entries =
            |signs: &&Signs| entries.clone().any(|entry| signs.entries.iter().any(|begins| entry.starts_with(begins)));
        let found = SIGNS.iter().find(by_manifest).or_else(|| SIGNS.iter().find(by_entries));
        found.map(|signs| signs.framework)
    }

    /// Finds a build's framework from its plugins, parents, and dependencies.
    pub(crate) fn of_artifacts<'a>(artifacts: impl Iterator<Item = &'a str> + Clone) -> Option<Self> {
        let has = |signs: &&Signs| {
            artifacts.clone().any(|artifact| signs.artifacts.iter().any(|begins| artifact.starts_with(begins)))
        };
        SIGNS.iter().find(has).map(|signs| signs.framework)
    }

    pub(crate) fn of_plugin(identifier: &str) -> Option<Self> {
        let is = |signs: &&Signs| {
            identifier.strip_prefix(signs.plugin).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        SIGNS.iter().find(is).map(|signs| signs.framework)
    }

    /// The official spelling.
    pub(crate) fn name(self) -> &'static str {
        SIGNS.iter().find(|signs| signs.framework == self).map_or("", |signs| signs.name)
    }

    /// The words that set the port: JVM options and arguments. In Spring Boot, an argument overrides all other sources.
    pub(crate) fn port_words(self) -> [&'static [&'static str]; 2] {
        match self {
            Self::SpringBoot => [&[], &["--server.port={port}"]],
            Self::Quarkus => [&["-Dquarkus.http.port={port}"], &[]],
            Self::Micronaut => [&["-Dmicronaut.server.port={port}"], &[]],
            Self::Helidon => [&["-Dserver.port={port}"], &[]],
            Self::Dropwizard => {
                [&["-Ddw.server.applicationConnectors[0].port={port}", "-Ddw.server.adminConnectors[0].port=0"], &[]]
            }
        }
    }

    /// The paths of its health check on the page port, if built in, and the prefixes of the artifacts that add it.
    fn health_check(self) -> [&'static [&'static str]; 2] {
        match self {
            Self::SpringBoot => [&["/actuator/health"], &["spring-boot-starter-actuator"]],
            Self::Quarkus => [&["/q/health"], &["quarkus-smallrye-health"]],
            Self::Micronaut => [&["/health"], &["micronaut-management"]],
            Self::Helidon => {
                [&["/observe/health", "/health"], &["helidon-webserver-observe-health", "helidon-microprofile"]]
            }
            Self::Dropwizard => [&[], &[]],
        }
    }

    /// The path of the health check that this artifact adds, if any.
    pub(super) fn health_by(self, artifact: &str) -> Option<&'static str> {
        let [paths, adds] = self.health_check();
        paths.first().copied().filter(|_| adds.iter().any(|begins| artifact.starts_with(begins)))
    }
}

/// Health check paths for an unknown framework.
const HEALTH_OF_ANY: [&str; 3] = ["/health", "/healthz", "/actuator/health"];

/// The paths of a server's health check.
pub(crate) fn health_of(framework: Option<Framework>) -> Vec<String> {
    let paths = framework.map_or(&HEALTH_OF_ANY[..], |framework| framework.health_check()[0]);
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frameworks_are_recognized_by_manifest_class_path_and_classes() {
        let check = |manifest: &str, entries: &[&str], expect: Option<Framework>| {
            let found = Framework::of_jar(&Manifest::parse(manifest), entries.iter().copied());
            assert_eq!(found, expect, "{manifest} {entries:?}");
        };
        check("Spring-Boot-Version: 3.4.1\n", &[], Some(Framework::SpringBoot));
        check("Main-Class: a.B\n", &["META-INF/", "BOOT-INF/classes/a/B.class"], Some(Framework::SpringBoot));
        check("Main-Class: a.B\nClass-Path: lib/spring-boot-3.4.1.jar\n", &[], Some(Framework::SpringBoot));
        check("Main-Class: io.quarkus.bootstrap.runner.QuarkusEntryPoint\n", &[], Some(Framework::Quarkus));
        check("Main-Class: a.B\n", &["io/micronaut/http/server/netty/X.class"], Some(Framework::Micronaut));
        check("Main-Class: a.B\nClass-Path: libs/helidon-webserver-4.1.0.jar\n", &[], Some(Framework::Helidon));
        check("Main-Class: a.B\n", &["io/dropwizard/core/Application.class"], Some(Framework::Dropwizard));
        check("Main-Class: a.B\n", &["io/dropwizard/metrics/X.class", "com/a/B.class"], None);
        check("", &[], None);
    }

    #[test]
    fn frameworks_are_recognized_by_artifacts_and_plugins() {
        let of = |artifacts: &[&str]| Framework::of_artifacts(artifacts.iter().copied());
        assert_eq!(of(&["junit", "spring-boot-starter-web"]), Some(Framework::SpringBoot));
        assert_eq!(of(&["quarkus-maven-plugin"]), Some(Framework::Quarkus));
        assert_eq!(of(&["micronaut-parent"]), Some(Framework::Micronaut));
        assert_eq!(of(&["junit"]), None);
        assert_eq!(Framework::of_plugin("io.micronaut.application"), Some(Framework::Micronaut));
        assert_eq!(Framework::of_plugin("io.quarkus"), Some(Framework::Quarkus));
        assert_eq!(Framework::of_plugin("io.quarkusx"), None);
    }

    #[test]
    fn each_framework_has_exactly_one_port_placeholder() {
        for signs in SIGNS {
            let words = signs.framework.port_words().concat();
            assert_eq!(words.iter().filter(|word| word.contains("{port}")).count(), 1, "{}", signs.name);
        }
    }
}
