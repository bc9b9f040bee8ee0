//! A container image as the subject, and scenario settings that do not apply to it.

use super::*;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Placeholders for paths outside a container.
const OUTSIDE: [&str; 4] = ["{artifact}", "{code}", "{work}", "{jdk}"];

/// A container image that starts the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Image {
    /// The name as container tools accept it, with or without a tag.
    pub name: String,
    /// Heap options that the image itself gives its JVM and that override `JAVA_TOOL_OPTIONS`; empty before inspection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heap_options: Vec<String>,
}

impl Image {
    /// An image that has not been inspected yet.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), heap_options: Vec::new() }
    }

    /// `app` for `registry:5000/team/app:1.2` and `app@sha256:…`.
    pub fn short_name(&self) -> &str {
        let last = self.name.rsplit('/').next().unwrap_or_default();
        last.split([':', '@']).next().unwrap_or(last)
    }
}

impl Scenario {
    /// Checks the image's name, and rejects settings that cannot work in a container or would silently have no effect.
    pub(super) fn validate_image(&self) -> Result<()> {
        let Some(image) = &self.subject.image else { return Ok(()) };
        let name = &image.name;
        if name.is_empty() || name.starts_with('-') || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(Error::request(format!("`{name}` is not an image name"))
                .hint("write it as `podman images` or `docker images` shows it: `app:1.2`"));
        }
        if self.subject.socket.is_some() {
            return Err(Error::request("Loadline cannot reach a Unix socket inside a container")
                .hint("send the load over TCP: `--url http://127.0.0.1:8080/`"));
        }
        let own = self.configurations.iter().flat_map(|configuration| &configuration.args);
        let words = self.subject.command.iter().chain(own);
        let env = self.configurations.iter().flat_map(|configuration| &configuration.env).chain(&self.subject.env);
        let mut words = words.chain(env.map(|(_, value)| value));
        let outside = words.find_map(|word| OUTSIDE.into_iter().find(|outside| word.contains(outside)));
        if let Some(outside) = outside {
            return Err(
                Error::request(format!("`{outside}` is a path outside the image")).hint("use a path inside the image")
            );
        }
        self.validate_each(Configuration::validate_in_image)
    }
}

impl Configuration {
    fn validate_in_image(&self) -> Result<()> {
        let refuse =
            |word: &str, hint: &str| Err(Error::request(format!("`{word}` has no effect with an image")).hint(hint));
        match () {
            () if self.jdk.is_some() => refuse("jdk", "the image has its own JDK; use another image"),
            () if self.preload.is_some() => {
                refuse("preload", "set `LD_PRELOAD` in `env` to the path of a library in the image")
            }
            () if self.netty == Netty::Listed => {
                refuse("netty", "an agent would have to be in the image; remove `netty`")
            }
            () => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(subject: &str, configuration: &str) -> Result<Scenario> {
        scenario_of(subject, &format!("configurations: {{a: {{{configuration}}}}}"))
    }

    #[test]
    fn an_image_needs_no_command_and_may_have_arguments() {
        let bare = scenario("image: app", "heap: 64m").unwrap();
        assert_eq!((bare.subject.image, bare.subject.command.len()), (Some(Image::named("app")), 0));
        let with = scenario("image: app, command: [\"{port}\", x], build: make", "").unwrap();
        assert_eq!(with.subject.command, ["{port}", "x"]);
        assert_eq!(Image::named("registry:5000/team/app:1.2").short_name(), "app");
        assert_eq!(Image::named("app@sha256:01").short_name(), "app");
    }

    #[test]
    fn settings_that_do_not_apply_to_images_are_rejected() {
        let check = |subject: &str, configuration: &str, expect: &str| {
            let error = scenario(subject, configuration).unwrap_err();
            assert!(error.to_string().contains(expect), "{error}");
        };
        check("image: -v", "", "`-v` is not an image name");
        check("image: 'a b'", "", "is not an image name");
        check("image: ''", "", "is not an image name");
        check("image: app, socket: x.sock", "", "cannot reach a Unix socket");
        check("image: app, command: ['{jdk}']", "", "`{jdk}` is a path outside the image");
        check("image: app, env: {A: '{work}'}", "", "`{work}` is a path outside");
        check("image: app", "args: ['{code}']", "`{code}`");
        check("image: app, dir: x", "", "`dir` has no effect");
        check("image: app", "jdk: 17", "`jdk` has no effect");
        check("image: app", "preload: libx.so", "`preload` has no effect");
        check("image: app, netty: true", "", "`netty` has no effect");
        check("env: {A: b}", "", "the server has no command");
    }
}
