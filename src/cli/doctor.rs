//! `loadline doctor`: what this machine, or one JVM on it, lets Loadline measure, and how to get the rest.

use super::account::pid;
use super::exit::Code;
use super::session::Call;
use crate::doctor::{self, Listed};
use crate::error::Result;
use crate::report::{Page, Part, Section, Topic, print, render};
use clap::Parser;

/// `loadline doctor`
#[derive(Debug, Parser)]
pub(super) struct Verb {
    /// A JVM by its process id: what can be read of it, with which flags it runs and who set them, and whether it can
    /// be attached to; nothing is asked of it
    #[arg(value_name = "PID", value_parser = pid)]
    pid: Option<u32>,
    /// All flags of that JVM, those at their default too
    #[arg(long, requires = "pid")]
    flags: bool,
}

pub(super) fn run(verb: Verb, Call { clock, .. }: Call) -> Result<Code> {
    let sections = match verb.pid {
        Some(pid) => doctor::examine_jvm(pid, if verb.flags { Listed::All } else { Listed::Changed }, clock)?,
        None => doctor::examine(clock),
    };
    let sections = sections.into_iter().map(|of| Section::new(Topic::Answer, of.title, [Part::Facts(of.facts)]));
    let text = render(&Page::new("", sections));
    print(&text)?;
    Ok(Code::Yes)
}
