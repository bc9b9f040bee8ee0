//! By what a JVM is known: what it is to who runs it, never its pid.
//!
//! ```text
//! /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f…_….slice/cri-containerd-8c….scope   Kubernetes
//! /kubepods/burstable/pod1f…-…/8c…                                                                      the same
//! /system.slice/shop.service   /user.slice/user-1000.slice/user@1000.service/app.slice/shop.service     a unit
//! /system.slice/docker-8c….scope   /docker/8c…   /machine.slice/libpod-8c….scope                        a container
//! /var/log/containers/shop-6f4d-x2v_prod_app-8c….log          pod, namespace and container of an id, by the kubelet
//! ```

use crate::weigh::harmless;
use std::collections::BTreeMap;
use std::path::Path;

/// An id of a container, in hexadecimal digits.
const ID: usize = 64;
/// What a part of a name may have: whoever makes a cgroup may call it anything of 255 bytes.
const PART_CHARS_MAX: usize = 120;
/// Links of `/var/log/containers` looked at; a node runs some hundred containers.
const LINKS_MAX: usize = 10_000;

/// What runs a JVM, by its cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A container of a pod, by its id where the cgroup has it.
    Kubernetes { container: Option<String> },
    /// A container, by its id.
    Container { id: String },
    /// A service of systemd.
    Unit { name: String },
    /// None of these.
    Elsewhere,
}

/// What a JVM is called, with the parts of which it is made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Name {
    /// As shown: `prod/shop-6f4d-x2v/app`, `shop.service`, `app.jar`.
    pub(super) text: String,
    /// Labels of a metric beside it: `namespace`, `pod`, `container`, `unit`, `main`.
    pub(super) labels: Vec<(&'static str, String)>,
}

impl Place {
    /// By the path of the cgroup below its mount.
    pub(super) fn of(cgroup: &str) -> Self {
        let parts: Vec<&str> = cgroup.split('/').filter(|part| !part.is_empty()).collect();
        let id = parts.iter().rev().find_map(|part| id(part));
        if parts.iter().any(|part| part.starts_with("kubepods")) {
            return Self::Kubernetes { container: id };
        }
        if let Some(id) = id {
            return Self::Container { id };
        }
        let service = |part: &&&str| part.ends_with(".service") && !part.starts_with("user@");
        match parts.iter().rev().find(service) {
            Some(name) => Self::Unit { name: part(name) },
            None => Self::Elsewhere,
        }
    }
}

/// A part of a name that neither steers a terminal nor ends a line.
fn part(text: &str) -> String {
    harmless(text, PART_CHARS_MAX)
}

/// The id in `cri-containerd-8c….scope`, `docker-8c….scope` or `8c…`.
fn id(part: &str) -> Option<String> {
    let bare = part.strip_suffix(".scope").unwrap_or(part);
    let word = bare.rsplit('-').next()?;
    (word.len() == ID && word.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| word.to_owned())
}

/// Pod, namespace and container of each id, by the names of the kubelet's links; empty where there are none.
pub(super) fn pods(folder: &Path) -> BTreeMap<String, [String; 3]> {
    let links = std::fs::read_dir(folder).into_iter().flatten().flatten().take(LINKS_MAX);
    links.filter_map(|link| pod(link.file_name().to_str()?)).collect()
}

/// `POD_NAMESPACE_CONTAINER-ID.log`
fn pod(link: &str) -> Option<(String, [String; 3])> {
    let (names, id) = link.strip_suffix(".log")?.rsplit_once('-')?;
    let mut parts = names.splitn(3, '_');
    let [pod, namespace, container] = [parts.next()?, parts.next()?, parts.next()?];
    let whole = id.len() == ID && ![pod, namespace, container].contains(&"");
    whole.then(|| (id.to_owned(), [namespace, pod, container].map(part)))
}

impl Name {
    /// Of a JVM in this place whose main class or archive is `main`.
    pub(super) fn of(place: &Place, main: &str, pods: &BTreeMap<String, [String; 3]>) -> Self {
        let (text, mut labels) = match place {
            Place::Kubernetes { container: Some(id) } => match pods.get(id) {
                Some([namespace, pod, container]) => (
                    format!("{namespace}/{pod}/{container}"),
                    vec![("namespace", namespace.clone()), ("pod", pod.clone()), ("container", container.clone())],
                ),
                None => (format!("container {}", &id[..12]), vec![("container_id", id.clone())]),
            },
            Place::Container { id } => (format!("container {}", &id[..12]), vec![("container_id", id.clone())]),
            Place::Unit { name } => (name.clone(), vec![("unit", name.clone())]),
            Place::Kubernetes { container: None } | Place::Elsewhere => (main.to_owned(), Vec::new()),
        };
        labels.push(("main", main.to_owned()));
        Self { text, labels }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(digit: char) -> String {
        digit.to_string().repeat(ID)
    }

    #[test]
    fn a_cgroup_says_who_runs_it() {
        let id = long('8');
        let kube = Place::Kubernetes { container: Some(id.clone()) };
        let container = Place::Container { id: id.clone() };
        let unit = |name: &str| Place::Unit { name: name.to_owned() };
        let scope = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-{id}.scope"
        );
        for (cgroup, place) in [
            (scope, kube.clone()),
            (format!("/kubepods/burstable/pod1-2/{id}"), kube),
            ("/kubepods/besteffort/pod1-2".to_owned(), Place::Kubernetes { container: None }),
            (format!("/docker/{id}"), container.clone()),
            (format!("/system.slice/docker-{id}.scope"), container.clone()),
            (format!("/machine.slice/libpod-{id}.scope/container"), container),
            ("/system.slice/shop.service".to_owned(), unit("shop.service")),
            ("/user.slice/user@1000.service/app.slice/shop.service".to_owned(), unit("shop.service")),
            ("/user.slice/user@1000.service".to_owned(), Place::Elsewhere),
            ("/".to_owned(), Place::Elsewhere),
        ] {
            assert_eq!(Place::of(&cgroup), place, "{cgroup}");
        }
    }

    #[test]
    fn a_pod_is_known_by_the_link_of_its_log() {
        let id = long('c');
        let known = pod(&format!("shop-6f4d-x2v_prod_app-{id}.log"));
        assert_eq!(known, Some((id.clone(), ["prod", "shop-6f4d-x2v", "app"].map(str::to_owned))));
        for broken in [format!("shop_app-{id}.log"), format!("a_b_c-{id}"), "a_b_c-12.log".to_owned(), String::new()] {
            assert_eq!(pod(&broken), None, "{broken}");
        }
        let pods = BTreeMap::from_iter(known);
        let place = Place::Kubernetes { container: Some(id) };
        assert_eq!(Name::of(&place, "app.jar", &pods).text, "prod/shop-6f4d-x2v/app");
        assert_eq!(Name::of(&place, "app.jar", &BTreeMap::new()).text, "container cccccccccccc");
    }

    #[test]
    fn a_name_that_a_container_chose_steers_nothing() {
        let hostile = format!("\u{1b}]0;owned\u{7}\"}}\n{}.service", "x".repeat(300));
        let Place::Unit { name } = Place::of(&format!("/system.slice/{hostile}")) else { panic!("no unit") };
        assert!(!name.contains(char::is_control) && name.chars().count() <= PART_CHARS_MAX, "{name}");
        let (_, parts) = pod(&format!("shop\u{1b}[2J_prod\r_app\0-{}.log", long('c'))).unwrap();
        assert!(parts.iter().all(|part| !part.contains(char::is_control)), "{parts:?}");
    }
}
