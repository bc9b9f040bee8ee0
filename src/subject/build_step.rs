//! The scenario's build step: a shell command, guarded like the subject.

use super::guarded::Spawner;
use super::output::{Output, Watch};
use super::protocol::{Exit, Order};
use crate::error::{Error, Result};
use std::path::Path;
use std::time::Duration;

/// A Maven build with an empty cache downloads its dependencies first.
const BUILD_WITHIN: Duration = Duration::from_secs(600);
/// The interval between checks for an interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Output lines shown on failure: compilers print the cause well above the last line.
const SAID_LINES: usize = 20;
/// Shell exit code for a missing command.
const NOT_FOUND: i32 = 127;

impl Spawner {
    /// Runs a command for at most `within`, and collects its output. Kills all processes that it leaves behind.
    pub(super) fn run_to_end(
        &self,
        order: &Order,
        within: Duration,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(Option<Exit>, Output)> {
        let (mut guarded, pipe) = self.guard(order, None)?;
        let output = Output::read(pipe, Watch::default(), None, self.clock)?;
        let until = self.clock.now() + within;
        while guarded.exit().is_none() && !guarded.lost() && self.clock.now() < until {
            if interrupted() {
                return Err(Error::interrupted());
            }
            guarded.wait_exit(LOOK_EVERY);
        }
        let exit = guarded.exit();
        guarded.finish();
        output.drain();
        Ok((exit, output))
    }

    /// Runs the command with `sh -c` and waits for it. Errors: `Subject` if it fails or takes longer than 10 minutes;
    /// `Interrupted`.
    pub fn build(&self, command: &str, dir: Option<&Path>, interrupted: &dyn Fn() -> bool) -> Result<()> {
        let order = Order { dir: dir.map(Path::to_path_buf), ..Order::of_shell(command) };
        let (exit, output) = self.run_to_end(&order, BUILD_WITHIN, interrupted)?;
        let what = match exit {
            Some(Exit::Code(0)) => return Ok(()),
            Some(exit) => format!("the build failed with {exit}"),
            None => format!("the build did not finish within {} s", BUILD_WITHIN.as_secs()),
        };
        let error = Error::subject(what).at(format!("command: {command}")).said(output.tail_texts(SAID_LINES));
        Err(match exit {
            Some(Exit::Code(NOT_FOUND)) => error.hint("install the missing program, or add it to PATH"),
            _ => error.hint("run it by hand in the server's directory (`dir`)"),
        })
    }
}
