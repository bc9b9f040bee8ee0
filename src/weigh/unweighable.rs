//! Processes that `loadline account` refuses, in words.

use crate::error::Error;

/// Why a process cannot be weighed at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unweighable {
    /// No process has this id, or it ended meanwhile.
    Gone,
    /// It is another program; its name as the kernel has it.
    NoJvm(String),
    /// It is a native image of GraalVM: Java without a JVM; its name as the kernel has it.
    NativeImage(String),
    /// It is the one that asks.
    Loadline,
    /// It ended, and its parent did not ask how.
    Zombie,
    /// It runs as another user, and Loadline not as root.
    OtherUser,
}

impl Unweighable {
    /// The error for the process `pid`.
    pub(crate) fn error(&self, pid: u32) -> Error {
        match self {
            Self::Gone => Error::request(format!("there is no process with pid {pid}")),
            Self::NoJvm(name) => Error::request(format!("the process with pid {pid} ({name}) is no HotSpot JVM")),
            Self::NativeImage(name) => {
                Error::request(format!("the process with pid {pid} ({name}) is a GraalVM native image, no HotSpot JVM"))
                    .hint("`kind: native` in a scenario weighs it as a program without a JVM")
            }
            Self::Loadline => Error::request(format!("pid {pid} is Loadline itself")),
            Self::Zombie => {
                Error::request(format!("the process with pid {pid} has ended and waits to be reaped (zombie)"))
            }
            Self::OtherUser => Error::machine(format!("the process with pid {pid} belongs to another user"))
                .hint("run Loadline as that user, or as root"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn only_permission_is_the_machines_fault() {
        let check = |why: Unweighable, kind, what: &str| {
            let error = why.error(123);
            assert_eq!((error.kind, error.what.as_str()), (kind, what));
        };
        use ErrorKind::{Machine, Request};
        check(Unweighable::Gone, Request, "there is no process with pid 123");
        check(Unweighable::NoJvm("cat".into()), Request, "the process with pid 123 (cat) is no HotSpot JVM");
        check(Unweighable::Loadline, Request, "pid 123 is Loadline itself");
        let image = "the process with pid 123 (app) is a GraalVM native image, no HotSpot JVM";
        check(Unweighable::NativeImage("app".into()), Request, image);
        let zombie = "the process with pid 123 has ended and waits to be reaped (zombie)";
        check(Unweighable::Zombie, Request, zombie);
        check(Unweighable::OtherUser, Machine, "the process with pid 123 belongs to another user");
    }
}
