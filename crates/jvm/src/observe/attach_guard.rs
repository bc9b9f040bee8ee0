//! Decides whether SIGQUIT may be sent to a process. It must never harm a subject: a process that does not catch it
//! dies of it; a JVM with `-XX:+DisableAttachMechanism` prints a thread dump into its own log; other programs do as
//! they like. (With `-Xrs` it kills too, but there HotSpot listens from its start.) So it is sent only to a HotSpot
//! that catches it and is known to take it as a request to attach
//! (JDK 11–27, `os.cpp: signal_thread_entry`).
//!
//! The options that a JVM was started with are read from its own counters. If it keeps none, they are pieced together
//! as the launcher does it (man java: `@argfiles`, `JDK_JAVA_OPTIONS`; `JAVA_TOOL_OPTIONS`, `_JAVA_OPTIONS`,
//! `-XX:Flags=FILE`, `-XX:VMOptionsFile=FILE`). In doubt the answer is no.

use super::hsperfdata::HsPerf;
use super::procfs::Process;
use super::{Unavailable, inside, maps};
use crate::kernel::process::Status;
use loadline_base::bounded;
use loadline_base::clock::Clock;

/// SIGQUIT, the same number on every Linux.
const SIGQUIT: u32 = 3;
/// An options file has a few KiB; more than this is not one.
const OPTIONS_FILE_MAX: u64 = 1 << 20;
/// Options files may name further ones.
const OPTIONS_FILES_MAX: usize = 32;
/// Environment variables that the launcher or the JVM reads options from.
const OPTION_VARIABLES: [&str; 3] = ["JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"];

/// Why SIGQUIT was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// SIGQUIT may be allowed in a moment: the JVM is still starting.
    NotYet(String),
    /// SIGQUIT never will be allowed.
    Never(String),
}

/// Whether SIGQUIT may be sent to this process now.
pub(super) fn may_signal(process: &Process, status: &Status, clock: &Clock) -> Result<(), Refusal> {
    let maps = maps::read(process, clock).map_err(never)?.value;
    if maps::libjvm(&maps).is_none() || maps::is_openj9(&maps) {
        return Err(Refusal::NotYet("the process is no HotSpot JVM".into()));
    }
    let stat = process.stat(clock).map_err(never)?.value;
    if matches!(stat.state, 'T' | 't') {
        return Err(Refusal::Never("the JVM is stopped (SIGSTOP or a debugger) and cannot answer".into()));
    }
    let options = match HsPerf::open(process, clock) {
        Ok(mut counters) => {
            let counters = counters.counters(clock).map_err(never)?.value;
            match counters.attach_supported() {
                Some(true) => {}
                Some(false) => return Err(disabled()),
                None => return Err(Refusal::NotYet("the JVM is still starting".into())),
            }
            let identity = counters.identity();
            [identity.vm_args, identity.vm_flags].into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        Err(why) if why.is_early => return Err(Refusal::NotYet(why.why)),
        Err(_) => options_from_outside(process)?,
    };
    judge_options(&options)?;
    if !status.catches(SIGQUIT) {
        return Err(Refusal::NotYet("the JVM does not handle SIGQUIT (it is starting, or runs with `-Xrs`)".into()));
    }
    Ok(())
}

fn never(why: Unavailable) -> Refusal {
    Refusal::Never(why.to_string())
}

fn disabled() -> Refusal {
    Refusal::Never("the JVM runs with `-XX:+DisableAttachMechanism`".into())
}

/// `-XX:-DisableAttachMechanism` is the only harmless mention; flag files spell it without `-XX:`.
fn judge_options(text: &str) -> Result<(), Refusal> {
    let mentions = text.match_indices("DisableAttachMechanism");
    if mentions.into_iter().any(|(at, _)| !text[..at].ends_with('-')) {
        return Err(disabled());
    }
    if text.split_whitespace().any(|word| word.trim_matches(['"', '\'']) == "-Xrs") {
        return Err(Refusal::Never("the JVM runs with `-Xrs` and leaves SIGQUIT to the program".into()));
    }
    if text.contains("ReduceSignalUsage") {
        return Err(Refusal::Never("the JVM runs with `-XX:+ReduceSignalUsage`".into()));
    }
    Ok(())
}

/// All options that can have reached a JVM without counters.
fn options_from_outside(process: &Process) -> Result<String, Refusal> {
    let exe = process.exe().map_err(never)?;
    // A program that embeds a JVM gives it options that cannot be seen from outside.
    if exe.file_name().is_none_or(|name| name != "java") {
        let why = format!("cannot tell whether attach is disabled: no hsperfdata, and {} is not `java`", exe.display());
        return Err(Refusal::Never(why));
    }
    let cmdline = process.cmdline().map_err(never)?;
    let environ = process.environ().map_err(never)?;
    let variables = environ.iter().filter_map(|variable| {
        let (name, value) = variable.split_once('=')?;
        OPTION_VARIABLES.contains(&name).then(|| value.to_owned())
    });
    let mut texts: Vec<String> = cmdline.into_iter().chain(variables).collect();
    let mut files: Vec<String> = texts.iter().flat_map(|text| named_files(text)).collect();
    for n in 0.. {
        let Some(name) = files.get(n).cloned() else { break };
        let text = options_file(process, &name).filter(|_| n < OPTIONS_FILES_MAX).ok_or_else(|| {
            Refusal::Never(format!(
                "cannot tell whether attach is disabled: no hsperfdata, and `{name}` is not readable"
            ))
        })?;
        files.extend(named_files(&text));
        texts.push(text);
    }
    Ok(texts.join("\n"))
}

/// The options files a text names: `@FILE`, `-XX:Flags=FILE`, `-XX:VMOptionsFile=FILE`. `@@x` is an argument `@x`.
fn named_files(text: &str) -> Vec<String> {
    let words = text.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let name = |word: &str| {
        let prefixes = ["@", "-XX:Flags=", "-XX:VMOptionsFile="];
        prefixes.iter().find_map(|prefix| word.strip_prefix(prefix)).map(str::to_owned)
    };
    words.filter_map(name).filter(|name| !name.is_empty() && !name.starts_with('@')).collect()
}

/// A file as the process names it, below its own root: the options of a container decide nothing by a file of the host.
fn options_file(process: &Process, name: &str) -> Option<String> {
    let file = inside::file_as_named(process, name).ok()?;
    bounded::bytes_of(file, OPTIONS_FILE_MAX).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_harmless_mention_passes() {
        for (options, passes) in [
            ("-Xmx6m -XX:-DisableAttachMechanism", true),
            ("-Xmx6m -XX:+DisableAttachMechanism", false),
            ("+DisableAttachMechanism", false),
            ("DisableAttachMechanism=true", false),
            ("-Xmx6m \"-Xrs\"", false),
            ("-XX:+ReduceSignalUsage", false),
            ("-Xrsomething", true),
        ] {
            assert_eq!(judge_options(options).is_ok(), passes, "{options}");
        }
    }

    #[test]
    fn options_files_are_found() {
        let text = "-cp x @opts '@/a/b' @@literal -XX:Flags=f -XX:VMOptionsFile=/v @";
        assert_eq!(named_files(text), ["opts", "/a/b", "f", "/v"]);
    }
}
