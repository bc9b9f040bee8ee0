//! The hash of a trial's inputs: the contents of the files that its plan names (listed by `Configuration::inputs`).

use crate::bounded;
use crate::scenario::TrialPlan;
use ring::digest::{Context, SHA256};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// More than any subject's class count; a larger directory was named by mistake.
const FILES_MAX: usize = 20_000;
/// Larger files are data, not code, and reading them takes longer than a trial.
const FILE_BYTES_MAX: u64 = 1 << 30;
const CHUNK: usize = 64 << 10;

/// Hashes of files and directories, cached because configurations share them. `None` if unreadable.
pub type KnownFiles = HashMap<PathBuf, Option<Vec<u8>>>;

/// SHA-256, in hex, of a plan's existing files; `None` if a file is unreadable or too large.
///
/// Files are hashed in plan order, by content only: the plan's text contains their names. Each is hashed separately so
/// that different file lists cannot concatenate to the same bytes.
pub(super) fn hash_of(plan: &TrialPlan, known: &mut KnownFiles) -> Option<String> {
    let code = plan.configuration.code.as_deref();
    let mut whole = Context::new(&SHA256);
    for path in plan.files() {
        let hash = match fs::metadata(&path) {
            Ok(found) if found.is_file() => file,
            Ok(found) if found.is_dir() && code == Some(path.as_path()) => folder,
            _ => continue,
        };
        whole.update(known.entry(path).or_insert_with_key(|path| hash(path).ok()).as_ref()?);
    }
    Some(whole.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn file(path: &Path) -> io::Result<Vec<u8>> {
    let file = bounded::open(path)?;
    if file.metadata()?.len() > FILE_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // Bounds a file that grows during the read.
    let (mut bytes, mut hash, mut chunk) = (file.take(FILE_BYTES_MAX), Context::new(&SHA256), vec![0; CHUNK]);
    loop {
        match bytes.read(&mut chunk)? {
            0 => return Ok(hash.finish().as_ref().to_vec()),
            read => hash.update(&chunk[..read]),
        }
    }
}

/// Every file below a directory with its name, sorted by name. Symbolic links to directories are not followed, to avoid
/// cycles.
fn folder(path: &Path) -> io::Result<Vec<u8>> {
    let (mut open, mut files): (Vec<PathBuf>, Vec<PathBuf>) = (vec![path.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => open.push(entry.path()),
                false if entry.path().is_file() => files.push(entry.path()),
                false => {}
            }
        }
        if files.len() > FILES_MAX {
            return Err(io::Error::other("too many files"));
        }
    }
    files.sort();
    let mut hash = Context::new(&SHA256);
    for found in files {
        let name = found.strip_prefix(path).unwrap_or(&found).to_string_lossy().into_owned();
        hash.update(&(name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update(&file(&found)?);
    }
    Ok(hash.finish().as_ref().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, parse};
    use loadline_test_support::write;
    use tempfile::TempDir;

    fn of(plan: &TrialPlan) -> Option<String> {
        super::hash_of(plan, &mut KnownFiles::default())
    }

    const FILES: [(&str, &str); 6] = [
        ("app/run.sh", "exec java"),
        ("app/a.jar", "jar"),
        ("classes/x/A.class", "class"),
        ("body.bin", "body"),
        ("post.lua", "lua"),
        ("starts", "0.1"),
    ];

    fn place() -> TempDir {
        let place = tempfile::tempdir().unwrap();
        FILES.iter().for_each(|(name, text)| write(place.path().join(name), text));
        place
    }

    fn scenario(place: &TempDir) -> Scenario {
        let text = "name: x\nsubject: {command: [./run.sh, -cp, '{code}:a.jar', '{port}'], dir: app}\n\
            configurations: {a: {code: classes}}\nload:\n\
            \x20 - steady: {schedule: {file: starts}, post: /, body: {file: body.bin}}\n\
            \x20 - other: {driver: 'wrk -s post.lua {url}'}\n";
        parse(text, place.path(), &[17]).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The plan's text as passed on, with its input hash.
    fn handed(place: &TempDir) -> (String, String) {
        let scenario = scenario(place);
        let mut plan = TrialPlan::of(&scenario, &scenario.configurations[0]);
        let hash = of(&plan).unwrap();
        plan.configuration.inputs = Some(hash.clone());
        (serde_json::to_string(&plan.seen_from(place.path())).unwrap(), hash)
    }

    #[test]
    fn the_same_inputs_in_another_directory_give_the_same_plan() {
        let (one, other) = (place(), place());
        assert_ne!(one.path(), other.path());
        assert_eq!(handed(&one), handed(&other));
        // A file that no part of the plan names is not an input.
        write(other.path().join("README"), "text");
        assert_eq!(handed(&one), handed(&other));
    }

    #[test]
    fn every_input_file_changes_the_hash() {
        let same = handed(&place()).1;
        for (name, _) in FILES {
            let place = place();
            write(place.path().join(name), "changed");
            assert_ne!(handed(&place).1, same, "{name}");
            fs::remove_file(place.path().join(name)).unwrap();
            assert_ne!(handed(&place).1, same, "{name}");
        }
        let renamed = place();
        fs::rename(renamed.path().join("classes/x"), renamed.path().join("classes/y")).unwrap();
        assert_ne!(handed(&renamed).1, same, "the hash covers file names in a code directory");
    }

    /// The FIPS 180-2 example, `abc`.
    #[test]
    fn a_file_is_hashed_by_sha_256() {
        let place = tempfile::tempdir().unwrap();
        write(place.path().join("a"), "abc");
        let digits: String = file(&place.path().join("a")).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digits, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
