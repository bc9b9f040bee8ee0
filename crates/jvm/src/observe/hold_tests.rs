//! Holds real processes: `sleep`, and this test's own program with threads. Skipped with a message if tracing is not
//! permitted.

use super::*;
use loadline_test_support::skip;
use rustix::process::{Pid as Id, Signal as Sent, kill_process};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;

/// The number of the child's threads, and how long it lives if no test ends it.
const THREADS: usize = 8;
const LIVES: Duration = Duration::from_secs(60);
/// The environment variable that gives a child its task.
const ROLE: &str = "LOADLINE_TEST_HELD";

/// A process that is killed when the test ends.
struct RunningChild(Child);

impl RunningChild {
    #[expect(clippy::disallowed_methods, reason = "`observe` may not use `subject`, and needs a process to hold")]
    fn start(program: &str, arguments: &[&str], role: &str) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).env(ROLE, role).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn sleeper() -> Self {
        let running = Self::start("sleep", &["60"], "");
        running.until(|running| running.states() == ["S"]);
        running
    }

    /// Sleeping threads, and with `churns`, one that starts others as fast as it can.
    fn threads(role: &str) -> Self {
        let program = std::env::current_exe().unwrap();
        let test = concat!(module_path!(), "::child").split_once("::").unwrap().1;
        let running = Self::start(program.to_str().unwrap(), &["--exact", test, "--nocapture", "--ignored"], role);
        running.until(|running| running.states().len() > THREADS);
        running
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn process(&self) -> Process {
        Process::open(self.pid()).unwrap()
    }

    /// The states of all threads that can still be read.
    fn states(&self) -> Vec<String> {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", self.pid())) else { return Vec::new() };
        let state = |task: std::fs::DirEntry| {
            let text = std::fs::read_to_string(task.path().join("stat")).ok()?;
            Some(text.rsplit_once(") ")?.1.split(' ').next()?.to_owned())
        };
        tasks.filter_map(|task| state(task.ok()?)).collect()
    }

    /// Waits for an event that must happen soon.
    #[track_caller]
    fn until(&self, holds: impl Fn(&Self) -> bool) {
        let clock = Clock::start();
        while !holds(self) {
            assert!(clock.now() < LONG, "the threads did not reach the expected state: {:?}", self.states());
            sleep(Duration::from_millis(1));
        }
    }

    fn signal(&self, signal: Sent) {
        kill_process(Id::from_raw(self.pid().cast_signed()).unwrap(), signal).unwrap();
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Far longer than stopping a thread takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(20);

/// Holds on a separate thread, as required, and calls `then`. Returns false with a message if this machine does not
/// permit tracing.
fn hold(running: &RunningChild, then: impl Fn(Held) + Sync) -> bool {
    match hold_once(&running.process(), &then) {
        Ok(()) => true,
        Err(why) if why.why.starts_with("no permission") => {
            skip("LOADLINE_MACHINE", &why.why);
            false
        }
        Err(why) => panic!("{why}"),
    }
}

fn hold_once(process: &Process, then: &(impl Fn(Held) + Sync)) -> Result<(), Unavailable> {
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| Held::all_threads_within(LONG, process, &Clock::start()).map(then));
        holder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
#[ignore = "runs only as the child that another test starts"]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let clock = Clock::start();
    for _ in 0..THREADS {
        std::thread::spawn(|| sleep(LIVES));
    }
    while clock.now() < LIVES {
        match role.as_str() {
            "churns" => drop(std::thread::spawn(|| {}).join()),
            _ => sleep(Duration::from_millis(1)),
        }
    }
}

#[test]
fn a_process_is_paused_until_released() {
    let running = RunningChild::sleeper();
    let held = hold(&running, |held| {
        assert_eq!((held.threads.len(), running.states()), (1, vec!["t".to_owned()]));
        let before = held.lasted();
        sleep(Duration::from_millis(5));
        assert!(held.lasted() >= before + Duration::from_millis(5));
        // Releasing must not depend on this thread's end.
        drop(held);
        running.until(|running| running.states() == ["S"]);
    });
    // As many times as there are marks.
    for _ in 0..20 {
        assert_eq!(hold(&running, drop), held);
    }
    running.until(|running| running.states() == ["S"]);
}

#[test]
fn all_threads_are_paused() {
    let running = RunningChild::threads("sleeps");
    hold(&running, |held| {
        let states = running.states();
        assert!(held.threads.len() == states.len() && states.len() > THREADS, "{} of {states:?}", held.threads.len());
        assert!(states.iter().all(|state| state == "t"), "{states:?}");
        drop(held);
        running.until(|running| running.states().iter().all(|state| state != "t"));
    });
}

/// Threads that start and end during seizing usually do not prevent it; if there are too many, all continue.
#[test]
fn a_process_with_short_lived_threads_can_be_paused() {
    const TIMES: usize = 100;
    let running = RunningChild::threads("churns");
    let process = running.process();
    let mut held = 0;
    for _ in 0..TIMES {
        let done = hold_once(&process, &|_held| {
            let states = running.states();
            let still = states.iter().filter(|state| *state == "t").count();
            // An exiting thread may still be listed.
            assert!(still > THREADS && states.iter().all(|state| ["t", "Z", "X"].contains(&&**state)), "{states:?}");
        });
        match done {
            Ok(()) => held += 1,
            Err(why) if why.why.starts_with("no permission") => return skip("LOADLINE_MACHINE", &why.why),
            Err(why) => assert!(why.why.contains("faster"), "{why}"),
        }
    }
    println!("held {held} of {TIMES} times");
    assert!(held > TIMES / 2, "{held} of {TIMES}");
    running.until(|running| running.states().iter().all(|state| state != "t"));
}

/// A process already stopped by a signal remains stopped.
#[test]
fn a_stopped_process_remains_stopped() {
    let running = RunningChild::sleeper();
    running.signal(Sent::STOP);
    running.until(|running| running.states() == ["T"]);
    hold(&running, |held| {
        assert_eq!(running.states(), ["t"]);
        drop(held);
        running.until(|running| running.states() == ["T"]);
    });
    running.signal(Sent::CONT);
    running.until(|running| running.states() == ["S"]);
}

/// A signal that arrives during the hold is not lost.
#[test]
fn signals_are_delivered_at_release() {
    let mut running = RunningChild::sleeper();
    let held = hold(&running, |held| {
        running.signal(Sent::TERM);
        sleep(Duration::from_millis(5));
        assert_eq!(running.states(), ["t"]);
        drop(held);
    });
    if held {
        let status = running.0.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
    }
}

/// If a process ends while held, its parent can reap it as soon as the holding thread has ended.
#[test]
fn a_process_that_ends_while_held_can_be_reaped() {
    let mut running = RunningChild::threads("sleeps");
    let held = hold(&running, |held| {
        running.signal(Sent::KILL);
        running.until(|running| running.states().iter().all(|state| state != "t"));
        drop(held);
    });
    if held {
        running.until(|running| running.states() == ["Z"]);
        running.0.wait().unwrap();
    }
}

#[test]
fn an_ended_process_is_an_error() {
    let mut running = RunningChild::sleeper();
    let process = running.process();
    running.signal(Sent::KILL);
    running.until(|running| running.states() == ["Z"]);
    let zombie = hold_once(&process, &drop).unwrap_err();
    assert!(zombie.why.contains("exited"), "{zombie}");
    running.0.wait().unwrap();
    assert!(hold_once(&process, &drop).is_err());
}

#[test]
fn a_held_process_cannot_be_held_again() {
    let running = RunningChild::sleeper();
    hold(&running, |_held| {
        let second = hold_once(&running.process(), &|_| panic!("a second hold must be refused"));
        assert!(second.unwrap_err().why.contains("debugger"));
        assert_eq!(running.states(), ["t"]);
    });
    running.until(|running| running.states() == ["S"]);
}

#[test]
fn a_brief_holder_is_waited_for() {
    let running = RunningChild::sleeper();
    hold(&running, |first| {
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Held::all_threads(&running.process(), &Clock::start()).map(drop));
            sleep(BETWEEN);
            drop(first);
            second.join().unwrap().unwrap();
        });
    });
    running.until(|running| running.states() == ["S"]);
}
