//! `loadline watch` on a pseudoterminal from util-linux's `script`: what it draws, and that every exit restores the
//! terminal.

use crate::waiting::{LONG, wait_until};
use crate::watch::writes;
use loadline_test_support::{KilledOnDrop, skip};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A shell on a terminal of 70 columns and 12 lines.
struct Terminal {
    shell: KilledOnDrop,
    folder: TempDir,
}

impl Terminal {
    /// Runs a script in which `watch` is the program; `None` if `script` is missing.
    fn start(script: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let program = env!("CARGO_BIN_EXE_loadline");
        let watch = format!("{program} watch --all --every 10m --account never --history histories");
        let script = script.replace("WATCH", &watch).replace("LOADLINE", program);
        std::fs::write(folder.path().join("run"), format!("stty cols 70 rows 12\nstty -g > before\n{script}\n"))
            .unwrap();
        let shown = std::fs::File::create(folder.path().join("shown")).unwrap();
        let mut command = Command::new("script");
        command.args(["-qfec", "exec sh run", "/dev/null"]).current_dir(folder.path());
        command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env("SHELL", "/bin/sh");
        let started = command.stdin(Stdio::piped()).stdout(shown).stderr(Stdio::null()).spawn();
        if started.is_err() {
            skip("LOADLINE_TOOLS", "`script` of util-linux is not installed");
        }
        Some(Self { shell: KilledOnDrop(started.ok()?), folder })
    }

    fn file(&self, name: &str) -> String {
        let path: PathBuf = self.folder.path().join(name);
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
    }

    fn until_shown(&self, text: &str, times: usize) -> String {
        wait_until(&format!("{text:?} is shown"), LONG, || self.file("shown").matches(text).count() >= times);
        self.file("shown")
    }

    fn press(&mut self, keys: &[u8]) {
        let stdin = self.shell.0.stdin.as_mut().unwrap();
        stdin.write_all(keys).and_then(|()| stdin.flush()).unwrap();
    }
}

/// The sequence that leaves the alternate screen.
const LEFT: &str = "\x1b[?1049l";

#[test]
fn the_terminal_is_restored_after_every_kind_of_end() {
    for end in ["q", "\x1b[21~", "\x03", "\x1c", "TERM", "HUP"] {
        // The shell receives keyboard signals, too.
        let script = "trap : INT QUIT\nsh -c 'echo $$ > pid; exec WATCH'\necho code=$?\nstty -g > after\necho done";
        let Some(mut terminal) = Terminal::start(script) else { return };
        terminal.until_shown("watched every 10 min", 1);
        match end {
            "TERM" | "HUP" => {
                let pid = terminal.file("pid");
                assert!(Command::new("kill").args(["-s", end, pid.trim()]).status().unwrap().success());
            }
            keys => terminal.press(keys.as_bytes()),
        }
        let shown = terminal.until_shown("done", 1);
        assert!(shown.contains("code=0"), "{end:?}: {shown:?}");
        assert_eq!(terminal.file("before"), terminal.file("after"), "{end:?}: {shown:?}");
        assert_eq!((shown.matches("\x1b[?1049h").count(), shown.matches(LEFT).count()), (1, 1), "{end:?}");
        let (_, after) = shown.split_once(LEFT).unwrap();
        assert!(after.contains("watched every 10 min"), "the last view must remain: {end:?}: {shown:?}");
    }
}

#[test]
fn a_blocked_terminal_does_not_prevent_a_watch_from_ending() {
    let script = "sh -c 'echo $$ > pid; exec WATCH'\necho $? > code\nstty -g > after\necho > ended";
    let Some(mut terminal) = Terminal::start(script) else { return };
    terminal.until_shown("watched every 10 min", 1);
    // Ctrl-S stops output to the terminal, so the writes that follow `q` block.
    terminal.press(b"\x13q");
    let pid = terminal.file("pid");
    wait_until("its write is blocked", LONG, || writes(pid.trim()));
    assert!(Command::new("kill").args(["-s", "TERM", pid.trim()]).status().unwrap().success());
    wait_until("it ends", LONG, || terminal.file("ended") == "\n");
    assert_eq!((terminal.file("code").as_str(), terminal.file("before")), ("0\n", terminal.file("after")));
}

#[test]
fn stopping_restores_the_terminal_and_continuing_redraws() {
    let script = "set -m\nWATCH\nstty -g > stopped\necho stopped\nfg\necho code=$?\nstty -g > after\necho done";
    let Some(mut terminal) = Terminal::start(script) else { return };
    terminal.until_shown("watched every 10 min", 1);
    terminal.press(b"\x1a");
    terminal.until_shown("stopped", 1);
    // Redrawn on continuing, without a request.
    terminal.until_shown("\x1b[?1049h", 2);
    terminal.until_shown("watched every 10 min", 2);
    terminal.press(b"q");
    let shown = terminal.until_shown("done", 1);
    assert!(shown.contains("code=0"), "{shown:?}");
    let before = terminal.file("before");
    assert_eq!((before == terminal.file("stopped"), before == terminal.file("after")), (true, true), "{shown:?}");
}

#[test]
fn a_background_job_draws_nothing() {
    let script = "set -m\nWATCH --for 300ms &\nwait $!\necho code=$?\nstty -g > after\necho done";
    let Some(terminal) = Terminal::start(script) else { return };
    let shown = terminal.until_shown("done", 1);
    assert!(shown.contains("code=0") && !shown.contains("\x1b["), "{shown:?}");
    assert_eq!(terminal.file("before"), terminal.file("after"));
}

#[test]
fn a_resized_terminal_is_redrawn_immediately() {
    let script = "sh -c 'echo $$ > pid; exec WATCH'\necho done";
    let Some(mut terminal) = Terminal::start(script) else { return };
    terminal.until_shown("every 10 min", 1);
    // The shell's terminal, from the file descriptors of its program.
    let tty = std::fs::read_link(format!("/proc/{}/fd/1", terminal.file("pid").trim())).unwrap();
    let resized = Command::new("stty").args(["-F", &tty.display().to_string(), "cols", "40", "rows", "9"]).status();
    assert!(resized.unwrap().success());
    let shown = terminal.until_shown("every 10 min", 2);
    let last = shown.rsplit("\x1b[H").next().unwrap();
    let lines: Vec<&str> = last.split("\r\n").map(|line| line.split("\x1b[K").next().unwrap()).collect();
    assert!(lines.len() == 9 && lines.iter().all(|line| line.chars().count() <= 48), "{lines:?}");
    terminal.press(b"q");
    terminal.until_shown("done", 1);
}

#[test]
fn progress_and_errors_fit_a_narrow_terminal() {
    let Some(terminal) = Terminal::start("stty cols 45\nLOADLINE find\necho done") else { return };
    let shown = terminal.until_shown("done", 1);
    assert!(shown.contains("specify a scenario"), "{shown:?}");
    let longest = shown.lines().map(|line| line.trim_end().chars().count()).max();
    assert!(longest <= Some(45), "{longest:?}: {shown}");
}
