//! Finds a container given by the user, and reads the charge of its memory cgroup.
//!
//! ```text
//! /kubepods.slice/…/kubepods-burstable-pod1f…_….slice/cri-containerd-8c….scope   a container, below its pod
//! /system.slice/docker-8c….scope   /docker/8c…   /machine.slice/libpod-8c….scope   a container
//! /var/log/containers/shop-6f4d-x2v_prod_app-8c….log   pod, namespace, and container of an ID, from the kubelet
//! ```

use super::identity::{self, harmless};
use super::watched::charge_by_owner;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::kernel::cgroup::{Cgroup, Hierarchy, MEMORY};
use crate::observe::cgroup::MemoryCgroup;
use crate::observe::jvms;
use crate::observe::procfs::Process;
use crate::record::{CHARGE_SCHEMA, ChargeDocument};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Hex digits of a container ID.
pub(crate) const ID: usize = 64;
/// Digits of a shortened ID, and the minimum for a lookup.
const SHORT_ID: usize = 12;
const SHORTEST_ID: usize = 4;
/// The maximum length of a name's part: a cgroup's creator may choose any name of up to 255 bytes.
pub(crate) const PART_CHARS_MAX: usize = 120;
/// Links to read in `/var/log/containers`; a node runs a few hundred containers.
const LINKS_MAX: usize = 10_000;
/// The kubelet's links to container logs.
const POD_LINKS: &str = "/var/log/containers";
/// Names listed in an error.
const LISTED_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CgroupRequest {
    /// A directory, or a path below the mount point.
    Path(PathBuf),
    /// A container ID or a prefix of it.
    Container(String),
    Pod(String),
}

impl CgroupRequest {
    /// Reads the cgroup's charge; the caller adds time, command, and machine. Errors: `Request` if there is no such
    /// cgroup, or more than one; `Machine` if the controller is not mounted, or its files are unreadable.
    pub(crate) fn weigh(&self, clock: &Clock) -> Result<ChargeDocument> {
        let hierarchy = Hierarchy::find(MEMORY)
            .map_err(|cause| Error::machine(format!("the mounts cannot be read: {cause}")).hint("mount /proc"))?
            .ok_or_else(|| {
                Error::machine("no cgroups with the memory controller are mounted")
                    .hint("in a container, mount the host's: `-v /sys/fs/cgroup:/sys/fs/cgroup:ro`")
            })?;
        let folder = match self {
            Self::Path(path) => by_path(path, &hierarchy)?,
            Self::Container(id) => by_id(id, &hierarchy)?,
            Self::Pod(name) => by_pod(name, &pods(), &hierarchy)?,
        };
        charge_of(hierarchy.cgroup(folder), clock)
    }
}

fn charge_of(cgroup: Cgroup, clock: &Clock) -> Result<ChargeDocument> {
    let folder = cgroup.folder.display().to_string();
    let unreadable = |why: String| {
        Error::machine(format!("the charge cannot be read: {why}"))
            .at(folder.clone())
            .hint("specify a cgroup with the memory controller; `cat /proc/PID/cgroup` shows the cgroups of a process")
    };
    let opened = MemoryCgroup::open(cgroup).map_err(|why| unreadable(why.to_string()))?;
    let memory = opened.read(clock).map_err(|why| unreadable(why.to_string()))?.value;
    let pids: BTreeSet<u32> = opened.pids().into_iter().collect();
    let found = jvms::find().unwrap_or_default();
    Ok(ChargeDocument {
        schema: CHARGE_SCHEMA.to_owned(),
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        charge: charge_by_owner(&opened, &memory, clock),
        peak_bytes: memory.peak.map(|peak| peak.0),
        oom_kills: memory.events.oom_kills,
        jvms: found.known.into_iter().filter(|jvm| pids.contains(&jvm.pid)).map(identity::named).collect(),
        ..ChargeDocument::default()
    })
}

/// The path of a cgroup below the mount point; unchanged if no cgroups are mounted. Errors: `Request` if there is no
/// such cgroup.
pub(crate) fn cgroup_path(written: &str) -> Result<String> {
    let Ok(Some(hierarchy)) = Hierarchy::find(MEMORY) else { return Ok(written.to_owned()) };
    let folder = by_path(Path::new(written), &hierarchy)?;
    Ok(format!("/{}", folder.strip_prefix(&hierarchy.mount).unwrap_or(&folder).display()))
}

