//! A JVM's name as its operators know it; never its pid.
//!
//! ```text
//! /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f…_….slice/cri-containerd-8c….scope   Kubernetes
//! /kubepods/burstable/pod1f…-…/8c…                                                                      the same
//! /system.slice/shop.service                                                                            a unit
//! /user.slice/user-1000.slice/user@1000.service/app.slice/shop.service                                  a user's unit
//! /system.slice/docker-8c….scope   /docker/8c…   /machine.slice/libpod-8c….scope                        a container
//! ```
//!
//! A program in a service, scope, or container may create cgroups with any name below its own. Only the outermost of
//! these is therefore trusted. The exception is a user's manager: it runs that user's units, whose names include the
//! user.

use crate::weigh::container::{id, part};
use std::collections::BTreeMap;

/// The environment of a JVM, according to its cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JvmEnvironment {
    /// A pod's container, with its ID if the cgroup has it.
    Kubernetes { container: Option<String> },
    /// A container by ID; with the user whose manager runs it, if any.
    Container { id: String, user: Option<u32> },
    /// A systemd service; with the user whose manager runs it, if any.
    Unit { name: String, user: Option<u32> },
    /// None of these.
    Elsewhere,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Name {
    /// The display name: `prod/shop-6f4d-x2v/app`, `shop.service`, `app.jar`.
    pub(super) text: String,
    /// Additional metric labels: `namespace`, `pod`, `container`, `unit`, `main`.
    pub(super) labels: Vec<(&'static str, String)>,
}

impl JvmEnvironment {
    /// Parses a cgroup path below its mount.
    pub(super) fn of(cgroup: &str) -> Self {
        let mut parts = cgroup.split('/').filter(|part| !part.is_empty());
        let mut user = None;
        while let Some(name) = parts.next() {
            if let Some(id) = id(name) {
                return Self::Container { id, user };
            }
            // Below a user's manager, the user can give anything a name like a pod's.
            if name.starts_with("kubepods") && user.is_none() {
                return Self::Kubernetes { container: parts.find_map(id) };
            }
            if let (Some(uid), None) = (manager_of(name), user) {
                user = Some(uid);
            } else if name.ends_with(".service") {
                return Self::Unit { name: part(name), user };
            } else if name.ends_with(".scope") || name.starts_with("lxc.") {
                return Self::Elsewhere;
            }
        }
        Self::Elsewhere
    }

    /// Whether it is the unit with this name: the system's, or the calling user's.
    pub(super) fn is_unit(&self, asked: &str, who: u32) -> bool {
        matches!(self, Self::Unit { name, user } if name == asked && user.is_none_or(|user| user == who))
    }
}

/// The user of a manager `user@1000.service`.
fn manager_of(part: &str) -> Option<u32> {
    part.strip_prefix("user@")?.strip_suffix(".service")?.parse().ok()
}

impl Name {
    /// The name of a JVM with this main class or archive.
    pub(super) fn of(place: &JvmEnvironment, main: &str, pods: &BTreeMap<String, [String; 3]>) -> Self {
        let of_user = |user: &Option<u32>, text: String| match user {
            Some(user) => format!("user-{user}/{text}"),
            None => text,
        };
        let (text, mut labels) = match place {
            JvmEnvironment::Kubernetes { container: Some(id) } => match pods.get(id) {
                Some([namespace, pod, container]) => (
                    format!("{namespace}/{pod}/{container}"),
                    vec![("namespace", namespace.clone()), ("pod", pod.clone()), ("container", container.clone())],
                ),
                None => (format!("container {}", &id[..12]), vec![("container_id", id.clone())]),
            },
            JvmEnvironment::Container { id, user } => {
                let text = of_user(user, format!("container {}", &id[..12]));
                (text, vec![("container_id", of_user(user, id.clone()))])
            }
            JvmEnvironment::Unit { name, user } => {
                let text = of_user(user, name.clone());
                (text.clone(), vec![("unit", text)])
            }
            JvmEnvironment::Kubernetes { container: None } | JvmEnvironment::Elsewhere => (main.to_owned(), Vec::new()),
        };
        labels.push(("main", main.to_owned()));
        Self { text: plain(text), labels }
    }
}

/// The name without the number that distinguishes JVMs with the same name: `shop` for `shop#2`.
pub(super) fn without_number(name: &str) -> Option<&str> {
    let (plain, number) = name.rsplit_once('#')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(plain)
}

/// Avoids names that look numbered, because a cgroup or archive may be named `shop#2`.
fn plain(mut name: String) -> String {
    if let Some(at) = without_number(&name).map(str::len) {
        name.replace_range(at..=at, ".");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weigh::container::{ID, PART_CHARS_MAX, pod};

    fn long(digit: char) -> String {
        digit.to_string().repeat(ID)
    }

    #[test]
    fn a_cgroup_path_identifies_unit_or_container() {
        let id = long('8');
        let kube = JvmEnvironment::Kubernetes { container: Some(id.clone()) };
        let container = JvmEnvironment::Container { id: id.clone(), user: None };
        let unit = |name: &str| JvmEnvironment::Unit { name: name.to_owned(), user: None };
        let of_user = JvmEnvironment::Unit { name: "shop.service".to_owned(), user: Some(1000) };
        let scope = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-{id}.scope"
        );
        for (cgroup, place) in [
            (scope, kube.clone()),
            (format!("/kubepods/burstable/pod1-2/{id}"), kube),
            ("/kubepods/besteffort/pod1-2".to_owned(), JvmEnvironment::Kubernetes { container: None }),
            (format!("/docker/{id}"), container.clone()),
            (format!("/system.slice/docker-{id}.scope"), container.clone()),
            (format!("/machine.slice/libpod-{id}.scope/container"), container),
            ("/system.slice/shop.service".to_owned(), unit("shop.service")),
            ("/user.slice/user@1000.service/app.slice/shop.service".to_owned(), of_user),
            ("/user.slice/user@1000.service".to_owned(), JvmEnvironment::Elsewhere),
            ("/".to_owned(), JvmEnvironment::Elsewhere),
        ] {
            assert_eq!(JvmEnvironment::of(&cgroup), place, "{cgroup}");
        }
    }

    #[test]
    fn a_self_made_cgroup_does_not_impersonate_another_container() {
        let (own, other) = (long('a'), long('b'));
        let pod = "/kubepods.slice/kubepods-pod1_2.slice";
        let container = |user| JvmEnvironment::Container { id: own.clone(), user };
        for (cgroup, place) in [
            (
                format!("{pod}/cri-containerd-{own}.scope/kubepods.slice/cri-containerd-{other}.scope"),
                JvmEnvironment::Kubernetes { container: Some(own.clone()) },
            ),
            (format!("/docker/{own}/kubepods/pod1-2/{other}"), container(None)),
            (format!("/docker/{own}/system.slice/shop.service"), container(None)),
            (
                format!("/system.slice/ci.service/kubepods/{other}"),
                JvmEnvironment::Unit { name: "ci.service".to_owned(), user: None },
            ),
            ("/system.slice/machine-x.scope/payload/system.slice/shop.service".to_owned(), JvmEnvironment::Elsewhere),
            ("/lxc.payload.x/system.slice/shop.service".to_owned(), JvmEnvironment::Elsewhere),
            ("/user.slice/user-7.slice/session-3.scope/shop.service".to_owned(), JvmEnvironment::Elsewhere),
            (
                format!("/user.slice/user-7.slice/user@7.service/kubepods.slice/cri-containerd-{own}.scope"),
                container(Some(7)),
            ),
            (
                "/user.slice/user-7.slice/user@7.service/app.slice/user@8.service/shop.service".to_owned(),
                JvmEnvironment::Unit { name: "user@8.service".to_owned(), user: Some(7) },
            ),
        ] {
            assert_eq!(JvmEnvironment::of(&cgroup), place, "{cgroup}");
        }
        let pods = BTreeMap::from([(own.clone(), ["prod", "shop", "app"].map(str::to_owned))]);
        let name = |place| Name::of(&place, "app.jar", &pods);
        assert_eq!(name(container(Some(7))).text, "user-7/container aaaaaaaaaaaa");
        let of_user = name(JvmEnvironment::of("/user.slice/user-7.slice/user@7.service/shop.service"));
        assert_eq!(of_user.text, "user-7/shop.service");
        assert!(of_user.labels.contains(&("unit", "user-7/shop.service".to_owned())), "{of_user:?}");
    }

    #[test]
    fn a_unit_belongs_to_the_system_or_the_requesting_user() {
        let unit = |cgroup: &str, who| JvmEnvironment::of(cgroup).is_unit("shop.service", who);
        let of_user = "/user.slice/user-7.slice/user@7.service/app.slice/shop.service";
        assert!(unit("/system.slice/shop.service", 0) && unit("/system.slice/shop.service", 7));
        assert!(unit(of_user, 7) && !unit(of_user, 0) && !unit(of_user, 8));
        assert!(!unit("/system.slice/bank.service/shop.service", 0));
    }

    #[test]
    fn names_that_look_numbered_are_changed() {
        let name = |main: &str| Name::of(&JvmEnvironment::Elsewhere, main, &BTreeMap::new()).text;
        for (main, text) in [
            ("shop", "shop"),
            ("shop#2", "shop.2"),
            ("shop#2#3", "shop#2.3"),
            ("shop#", "shop#"),
            ("#1", ".1"),
            ("shop#2.jar", "shop#2.jar"),
        ] {
            assert_eq!(name(main), text);
            assert_eq!(without_number(&name(main)), None, "{main}");
        }
        assert_eq!((without_number("shop#12"), without_number("shop12")), (Some("shop"), None));
    }

    #[test]
    fn a_pod_is_identified_by_its_log_link() {
        let id = long('c');
        let known = pod(&format!("shop-6f4d-x2v_prod_app-{id}.log"));
        assert_eq!(known, Some((id.clone(), ["prod", "shop-6f4d-x2v", "app"].map(str::to_owned))));
        for broken in [format!("shop_app-{id}.log"), format!("a_b_c-{id}"), "a_b_c-12.log".to_owned(), String::new()] {
            assert_eq!(pod(&broken), None, "{broken}");
        }
        let pods = BTreeMap::from_iter(known);
        let place = JvmEnvironment::Kubernetes { container: Some(id) };
        assert_eq!(Name::of(&place, "app.jar", &pods).text, "prod/shop-6f4d-x2v/app");
        assert_eq!(Name::of(&place, "app.jar", &BTreeMap::new()).text, "container cccccccccccc");
    }

    #[test]
    fn a_name_chosen_by_a_container_is_sanitized() {
        let hostile = format!("\u{1b}]0;owned\u{7}\"}}\n{}.service", "x".repeat(300));
        let JvmEnvironment::Unit { name, .. } = JvmEnvironment::of(&format!("/system.slice/{hostile}")) else {
            panic!("the path has no unit")
        };
        assert!(!name.contains(char::is_control) && name.chars().count() <= PART_CHARS_MAX, "{name}");
        let (_, parts) = pod(&format!("shop\u{1b}[2J_prod\r_app\0-{}.log", long('c'))).unwrap();
        assert!(parts.iter().all(|part| !part.contains(char::is_control)), "{parts:?}");
    }
}
