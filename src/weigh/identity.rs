//! The identity of a process: its program, and its unique IDs.

use super::watched::Watched;
use crate::kernel::machine;
use crate::kernel::process::age;
use crate::observe::jvms::ProcessSummary;
use crate::record::{IdentityRecord, NamedJvm};
use crate::units::{steers, utc};

/// The maximum length of a name; the document has the whole command line.
const NAME_CHARS_MAX: usize = 120;
/// Launcher options whose value is the next word (man java, JDK 11–25).
const WITH_VALUE: [&str; 15] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--limit-modules",
    "--add-exports",
    "--add-opens",
    "--add-reads",
    "--patch-module",
    "--enable-native-access",
    "--source",
    "--illegal-native-access",
];

pub(super) fn named(jvm: ProcessSummary) -> NamedJvm {
    NamedJvm { pid: jvm.pid, name: name(&jvm.arguments, None, &jvm.comm) }
}

pub(super) fn identity(watched: &mut Watched, arguments: &[String]) -> IdentityRecord {
    let clock = watched.clock;
    let started_ticks = watched.process.start_ticks();
    let own = watched.own_identity().command;
    let comm = watched.process.stat(&clock).map(|stat| stat.value.comm).unwrap_or_default();
    IdentityRecord {
        name: name(arguments, own.as_deref(), &comm),
        started: age(started_ticks).map(|running| utc(clock.unix_s() - running.as_secs_f64())),
        started_ticks,
        boot_id: machine::boot_id(),
    }
}

/// The name of a process's program: from its arguments if it is a launcher, else from its counters (`own`, the main
/// class or archive with its arguments), else from the kernel.
pub(super) fn name(arguments: &[String], own: Option<&str>, comm: &str) -> String {
    let own = own.and_then(|command| command.split_whitespace().next());
    let found = of_arguments(arguments).or(own).filter(|name| !name.is_empty()).unwrap_or(comm);
    // The main class of a module, or the file name of an archive.
    let short = found.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(found);
    harmless(short, NAME_CHARS_MAX)
}

/// Up to `chars_max` characters of untrusted text, made safe for a terminal and a single line.
pub(crate) fn harmless(text: &str, chars_max: usize) -> String {
    let harmless = text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c });
    harmless.take(chars_max).collect()
}

/// The archive, module, or class on a launcher's command line; `None` for other programs, or if an options file may
/// contain it.
fn of_arguments(arguments: &[String]) -> Option<&str> {
    let (program, options) = arguments.split_first()?;
    (program.rsplit('/').next() == Some("java")).then_some(())?;
    let mut words = options.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-jar" | "-m" | "--module" => return words.next(),
            _ if WITH_VALUE.contains(&word) => _ = words.next(),
            _ if word.starts_with("--module=") => return word.split_once('=').map(|(_, module)| module),
            _ if word.starts_with('@') => return None,
            _ if word.starts_with('-') => {}
            _ => return Some(word),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_after_its_program() {
        let check = |line: &str, own: Option<&str>, expect: &str| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(name(&arguments, own, "comm"), expect, "{line}");
        };
        check("/opt/jdk/bin/java -Xmx6m -cp a:b com.example.App --x", Some("no"), "com.example.App");
        check("java -XX:+UseSerialGC -jar /srv/app/app.jar -jar x", None, "app.jar");
        check("java --add-opens java.base/java.lang=ALL-UNNAMED -jar a.war", None, "a.war");
        check("java -p mods -m app.module/com.example.Main", None, "com.example.Main");
        check("java --module=app.module/com.example.Main", None, "com.example.Main");
        check("java @options", Some("com.example.App with arguments"), "com.example.App");
        check("java @options", None, "comm");
        check("java -cp", Some(""), "comm");
        check("/usr/bin/soffice --headless", None, "comm");
        check("/usr/bin/launcher x", Some("org.App a"), "org.App");
        check("", None, "comm");
        check("java folder/", None, "folder/");
    }

    #[test]
    fn process_names_are_sanitized_and_limited() {
        let arguments = vec!["java".to_owned(), format!("\u{1b}[2J\u{202e}{}", "x".repeat(1000))];
        let name = name(&arguments, None, "comm");
        assert!(name.chars().count() == NAME_CHARS_MAX && !name.contains(steers), "{name}");
    }
}
