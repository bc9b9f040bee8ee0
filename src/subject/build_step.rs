//! The scenario's build step: a shell command under the same guard as the subject.

use super::guarded::Spawner;
use super::output::{Output, Watch};
use super::protocol::{Exit, Order};
use crate::error::{Error, Result};
use std::path::Path;
use std::time::Duration;

/// A cold Maven build downloads half the world first.
const BUILD_WITHIN: Duration = Duration::from_secs(600);
/// Between two looks whether the user wants to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Lines of its output shown when it failed: compilers put the cause well above the last line.
const SAID_LINES: usize = 20;
/// The exit code of a shell for a command that is missing.
const NOT_FOUND: i32 = 127;

impl Spawner {
    /// Runs a command to its end, at most for `within`, with its output. Ends all processes that it leaves running.
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

    /// Runs the command by `sh -c` and waits for its end.
    ///
    /// # Errors
    /// `Subject` when it fails or takes longer than 10 minutes; `Interrupted` when `interrupted` says that the user
    /// wants to stop.
    pub fn build(&self, command: &str, dir: Option<&Path>, interrupted: &dyn Fn() -> bool) -> Result<()> {
        let order = Order { dir: dir.map(Path::to_path_buf), ..Order::of_shell(command) };
        let (exit, output) = self.run_to_end(&order, BUILD_WITHIN, interrupted)?;
        let what = match exit {
            Some(Exit::Code(0)) => return Ok(()),
            Some(exit) => format!("the build failed with {exit}"),
            None => format!("the build did not end within {} s", BUILD_WITHIN.as_secs()),
        };
        let error = Error::subject(what).at(format!("command: {command}")).said(output.tail_texts(SAID_LINES));
        Err(match exit {
            Some(Exit::Code(NOT_FOUND)) => error.hint("a program it needs is not installed, or not in PATH"),
            _ => error.hint("run it by hand in the subject's folder (`dir`)"),
        })
    }
}
