//! Decides whether SIGQUIT may be sent to a process, since it must never harm a subject. A process that does not catch
//! it dies; a JVM with `-XX:+DisableAttachMechanism` prints a thread dump into its own log; other programs may do
//! anything. (With `-Xrs`, it also kills HotSpot, which then listens from startup.) So it is sent only to a HotSpot
//! JVM that catches it and is known to treat it as an attach request (JDK 11–27, `os.cpp: signal_thread_entry`).
//!
//! The JVM's start options are read from its own counters. Without counters, they are collected as the launcher does
//! (man java: `@argfiles`, `JDK_JAVA_OPTIONS`; `JAVA_TOOL_OPTIONS`, `_JAVA_OPTIONS`, `-XX:Flags=FILE`,
//! `-XX:VMOptionsFile=FILE`). If in doubt, the answer is no.

use super::attach::SOURCE;
use super::hsperfdata::HsPerf;
use super::procfs::Process;
use super::{Unavailable, inside, maps};
use crate::kernel::process::Status;
use loadline_base::bounded;
use loadline_base::clock::Clock;

/// SIGQUIT, the same number on every Linux.
const SIGQUIT: u32 = 3;
/// Options files are a few KiB long; a larger file is something else.
const OPTIONS_FILE_MAX: u64 = 1 << 20;
/// Options files may refer to others.
const OPTIONS_FILES_MAX: usize = 32;
/// Environment variables from which the launcher or the JVM reads options.
const OPTION_VARIABLES: [&str; 3] = ["JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"];

/// Whether SIGQUIT may be sent to this process now. The error is the reason; it is "early" while the JVM starts.
pub(super) fn may_signal(process: &Process, status: &Status, clock: &Clock) -> Result<(), Unavailable> {
    let maps = maps::read(process, clock).map_err(never)?.value;
    if maps::libjvm(&maps).is_none() || maps::is_openj9(&maps) {
        return Err(Unavailable::early(SOURCE, "the process is not a HotSpot JVM"));
    }
    let stat = process.stat(clock).map_err(never)?.value;
    if matches!(stat.state, 'T' | 't') {
        return Err(never("the JVM is stopped (SIGSTOP or a debugger) and cannot respond"));
    }
    let options = match HsPerf::open(process, clock) {
        Ok(mut counters) => {
            let counters = counters.counters(clock).map_err(never)?.value;
            match counters.attach_supported() {
                Some(true) => {}
                Some(false) => return Err(disabled()),
                None => return Err(Unavailable::early(SOURCE, "the JVM is still starting")),
            }
            let identity = counters.identity();
            [identity.vm_args, identity.vm_flags].into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        Err(why) if why.is_early => return Err(Unavailable::early(SOURCE, why.why)),
        Err(_) => options_from_outside(process)?,
    };
    judge_options(&options)?;
    if !status.catches(SIGQUIT) {
        let why = "the JVM does not handle SIGQUIT (it is starting, or runs with `-Xrs`)";
        return Err(Unavailable::early(SOURCE, why));
    }
    Ok(())
}

fn never(why: impl ToString) -> Unavailable {
    Unavailable::new(SOURCE, why.to_string())
}

fn disabled() -> Unavailable {
    never("the JVM runs with `-XX:+DisableAttachMechanism`")
}

/// `-XX:-DisableAttachMechanism` is the only harmless mention; flag files spell it without `-XX:`.
fn judge_options(text: &str) -> Result<(), Unavailable> {
    let mentions = text.match_indices("DisableAttachMechanism");
    if mentions.into_iter().any(|(at, _)| !text[..at].ends_with('-')) {
        return Err(disabled());
    }
    if text.split_whitespace().any(|word| word.trim_matches(['"', '\'']) == "-Xrs") {
        return Err(never("the JVM runs with `-Xrs` and leaves SIGQUIT to the program"));
    }
    if text.contains("ReduceSignalUsage") {
        return Err(never("the JVM runs with `-XX:+ReduceSignalUsage`"));
    }
    Ok(())
}

fn unknown(why: &str) -> Unavailable {
    never(format!("cannot tell whether attach is disabled: no hsperfdata, and {why}"))
}

/// All options that may have reached a JVM without counters.
fn options_from_outside(process: &Process) -> Result<String, Unavailable> {
    let exe = process.exe().map_err(never)?;
    // A program that embeds a JVM passes options that are not visible from outside it.
    if exe.file_name().is_none_or(|name| name != "java") {
        return Err(unknown(&format!("{} is not `java`", exe.display())));
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
        let text = options_file(process, &name).filter(|_| n < OPTIONS_FILES_MAX);
        let text = text.ok_or_else(|| unknown(&format!("`{name}` is not readable")))?;
        files.extend(named_files(&text));
        texts.push(text);
    }
    Ok(texts.join("\n"))
}

/// The options files named in a text: `@FILE`, `-XX:Flags=FILE`, `-XX:VMOptionsFile=FILE`. `@@x` is the argument `@x`.
fn named_files(text: &str) -> Vec<String> {
    let words = text.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let name = |word: &str| {
        let prefixes = ["@", "-XX:Flags=", "-XX:VMOptionsFile="];
        prefixes.iter().find_map(|prefix| word.strip_prefix(prefix)).map(str::to_owned)
    };
    words.filter_map(name).filter(|name| !name.is_empty() && !name.starts_with('@')).collect()
}

/// A file named by the process, below its own root, so a host file never decides for a container.
fn options_file(process: &Process, name: &str) -> Option<String> {
    let file = inside::file_as_named(process, name).ok()?;
    bounded::bytes_of(file, OPTIONS_FILE_MAX).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_disable_attaching_are_recognized() {
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
