//! Runs programs for their output: `podman inspect …`, `java -version`.

use crate::clock::Clock;
use crate::error::plain;
use rustix::fs::{Access, MemfdFlags, access, memfd_create};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// The interval between checks for the program's end.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(2);
/// The description of an image or a container takes about 10 KiB.
const PRINTED_BYTES_MAX: u64 = 4 << 20;

/// A program's output and exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Printed {
    /// `None` if the program was killed.
    pub code: Option<i32>,
    pub out: String,
    pub errors: String,
}

impl Printed {
    pub(super) fn is_good(&self) -> bool {
        self.code == Some(0)
    }

    /// The output on success. Errors: the reason for the failure.
    pub(super) fn good(self) -> Result<String, String> {
        if self.is_good() { Ok(self.out) } else { Err(self.why()) }
    }

    /// The reason for a failure: the last line of `errors`, or the exit code.
    pub(super) fn why(&self) -> String {
        let said = self.errors.lines().rev().map(str::trim).find(|line| !line.is_empty());
        match (said, self.code) {
            (Some(said), _) => said.to_owned(),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "it did not respond in time".to_owned(),
        }
    }
}

/// The first program with this name in the directories of `path`.
pub(super) fn on_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    folders(path).map(|folder| folder.join(name)).find(is_program)
}

/// The directories in a `PATH`, except relative ones: an empty element would mean the project's directory, whose files
/// are not the machine's programs.
pub(super) fn folders(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(path).filter(|folder| folder.is_absolute())
}

/// Container tools respond in 0.1 s, slurmctld in about 40 ms; a daemon on a busy disk, or a scheduler for a large
/// cluster, can take seconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Queries a container tool or a Slurm client. If it cannot be run, `errors` contains the reason.
pub(super) fn ask(program: &Path, arguments: &[&str], clock: Clock) -> Printed {
    run(program, arguments, clock, ANSWER_WITHIN).unwrap_or_else(|cause| Printed {
        code: None,
        out: String::new(),
        errors: plain(&cause),
    })
}

/// Runs a program to completion, or kills it after `within`. Ctrl-C in the terminal does not reach it.
#[expect(clippy::disallowed_methods, reason = "this is the module that starts processes")]
pub(super) fn run(program: &Path, arguments: &[&str], clock: Clock, within: Duration) -> io::Result<Printed> {
    // Memory files, because a pipe could fill up before it is read.
    let open = |name: &str| Ok::<_, io::Error>(File::from(memfd_create(name, MemfdFlags::CLOEXEC)?));
    let (out, errors) = (open("out")?, open("errors")?);
    let mut child = std::process::Command::new(program)
        .args(arguments)
        // A JVM would print a line about each of these variables.
        .env_remove("JDK_JAVA_OPTIONS")
        .env_remove("JAVA_TOOL_OPTIONS")
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(errors.try_clone()?)
        .process_group(0)
        .spawn()?;
    clock.wait_until(within, LOOK_AGAIN_AFTER, || !matches!(child.try_wait(), Ok(None)));
    let code = if let Ok(Some(status)) = child.try_wait() {
        status.code()
    } else {
        // Both calls fail only for an ended process.
        let _ = child.kill();
        let _ = child.wait();
        None
    };
    Ok(Printed { code, out: text_of(out)?, errors: text_of(errors)? })
}

fn text_of(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(PRINTED_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn programs_are_not_searched_in_the_current_directory() {
        let here = std::env::current_dir().unwrap();
        let folder = tempfile::tempdir_in(&here).unwrap();
        std::fs::write(folder.path().join("tool"), "").unwrap();
        std::fs::set_permissions(folder.path().join("tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let name = folder.path().strip_prefix(&here).unwrap().join("tool");
        let found = |path: &str| on_path(name.to_str().unwrap(), OsStr::new(path));
        assert_eq!([":/nowhere", "/nowhere:", "/nowhere::/none", ".", ""].map(found), [const { None::<PathBuf> }; 5]);
        assert_eq!(found(&format!(":{}", here.display())), Some(here.join(&name)));
    }

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str, within: Duration) -> Printed {
        run(Path::new("/bin/sh"), &["-c", script], Clock::start(), within).unwrap()
    }

    #[test]
    fn both_streams_and_the_code_are_kept() {
        let answer = shell("echo out; echo one >&2; echo; echo 'two ' >&2; exit 3", LONG);
        assert_eq!((answer.code, answer.out.as_str(), answer.why().as_str()), (Some(3), "out\n\n", "two"));
        assert!(!answer.is_good() && shell("head -c 300000 /dev/zero", LONG).out.len() == 300_000);
        let hung = shell("exec sleep 60", Duration::from_millis(50));
        assert_eq!((hung.code, hung.why().as_str()), (None, "it did not respond in time"));
        assert!(run(Path::new("/nowhere"), &[], Clock::start(), LONG).is_err());
    }
}
