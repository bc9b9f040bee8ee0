//! The command line that runs a container image: `podman run …` or `docker run …`.
//!
//! Uses the host's network, so ports are the image's own; disables swap if the machine has any.

use super::container_tool;
use super::image::FoundImage;
use super::names;
use crate::units::{Bytes, Millicpus};

/// Read by every JVM, however an image starts it.
pub(super) const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// The container that a subject runs in.
#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    /// The image and the tool that runs it.
    pub image: FoundImage,
    /// The container's unique name.
    pub name: String,
}

impl Container {
    pub(super) fn new(image: &FoundImage) -> Self {
        Self { image: image.clone(), name: names::new() }
    }

    pub(super) fn argv(&self, asked: &ContainerOptions) -> Vec<String> {
        let label = container_tool::label(&self.name);
        let mut argv =
            [self.image.tool.tool.word(), "run", "--name", &self.name, "--label", &label].map(str::to_owned).to_vec();
        // Never pulls. Skips SIGTERM before a forced removal, because SIGTERM would only delay the removal.
        argv.extend(["--pull=never", "--stop-timeout=0", "--network=host"].map(str::to_owned));
        if let Some(limit) = asked.limit {
            argv.push(format!("--memory={}b", limit.0));
            argv.extend(asked.forbids_swap.then(|| format!("--memory-swap={}b", limit.0)));
        }
        argv.extend(asked.cpu_limit.map(|limit| format!("--cpus={}", limit.as_cpus())));
        if let Some(cpus) = asked.cpus {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            argv.push(format!("--cpuset-cpus={}", cpus.join(",")));
        }
        for (name, value) in asked.env {
            argv.extend(["--env".to_owned(), format!("{name}={value}")]);
        }
        argv.push(self.image.name.clone());
        argv.extend(asked.arguments.iter().cloned());
        argv
    }
}

#[derive(Debug)]
pub(super) struct ContainerOptions<'a> {
    pub limit: Option<Bytes>,
    pub cpu_limit: Option<Millicpus>,
    /// Whether the limit also disables swap. On a machine without swap, that second limit would only hide hits of the
    /// first.
    pub forbids_swap: bool,
    pub cpus: Option<&'a [u32]>,
    pub env: &'a [(String, String)],
    /// If not empty, these replace the image's default arguments.
    pub arguments: &'a [String],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_container_gets_limit_cpus_environment_and_arguments() {
        let image = super::super::image::sample(&["java"], &["1"], &[]);
        let container = Container { image, name: "loadline-1-0".to_owned() };
        let env = [("A".to_owned(), "b c".to_owned())];
        let mut asked = ContainerOptions {
            limit: Some(Bytes::mib(1)),
            cpu_limit: Some(Millicpus(1250)),
            forbids_swap: true,
            cpus: Some(&[0, 2]),
            env: &env,
            arguments: &words("18080 x"),
        };
        let mut expect = words(
            "podman run --name loadline-1-0 --label loadline=loadline-1-0 --pull=never --stop-timeout=0 --network=host \
             --memory=1048576b --memory-swap=1048576b --cpus=1.25 --cpuset-cpus=0,2 --env",
        );
        expect.push("A=b c".to_owned());
        expect.extend(words("app:1 18080 x"));
        assert_eq!(container.argv(&asked), expect);
        asked = ContainerOptions { limit: None, cpu_limit: None, cpus: None, env: &[], arguments: &[], ..asked };
        assert_eq!(container.argv(&asked)[6..], words("--pull=never --stop-timeout=0 --network=host app:1"));
    }
}
