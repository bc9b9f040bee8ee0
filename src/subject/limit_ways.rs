//! Alternatives for users who cannot simply create a cgroup: a scope of the user's systemd, a container with writable
//! cgroups, a Slurm step, or root. In a Kubernetes pod, these are settings that its administrator can allow.

use super::program;
use super::slurm_step::Job;
use crate::kernel::cgroup::{self, CgroupVersion, Hierarchy, MEMORY};
use crate::kernel::text;
use rustix::fs::{Access, access};
use std::ffi::OsString;
use std::path::PathBuf;

/// Kubernetes sets this variable in every container, regardless of the manifest.
const POD_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";
const DOCKER_SOCKET: &str = "/var/run/docker.sock";

/// An available way to set a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A scope of the user's systemd, in which the user can create cgroups (v2).
    UserScope,
    /// The same, after systemd delegates the controller to users.
    UserScopeDelegated,
    /// A Docker container.
    Docker,
    /// A Podman container.
    Podman,
    /// Root.
    Root,
    /// A pod with a writable cgroup (v2): containerd 2.1 or later, CRI-O, or GKE nodes.
    PodWritable,
    /// A privileged container in a pod.
    PodPrivileged,
    /// A step of this Slurm job; used automatically if Loadline cannot create a cgroup.
    SlurmStep,
}

impl Way {
    /// The hint.
    pub fn text(self) -> &'static str {
        match self {
            Self::UserScope => "in your own scope: `systemd-run --user --scope -p Delegate=yes loadline …`",
            Self::UserScopeDelegated => {
                "in your own scope, once systemd delegates limits to users: as root, run `systemctl edit \
                 user@.service` and add `Delegate=cpu memory` under `[Service]`; log in again, then run `systemd-run \
                 --user --scope -p Delegate=yes loadline …`"
            }
            Self::Docker => "in a container: `docker run --privileged --cgroupns=host … loadline …`",
            Self::Podman => "in a container: `podman run --privileged --cgroupns=host … loadline …`",
            Self::Root => "as root: `sudo loadline …`",
            Self::PodWritable => {
                "in a pod that can write its own cgroup: use a runtime class with containerd 2.1 or newer and \
                 `cgroup_writable = true`, CRI-O's annotation `io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw: \
                 \"true\"`, or GKE nodes with writable cgroups"
            }
            Self::PodPrivileged => {
                "in a container with `securityContext: {privileged: true}`, in its own namespace and on dedicated nodes"
            }
            Self::SlurmStep => {
                "in a Slurm step of this job, which Loadline starts for each trial (in whole MiB, if Slurm's \
                 cgroup.conf has `ConstrainRAMSpace=yes`)"
            }
        }
    }
}

/// The ways to set a limit with a controller on this machine, easiest first. Empty for root outside pods and jobs, who
/// only lacks a writable file system.
pub(crate) fn ways(controller: &'static str) -> Vec<Way> {
    Surroundings::read(controller).ways()
}

/// A suggestion if a limit could not be set.
pub(super) fn hint(controller: &'static str) -> String {
    match ways(controller).first() {
        Some(way) => format!("run it {}", way.text()),
        None => "the cgroup file system must be writable: with Docker, use `--privileged --cgroupns=host`".to_owned(),
    }
}

/// The facts about a machine that determine the available ways.
#[derive(Debug)]
struct Surroundings {
    uid: u32,
    /// The cgroup hierarchy that has the controller.
    hierarchy: Option<Hierarchy>,
    /// `PATH`.
    path: OsString,
    /// `XDG_RUNTIME_DIR`.
    runtime: PathBuf,
    docker_socket: PathBuf,
    is_pod: bool,
    is_slurm_job: bool,
}

