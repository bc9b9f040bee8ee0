//! `loadline __launch`: the last step before the subject. It sets session, CPUs, cgroup, and parent-death signal, then
//! execs the command. A separate program avoids code between fork and exec.

use super::cpus;
use super::protocol::{GUARDIAN_VARIABLE, Order, Refusal, StartStep, line};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal, setsid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Exit code of a launcher that failed to exec; shells use the same code.
const REFUSED: i32 = 127;

/// Reads an order from stdin and execs its command. Returns an exit code only on failure.
pub(super) fn main() -> i32 {
    // This copy closes on exec, which tells the guardian that the command is running.
    let Ok(channel) = io::stdin().as_fd().try_clone_to_owned() else { return REFUSED };
    let mut channel = UnixStream::from(channel);
    match follow(&channel) {
        Ok(never) => never,
        Err(refusal) => {
            // If the guardian is gone, it does not need an answer.
            let _ = channel.write_all(&line(&refusal));
            REFUSED
        }
    }
}

fn follow(channel: &UnixStream) -> Result<i32, Refusal> {
    let order = Order::read(channel).map_err(|cause| Refusal::new(StartStep::Launcher, &cause))?;
    let guardian = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    die_with(guardian).map_err(|cause| Refusal::new(StartStep::Launcher, &cause))?;
    restore_signals().map_err(|cause| Refusal::new(StartStep::Launcher, &cause))?;
    // A separate session, so that `kill 0` in a start script does not reach the guardian.
    let _ = setsid();
    if let Some(dir) = &order.dir {
        std::env::set_current_dir(dir).map_err(|cause| Refusal::new(StartStep::Dir, &cause))?;
    }
    if let Some(cpus) = &order.cpus {
        cpus::bind(cpus).map_err(|cause| Refusal::new(StartStep::Cpus, &cause.into()))?;
    }
    for cgroup in &order.cgroups {
        let pid = getpid().as_raw_nonzero().to_string();
        std::fs::write(cgroup.join("cgroup.procs"), pid).map_err(|cause| Refusal::new(StartStep::Cgroup, &cause))?;
    }
    Err(Refusal::new(StartStep::Exec, &become_command(&order, guardian)))
}

/// Asks the kernel to kill this process when the guardian dies, and handles a guardian that is already dead.
fn die_with(guardian: i32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != guardian) {
        return Err(io::Error::other("the guardian died"));
    }
    Ok(())
}

/// The subject would inherit signals that Loadline's parent ignored (`nohup`, `&` in a script), and a JVM would then
/// skip its shutdown hooks. Unlike `ignore`, a handler is reset to the default on exec.
fn restore_signals() -> io::Result<()> {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "this is the module that starts processes")]
fn become_command(order: &Order, guardian: i32) -> io::Error {
    let Some((program, arguments)) = order.argv.split_first() else {
        return io::Error::other("an empty command");
    };
    let mut command = std::process::Command::new(program);
    command
        .args(arguments)
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .env(GUARDIAN_VARIABLE, guardian.to_string())
        .stdin(Stdio::null());
    if order.reads {
        // The launcher's stdout is the pipe for the command's stdin; the command's stdout goes where its stderr goes.
        let streams = File::open("/proc/self/fd/1").and_then(|stdin| Ok((stdin, output()?)));
        match streams {
            Ok((stdin, stdout)) => command.stdin(stdin).stdout(stdout),
            Err(cause) => return cause,
        };
    }
    command.exec()
}

/// A second handle of the pipe on stderr.
fn output() -> io::Result<File> {
    File::options().write(true).open("/proc/self/fd/2")
}
