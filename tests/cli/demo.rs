//! `loadline demo` after another user has written to the temporary directory.

use crate::waiting::{LONG, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Another user can predict a pid, create the directory, and replace the jar with a link to a victim's file.
#[test]
fn a_directory_created_by_another_user_is_not_used() {
    let place = tempfile::tempdir().unwrap();
    let victim = place.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    let script = "mkdir \"$TMPDIR/loadline-demo-$$\" && ln -s \"$VICTIM\" \"$TMPDIR/loadline-demo-$$/loadline-demo.jar\" && exec \"$0\" demo";
    let temporary = place.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_loadline")]).current_dir(place.path());
    command.env("TMPDIR", &temporary).env("VICTIM", &victim).stdout(Stdio::null()).stderr(Stdio::null());
    let mut demo = command.spawn().unwrap();
    let jars = || -> Vec<PathBuf> {
        let folders = fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path());
        folders
            .map(|folder| folder.join("loadline-demo.jar"))
            .filter(|jar| jar.metadata().is_ok_and(|jar| jar.len() > 4))
            .collect()
    };
    let jar = wait_for("the jar is written", LONG, || jars().pop().ok_or("no jar"));
    let folder = fs::metadata(jar.parent().unwrap()).unwrap();
    let is_link = fs::symlink_metadata(&jar).unwrap().is_symlink();
    kill_process(Pid::from_child(&demo), Signal::TERM).unwrap();
    demo.wait().unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    assert!(!is_link && folder.mode() & 0o777 == 0o700, "{:o}", folder.mode());
    assert!(!jar.exists(), "the jar was not removed");
}