impl Surroundings {
    fn read(controller: &'static str) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Self {
            uid,
            hierarchy: Hierarchy::find(controller).ok().flatten(),
            path: std::env::var_os("PATH").unwrap_or_default(),
            runtime: runtime.unwrap_or_else(|| PathBuf::from(format!("/run/user/{uid}"))),
            docker_socket: DOCKER_SOCKET.into(),
            is_pod: std::env::var_os(POD_VARIABLE).is_some(),
            // Slurm limits a step's memory, but not its share of CPU time.
            is_slurm_job: controller == MEMORY && Job::here().is_some(),
        }
    }

    fn ways(&self) -> Vec<Way> {
        if self.is_pod {
            let is_v2 = self.hierarchy.as_ref().is_some_and(|hierarchy| hierarchy.version == CgroupVersion::V2);
            return is_v2.then_some(Way::PodWritable).into_iter().chain([Way::PodPrivileged]).collect();
        }
        let step = self.is_slurm_job.then_some(Way::SlurmStep);
        if self.uid == 0 {
            return step.into_iter().collect();
        }
        let scope = self.scope();
        let docker = self.has("docker") && access(&self.docker_socket, Access::WRITE_OK).is_ok();
        // Without the Docker daemon, a container gets only its user's rights.
        let podman = self.has("podman") && scope == Some(Way::UserScope);
        let containers = [(docker, Way::Docker), (podman, Way::Podman)];
        let containers = containers.into_iter().filter(|(open, _)| *open).map(|(_, way)| way);
        step.into_iter().chain(scope).chain(containers).chain([Way::Root]).collect()
    }

    /// A scope, if the user has a systemd and cgroups can be delegated.
    fn scope(&self) -> Option<Way> {
        let hierarchy = self.hierarchy.as_ref().filter(|hierarchy| hierarchy.version == CgroupVersion::V2)?;
        if !self.has("systemd-run") || !self.runtime.join("systemd/private").exists() {
            return None;
        }
        let uid = self.uid;
        let manager = hierarchy.mount.join(format!("user.slice/user-{uid}.slice/user@{uid}.service"));
        let delegated = cgroup::names(&text::read(manager.join("cgroup.controllers")).ok()?, hierarchy.controller);
        Some(if delegated { Way::UserScope } else { Way::UserScopeDelegated })
    }

    fn has(&self, program: &str) -> bool {
        program::on_path(program, &self.path).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cgroup::CPU;
    use loadline_test_support::write;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn hierarchy(version: CgroupVersion, folder: &Path) -> Hierarchy {
        Hierarchy { controller: MEMORY, version, mount: folder.join("cgroup"), root: "/".into() }
    }

    fn machine(folder: &Path, controllers: &str) -> Surroundings {
        for program in ["systemd-run", "docker", "podman"] {
            let file = folder.join(program);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        write(folder.join("cgroup/user.slice/user-7.slice/user@7.service/cgroup.controllers"), controllers);
        write(folder.join("run/systemd/private"), "");
        write(folder.join("docker.sock"), "");
        Surroundings {
            uid: 7,
            hierarchy: Some(hierarchy(CgroupVersion::V2, folder)),
            path: folder.into(),
            runtime: folder.join("run"),
            docker_socket: folder.join("docker.sock"),
            is_pod: false,
            is_slurm_job: false,
        }
    }

    #[test]
    fn a_pod_gets_advice_on_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let pod = |uid, version| {
            let hierarchy = Some(hierarchy(version, folder.path()));
            Surroundings { uid, hierarchy, is_pod: true, ..machine(folder.path(), "memory") }.ways()
        };
        assert_eq!(pod(0, CgroupVersion::V2), [Way::PodWritable, Way::PodPrivileged]);
        assert_eq!(pod(7, CgroupVersion::V1), [Way::PodPrivileged]);
    }

    #[test]
    fn only_available_ways_to_set_a_limit_are_suggested() {
        use Way::*;
        let folder = tempfile::tempdir().unwrap();
        let all = machine(folder.path(), "cpu memory pids\n");
        assert_eq!(all.ways(), [UserScope, Docker, Podman, Root]);
        assert_eq!(Surroundings { uid: 0, ..machine(folder.path(), "memory") }.ways(), []);
        // v1 has no delegation; without the user's systemd, there is no scope.
        let v1 = Some(hierarchy(CgroupVersion::V1, folder.path()));
        assert_eq!(Surroundings { hierarchy: v1, ..machine(folder.path(), "memory") }.ways(), [Docker, Root]);
        let elsewhere = folder.path().join("none");
        let without = Surroundings { runtime: elsewhere.clone(), ..machine(folder.path(), "memory") };
        assert_eq!(without.ways(), [Docker, Root]);
        assert_eq!(machine(folder.path(), "cpu pids\n").ways(), [UserScopeDelegated, Docker, Root]);
        let of_cpu = Some(Hierarchy { controller: CPU, ..hierarchy(CgroupVersion::V2, folder.path()) });
        let without_cpu = Surroundings { hierarchy: of_cpu, ..machine(folder.path(), "memory pids\n") };
        assert_eq!(without_cpu.ways(), [UserScopeDelegated, Docker, Root]);
        let job = || Surroundings { is_slurm_job: true, ..machine(folder.path(), "memory") };
        assert_eq!(job().ways(), [SlurmStep, UserScope, Docker, Podman, Root]);
        assert_eq!(Surroundings { uid: 0, ..job() }.ways(), [SlurmStep]);
        // A daemon that is not running, or not accessible to this user.
        let closed = Surroundings { docker_socket: elsewhere, ..machine(folder.path(), "memory") };
        assert_eq!(closed.ways(), [UserScope, Podman, Root]);
        let nothing = Surroundings { path: OsString::new(), ..machine(folder.path(), "memory") };
        assert_eq!(nothing.ways(), [Root]);
    }
}