/// The directory of a path that includes the mount point, or is relative to it.
fn by_path(path: &Path, hierarchy: &Hierarchy) -> Result<PathBuf> {
    let below = path.strip_prefix(&hierarchy.mount).unwrap_or(path);
    let below = below.strip_prefix("/").unwrap_or(below);
    let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    let folder = hierarchy.mount.join(below);
    if is_plain && folder.is_dir() {
        return Ok(folder);
    }
    Err(Error::request(format!("there is no memory cgroup `{}`", path.display()))
        .at(hierarchy.mount.display().to_string())
        .hint(of_process(path).unwrap_or_else(|| {
            "`cat /proc/PID/cgroup` shows the cgroups of a process, as paths below this directory".to_owned()
        })))
}

/// Suggests the cgroup of a process, if its pid was given instead.
fn of_process(path: &Path) -> Option<String> {
    let pid = path.to_str()?.parse().ok()?;
    let name = MemoryCgroup::of(&Process::open(pid).ok()?).ok()?.name();
    Some(format!("`{pid}` is a process; its cgroup is `{name}`"))
}

/// The outermost cgroup of the container with this ID.
fn by_id(asked: &str, hierarchy: &Hierarchy) -> Result<PathBuf> {
    let digits = asked.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits || asked.len() < SHORTEST_ID {
        return Err(Error::request(format!("`{asked}` is not a container ID"))
            .hint("specify its first 12 hexadecimal digits: `podman ps`, `docker ps`, and `crictl ps` list them"));
    }
    let all = containers(hierarchy);
    let found: Vec<&PathBuf> = all.iter().filter(|(id, _)| id.starts_with(asked)).map(|(_, folder)| folder).collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let known: Vec<&str> = all.keys().map(|id| &id[..SHORT_ID]).take(LISTED_MAX).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(Error::request(format!("no visible container has an ID that begins with `{asked}`"))
                .hint(format!("visible containers: {known}")))
        }
        several => Err(Error::request(format!("{} containers have an ID that begins with `{asked}`", several.len()))
            .hint("specify more digits")),
    }
}

/// The machine's containers by ID, each with its outermost cgroup.
fn containers(hierarchy: &Hierarchy) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for cgroup in hierarchy.cgroup(hierarchy.mount.clone()).below() {
        let name = cgroup.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(id) = id(name) {
            // Outer directories come first.
            found.entry(id).or_insert(cgroup.folder);
        }
    }
    found
}

/// The cgroup of a pod, which is the parent of its containers.
fn by_pod(name: &str, pods: &BTreeMap<String, [String; 3]>, hierarchy: &Hierarchy) -> Result<PathBuf> {
    let is_meant = |[namespace, pod, _]: &[String; 3]| pod == name || format!("{namespace}/{pod}") == name;
    let ids: Vec<&String> = pods.iter().filter(|(_, names)| is_meant(names)).map(|(id, _)| id).collect();
    let all = containers(hierarchy);
    let above = ids.iter().filter_map(|id| all.get(*id)?.parent()).map(Path::to_path_buf);
    let found: BTreeSet<PathBuf> = above.collect();
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            Err(Error::request(format!("more than one pod is named `{name}`"))
                .hint("add its namespace: `NAMESPACE/NAME`"))
        }
        (None, _) => {
            let known: BTreeSet<String> = pods.values().map(|[space, pod, _]| format!("{space}/{pod}")).collect();
            let known: Vec<String> = known.into_iter().take(LISTED_MAX).collect();
            let hint = match known.as_slice() {
                [] => format!("{POD_LINKS} lists no pods; run on the pod's node, or specify `--container ID`"),
                some => format!("pods in {POD_LINKS}: {}", some.join(", ")),
            };
            Err(Error::request(format!("no pod named `{name}` runs on this machine")).hint(hint))
        }
    }
}

/// The ID in `cri-containerd-8c….scope`, `docker-8c….scope`, or `8c…`.
pub(crate) fn id(part: &str) -> Option<String> {
    let bare = part.strip_suffix(".scope").unwrap_or(part);
    let word = bare.rsplit('-').next()?;
    (word.len() == ID && word.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| word.to_owned())
}

/// Pod, namespace, and container by ID, from the names of the kubelet's links; empty if there are none.
pub(crate) fn pods() -> BTreeMap<String, [String; 3]> {
    let links = std::fs::read_dir(POD_LINKS).into_iter().flatten().flatten().take(LINKS_MAX);
    links.filter_map(|link| pod(link.file_name().to_str()?)).collect()
}

