//! Recognizes lines in which a JVM or server reports problems.

use super::protocol::Exit;

/// The kind of a complaint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComplaintKind {
    /// The main class, a jar, or an agent is missing. A JVM does not start without its agent.
    NotFound,
    /// The JVM rejected its options.
    JvmRefused,
    /// The machine or the limit has less memory than the JVM requests.
    NoMemory,
    /// The classes require a newer JDK.
    OldJdk,
    /// The port is taken.
    PortTaken,
    /// `java.lang.OutOfMemoryError`.
    OutOfMemoryError,
    /// An option has no effect, so two configurations may be identical.
    OptionIgnored,
    /// An option is deprecated.
    OptionDeprecated,
}

/// A line that reports a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Its kind.
    pub kind: ComplaintKind,
    /// The line.
    pub line: String,
}

/// Texts that identify a complaint; the first match wins. Seen with JDK 8 to 25.
const SIGNS: &[(&str, ComplaintKind)] = &[
    ("java.lang.OutOfMemoryError", ComplaintKind::OutOfMemoryError),
    ("Terminating due to java.lang.OutOfMemoryError", ComplaintKind::OutOfMemoryError),
    ("insufficient memory for the Java Runtime", ComplaintKind::NoMemory),
    ("Could not reserve enough space", ComplaintKind::NoMemory),
    ("Unrecognized VM option", ComplaintKind::JvmRefused),
    ("Unrecognized option: ", ComplaintKind::JvmRefused),
    ("Invalid maximum heap size", ComplaintKind::JvmRefused),
    ("Invalid initial heap size", ComplaintKind::JvmRefused),
    ("Too small maximum heap", ComplaintKind::JvmRefused),
    ("Too small initial heap", ComplaintKind::JvmRefused),
    ("Conflicting collector combinations", ComplaintKind::JvmRefused),
    ("Multiple garbage collectors selected", ComplaintKind::JvmRefused),
    ("is experimental and must be enabled via", ComplaintKind::JvmRefused),
    ("Improperly specified VM option", ComplaintKind::JvmRefused),
    ("Error occurred during initialization of VM", ComplaintKind::JvmRefused),
    ("Could not create the Java Virtual Machine", ComplaintKind::JvmRefused),
    ("Error opening zip file or JAR manifest missing", ComplaintKind::NotFound),
    ("Unable to access jarfile", ComplaintKind::NotFound),
    ("Could not find or load main class", ComplaintKind::NotFound),
    ("no main manifest attribute", ComplaintKind::NotFound),
    ("UnsupportedClassVersionError", ComplaintKind::OldJdk),
    ("Address already in use", ComplaintKind::PortTaken),
    ("java.net.BindException", ComplaintKind::PortTaken),
    ("Ignoring option ", ComplaintKind::OptionIgnored),
    // glibc's loader, about LD_PRELOAD.
    ("cannot be preloaded", ComplaintKind::OptionIgnored),
    ("support was removed in ", ComplaintKind::OptionIgnored),
    ("was deprecated in version", ComplaintKind::OptionDeprecated),
    ("is deprecated and will likely be removed", ComplaintKind::OptionDeprecated),
];

impl Complaint {
    /// Parses a line; `None` if it has no known complaint.
    pub fn parse(line: &str) -> Option<Self> {
        let kind = SIGNS.iter().find(|(sign, _)| line.contains(sign))?.1;
        Some(Self { kind, line: line.to_owned() })
    }
}

pub(super) fn hint(complaints: &[Complaint], exit: Option<Exit>) -> Option<String> {
    let worst = complaints.iter().map(|complaint| complaint.kind).min();
    let text = match (worst, exit) {
        (Some(ComplaintKind::JvmRefused), _) => "the JVM rejected its options: correct them, or choose another JDK",
        (Some(ComplaintKind::NoMemory), _) => {
            "the JVM could not reserve its memory: lower the heap, or raise the limit"
        }
        (Some(ComplaintKind::NotFound), _) => {
            "correct the path: it is relative to the server's working directory (`--dir`, or `dir:` in a scenario)"
        }
        (Some(ComplaintKind::OldJdk), _) => {
            let release = complaints.iter().find_map(|complaint| release_of_classes(&complaint.line));
            return Some(match release {
                Some(release) => {
                    format!("its classes need JDK {release} or newer: `--jdk {release}`, `jdk: {release}`")
                }
                None => "its classes need a newer JDK: `--jdk N`, or `jdk: N` in the configuration".to_owned(),
            });
        }
        (Some(ComplaintKind::PortTaken), _) => {
            "let Loadline choose a free port: put `{port}` in the command in place of the number"
        }
        (Some(ComplaintKind::OutOfMemoryError), _) => "raise the heap, and the limit if there is one",
        (_, Some(Exit::Code(0))) => "the command must keep running while it is weighed",
        (_, Some(Exit::Signal(9))) => "another process or the kernel killed it; `loadline post-mortem` shows OOM kills",
        _ => return None,
    };
    Some(text.to_owned())
}

/// `… has been compiled by a more recent version of the Java Runtime (class file version 65.0), …`: JDK 21.
fn release_of_classes(line: &str) -> Option<u32> {
    let version = line.split("class file version ").nth(1)?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse::<u32>().ok()?.checked_sub(44)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jvm_complaints_are_recognized() {
        use ComplaintKind::*;
        let check = |line, expect| assert_eq!(Complaint::parse(line).map(|complaint| complaint.kind), expect, "{line}");
        check("Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space", Some(OutOfMemoryError));
        check("Unrecognized VM option 'UseFooGC'", Some(JvmRefused));
        check("Too small maximum heap", Some(JvmRefused));
        check("Error: Unable to access jarfile x.jar", Some(NotFound));
        check("Error opening zip file or JAR manifest missing : agent.jar", Some(NotFound));
        check(
            "OpenJDK 64-Bit Server VM warning: Ignoring option UseBiasedLocking; support was removed in 21.0",
            Some(OptionIgnored),
        );
        check(
            "OpenJDK 64-Bit Server VM warning: Option UseBiasedLocking was deprecated in version 15.0 and will likely …",
            Some(OptionDeprecated),
        );
        check("java.net.BindException: Address already in use", Some(PortTaken));
        check("Started in 2 s", None);
    }

    #[test]
    fn the_most_serious_complaint_gives_the_hint() {
        let complaints: Vec<Complaint> = ["Ignoring option X", "Unrecognized VM option 'Y'"]
            .iter()
            .filter_map(|line| Complaint::parse(line))
            .collect();
        assert!(hint(&complaints, None).unwrap().starts_with("the JVM rejected its options"));
        assert!(hint(&[], Some(Exit::Code(0))).is_some());
        assert_eq!(hint(&[], Some(Exit::Code(3))), None);
        // JDK 17.0.15, for a class compiled by JDK 21.
        let newer = "java.lang.UnsupportedClassVersionError: shop/Shop has been compiled by a more recent version of \
                     the Java Runtime (class file version 65.0), this version of the Java Runtime only recognizes \
                     class file versions up to 61.0";
        let of = |line: &str| hint(&[Complaint::parse(line).unwrap()], None).unwrap();
        assert!(of(newer).contains("need JDK 21 or newer: `--jdk 21`"), "{}", of(newer));
        assert!(of("UnsupportedClassVersionError: x").contains("`--jdk N`"));
    }
}
