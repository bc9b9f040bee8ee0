//! Explains why a command did not start, with a hint.

use super::protocol::{Order, Refusal, StartStep};
use crate::error::Error;
use std::path::{Path, PathBuf};

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const E2BIG: i32 = 7;
const ENOEXEC: i32 = 8;
const EACCES: i32 = 13;
/// The kernel reads at most this many bytes of a script to find its interpreter.
const FIRST_LINE_BYTES_MAX: u64 = 256;
/// Names below this similarity have little in common (Jaro-Winkler, 0 to 1).
const SIMILAR_ENOUGH: f64 = 0.85;

pub(super) fn explain(refusal: &Refusal, order: &Order) -> Error {
    match refusal.step {
        StartStep::Launcher => Error::machine(format!("cannot start a launcher process: {}", refusal.text)),
        StartStep::Dir => {
            let dir = order.dir.clone().unwrap_or_default();
            Error::request(format!("cannot change to the server's directory {}: {}", dir.display(), refusal.text))
                .hint("correct `dir` in the scenario; it is relative to the scenario file")
        }
        StartStep::Cpus => {
            let cpus: Vec<String> = order.cpus.iter().flatten().map(u32::to_string).collect();
            Error::request(format!("cannot run the server on CPU {}: {}", cpus.join(","), refusal.text))
                .hint("choose from the CPUs that `nproc` and `taskset -p $$` show, or `--cpus all`")
        }
        StartStep::Cgroup => {
            let cgroups: Vec<_> = order.cgroups.iter().map(|cgroup| cgroup.display().to_string()).collect();
            Error::machine(format!("the server cannot join the cgroup {}: {}", cgroups.join(" and "), refusal.text))
                .hint("`loadline doctor` shows where a limit can be set on this machine")
        }
        StartStep::Exec => explain_exec(refusal, order),
    }
}

fn explain_exec(refusal: &Refusal, order: &Order) -> Error {
    let program = order.argv.first().map_or("", String::as_str);
    let path = search_path(order);
    let found = find_program(program, order.dir.as_deref(), &path);
    match (refusal.errno, found) {
        (Some(ENOENT), Some(file)) => interpreter_missing(program, &file),
        // An inaccessible directory in PATH changes the error to "permission denied".
        (Some(ENOENT | EACCES), None) if !program.contains('/') => not_found(program, &path),
        (Some(ENOENT), None) => not_found(program, &path),
        (Some(EACCES | EPERM), file) => {
            let file = file.unwrap_or_else(|| PathBuf::from(program));
            let hint = if file.is_dir() {
                "specify the program, not its directory".to_owned()
            } else {
                format!("make it executable (`chmod +x {}`), or start it through its interpreter", file.display())
            };
            Error::request(format!("cannot execute `{program}`: {}", refusal.text)).hint(hint)
        }
        (Some(ENOEXEC), _) => {
            Error::request(format!("cannot execute `{program}`: it is not a program for this machine"))
                .hint("a script needs a first line such as `#!/bin/sh`")
        }
        (Some(E2BIG), _) => {
            Error::request(format!("cannot execute `{program}`: its arguments and environment are too long"))
        }
        _ => Error::request(format!("cannot execute `{program}`: {}", refusal.text)),
    }
}

fn search_path(order: &Order) -> String {
    let own = order.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    own.or_else(|| std::env::var("PATH").ok()).unwrap_or_default()
}

fn find_program(program: &str, dir: Option<&Path>, path: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let file = dir.map_or_else(|| PathBuf::from(program), |dir| dir.join(program));
        return file.exists().then_some(file);
    }
    std::env::split_paths(path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn interpreter_missing(program: &str, file: &Path) -> Error {
    // If the file is unreadable, its first line is unknown.
    let head = crate::bounded::beginning(file, FIRST_LINE_BYTES_MAX).unwrap_or_default();
    let error = match head.split('\n').next().unwrap_or_default().strip_prefix("#!") {
        Some(interpreter) => {
            let interpreter = interpreter.trim().escape_debug();
            Error::request(format!("cannot execute `{program}`: its interpreter `{interpreter}` does not exist"))
        }
        None => Error::request(format!("cannot execute `{program}`: its dynamic loader does not exist")),
    };
    error.hint(format!("check the first line of {}; it may end with a Windows line ending", file.display()))
}

fn not_found(program: &str, path: &str) -> Error {
    let error = Error::request(format!("command not found: `{program}`"));
    if program.contains('/') {
        return error.hint("a relative path is resolved against the server's working directory (`--dir` or `dir:`)");
    }
    match nearest(program, path) {
        Some(name) => error.hint(format!("did you mean `{name}`?")),
        None => error.hint(format!("install it, or specify its path; PATH is {path}")),
    }
}

/// The program on PATH with the most similar name.
fn nearest(program: &str, path: &str) -> Option<String> {
    let names = std::env::split_paths(path)
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten())
        .filter_map(|entry| entry.file_name().into_string().ok());
    let scored = names.map(|name| (strsim::jaro_winkler(program, &name), name));
    let best = scored.max_by(|(a, left), (b, right)| a.total_cmp(b).then_with(|| right.cmp(left)));
    best.filter(|(score, _)| *score >= SIMILAR_ENOUGH).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(argv: &[&str], path: &str) -> Order {
        Order {
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            env: vec![("PATH".to_owned(), path.to_owned())],
            ..Order::default()
        }
    }

    fn refusal(errno: i32) -> Refusal {
        Refusal::new(StartStep::Exec, &std::io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn a_missing_command_names_the_nearest_one() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("javac"), "").unwrap();
        std::fs::write(folder.path().join("gradle"), "").unwrap();
        let path = folder.path().to_str().unwrap();
        let error = explain(&refusal(ENOENT), &order(&["jaavc"], path));
        assert_eq!(error.what, "command not found: `jaavc`");
        assert!(error.hint.unwrap().starts_with("did you mean `javac`?"));
        let error = explain(&refusal(ENOENT), &order(&["zzz"], path));
        assert!(error.hint.unwrap().starts_with("install it"));
    }

    #[test]
    fn a_script_without_its_interpreter_is_not_a_missing_command() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("app"), "#!/no/such/shell\r\n").unwrap();
        let error = explain(&refusal(ENOENT), &order(&["app"], folder.path().to_str().unwrap()));
        assert_eq!(error.what, "cannot execute `app`: its interpreter `/no/such/shell` does not exist");
    }
}