/// `POD_NAMESPACE_CONTAINER-ID.log`
pub(crate) fn pod(link: &str) -> Option<(String, [String; 3])> {
    let (names, id) = link.strip_suffix(".log")?.rsplit_once('-')?;
    let mut parts = names.splitn(3, '_');
    let [pod, namespace, container] = [parts.next()?, parts.next()?, parts.next()?];
    let whole = id.len() == ID && ![pod, namespace, container].contains(&"");
    whole.then(|| (id.to_owned(), [namespace, pod, container].map(part)))
}

/// Makes a part of a name safe for a terminal and a single line.
pub(crate) fn part(text: &str) -> String {
    harmless(text, PART_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cgroup::CgroupVersion;
    use std::fs;

    fn tree(folders: &[String]) -> (tempfile::TempDir, Hierarchy) {
        let root = tempfile::tempdir().unwrap();
        folders.iter().for_each(|folder| fs::create_dir_all(root.path().join(folder)).unwrap());
        let mount = root.path().to_path_buf();
        (root, Hierarchy { controller: MEMORY, version: CgroupVersion::V2, mount, root: "/".into() })
    }

    fn below(folder: &Path, hierarchy: &Hierarchy) -> String {
        folder.strip_prefix(&hierarchy.mount).unwrap().display().to_string()
    }

    #[test]
    fn a_container_is_found_by_id_prefix_at_its_outermost_cgroup() {
        let (shop, bank) = (format!("8c{}", "0".repeat(62)), format!("8d{}", "1".repeat(62)));
        let libpod = format!("machine.slice/libpod-{shop}.scope");
        let (_root, hierarchy) = tree(&[format!("{libpod}/container/{bank}"), format!("docker/{bank}")]);
        let found = |asked: &str| by_id(asked, &hierarchy).map(|folder| below(&folder, &hierarchy));
        assert_eq!(found("8c00").unwrap(), libpod);
        assert_eq!(found(&bank).unwrap(), format!("docker/{bank}"), "the outermost cgroup of a container is chosen");
        let refused = |asked: &str| found(asked).map_err(|error| (error.what, error.hint.unwrap())).unwrap_err();
        assert!(refused("9999").1.contains("8c0000000000, 8d1111111111"));
        for slip in ["8c", "shop", "", "8c00\u{1b}[2J"] {
            assert!(refused(slip).0.contains("not a container ID"), "{slip}");
        }
    }

    #[test]
    fn cgroup_paths_are_relative_to_the_mount_and_cannot_escape() {
        let (_root, hierarchy) = tree(&["system.slice/shop.service".to_owned()]);
        let whole = hierarchy.mount.join("system.slice/shop.service");
        for path in [Path::new("/system.slice/shop.service"), Path::new("system.slice/shop.service"), &whole] {
            assert_eq!(by_path(path, &hierarchy).unwrap(), whole);
        }
        for wrong in ["../..", "/system.slice/../..", "/nowhere", "/etc"] {
            assert!(by_path(Path::new(wrong), &hierarchy).is_err(), "{wrong}");
        }
        let own = std::process::id();
        let Ok(cgroup) = MemoryCgroup::of(&Process::open(own).unwrap()) else { return };
        let hint = by_path(Path::new(&own.to_string()), &hierarchy).unwrap_err().hint.unwrap();
        assert_eq!(hint, format!("`{own}` is a process; its cgroup is `{}`", cgroup.name()));
    }

    #[test]
    fn a_pod_is_the_cgroup_above_its_containers() {
        let ids: Vec<String> = ['a', 'b', 'c'].map(|digit| digit.to_string().repeat(ID)).into();
        let pod = "kubepods.slice/kubepods-pod1_2.slice";
        let scope = |pod: &str, id: &str| format!("{pod}/cri-containerd-{id}.scope");
        let (_root, hierarchy) =
            tree(&[scope(pod, &ids[0]), scope(pod, &ids[1]), scope("kubepods.slice/kubepods-pod3.slice", &ids[2])]);
        let names = |space: &str, pod: &str, container: &str| [space, pod, container].map(str::to_owned);
        let pods = BTreeMap::from([
            (ids[0].clone(), names("prod", "shop", "app")),
            (ids[1].clone(), names("prod", "shop", "proxy")),
            (ids[2].clone(), names("test", "shop", "app")),
        ]);
        let found = |name: &str| by_pod(name, &pods, &hierarchy);
        assert_eq!(below(&found("prod/shop").unwrap(), &hierarchy), pod);
        assert!(found("shop").unwrap_err().what.contains("more than one pod"));
        assert!(found("bank").unwrap_err().hint.unwrap().contains("prod/shop, test/shop"));
    }
}
