//! Ways to a limit of memory or CPU time for who cannot make a cgroup just so: a scope of the user's own systemd, a
//! container that may write cgroups, a step of a job of Slurm, root; in a pod of Kubernetes what its administrator may
//! allow.

use super::program;
use super::slurm_step::Job;
use crate::kernel::cgroup::{self, CgroupVersion, Hierarchy, MEMORY};
use crate::kernel::text;
use rustix::fs::{Access, access};
use std::ffi::OsString;
use std::path::PathBuf;

/// A variable that Kubernetes gives every container of a pod, whatever its manifest says of services.
const POD_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";
/// The usual socket of Docker.
const DOCKER_SOCKET: &str = "/var/run/docker.sock";

/// A way to a limit that is open here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A scope of the user's systemd, below which the user may make cgroups (v2).
    UserScope,
    /// Such a scope, once systemd hands the controller down to users.
    UserScopeDelegated,
    /// A container by Docker.
    Docker,
    /// A container by Podman.
    Podman,
    /// Being root.
    Root,
    /// A pod whose own cgroup may be written (v2): by containerd 2.1 or newer, CRI-O, or GKE's nodes.
    PodWritable,
    /// A privileged container of a pod.
    PodPrivileged,
    /// A step of the job of Slurm that this is: without being asked, wherever no cgroup can be made.
    SlurmStep,
}

impl Way {
    /// The hint.
    pub fn text(self) -> &'static str {
        match self {
            Self::UserScope => "in a scope of your own: `systemd-run --user --scope -p Delegate=yes loadline …`",
            Self::UserScopeDelegated => {
                "in a scope of your own, once systemd delegates limits to users: as root put `Delegate=cpu memory` \
                 below `[Service]` by `systemctl edit user@.service`, log in again, then \
                 `systemd-run --user --scope -p Delegate=yes loadline …`"
            }
            Self::Docker => "in a container: `docker run --privileged --cgroupns=host … loadline …`",
            Self::Podman => "in a container: `podman run --privileged --cgroupns=host … loadline …`",
            Self::Root => "as root: `sudo loadline …`",
            Self::PodWritable => {
                "in a pod that may write its own cgroup: ask for a runtime class of containerd 2.1 or newer with \
                 `cgroup_writable = true`, for CRI-O's annotation \
                 `io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw: \"true\"`, or on GKE for nodes with writable cgroups"
            }
            Self::PodPrivileged => {
                "in a container with `securityContext: {privileged: true}`, in a namespace and on nodes of its own"
            }
            Self::SlurmStep => {
                "in a step of this job of Slurm, for each trial, without being asked: in whole MiB, where Slurm's \
                 cgroup.conf has `ConstrainRAMSpace=yes`"
            }
        }
    }
}

/// The ways to a limit by a controller on this machine, the nearest first; none for root outside of a pod and of a job,
/// who lacks a file system that can be written.
pub(crate) fn ways(controller: &'static str) -> Vec<Way> {
    Surroundings::read(controller).ways()
}

/// One thing to do where a limit could not be set.
pub(super) fn hint(controller: &'static str) -> String {
    match ways(controller).first() {
        Some(way) => format!("run it {}", way.text()),
        None => "the cgroup file system must be writable: in Docker `--privileged --cgroupns=host`".to_owned(),
    }
}

/// The facts of a machine that decide which ways there are.
#[derive(Debug)]
struct Surroundings {
    uid: u32,
    /// The hierarchy of cgroups that has the controller.
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
            // Slurm gives its steps memory, and no share of CPU time.
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
        // Without Docker's daemon a container can only be given what its user has.
        let podman = self.has("podman") && scope == Some(Way::UserScope);
        let containers = [(docker, Way::Docker), (podman, Way::Podman)];
        let containers = containers.into_iter().filter(|(open, _)| *open).map(|(_, way)| way);
        step.into_iter().chain(scope).chain(containers).chain([Way::Root]).collect()
    }

    /// A scope, where the user has a systemd and cgroups can be handed down at all.
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

    /// Whether this program is installed.
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

    /// A user on a machine where all of this is there, with these controllers handed down.
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
    fn a_pod_is_told_what_to_ask_for() {
        let folder = tempfile::tempdir().unwrap();
        let pod = |uid, version| {
            let hierarchy = Some(hierarchy(version, folder.path()));
            Surroundings { uid, hierarchy, is_pod: true, ..machine(folder.path(), "memory") }.ways()
        };
        assert_eq!(pod(0, CgroupVersion::V2), [Way::PodWritable, Way::PodPrivileged]);
        assert_eq!(pod(7, CgroupVersion::V1), [Way::PodPrivileged]);
    }

    #[test]
    fn a_way_is_told_only_where_it_is_open() {
        use Way::*;
        let folder = tempfile::tempdir().unwrap();
        let all = machine(folder.path(), "cpu memory pids\n");
        assert_eq!(all.ways(), [UserScope, Docker, Podman, Root]);
        assert_eq!(Surroundings { uid: 0, ..machine(folder.path(), "memory") }.ways(), []);
        // On v1 nothing is handed down; without a systemd of the user there is no scope.
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
        // A daemon that does not run, or that is closed to this user.
        let closed = Surroundings { docker_socket: elsewhere, ..machine(folder.path(), "memory") };
        assert_eq!(closed.ways(), [UserScope, Podman, Root]);
        let nothing = Surroundings { path: OsString::new(), ..machine(folder.path(), "memory") };
        assert_eq!(nothing.ways(), [Root]);
    }
}
