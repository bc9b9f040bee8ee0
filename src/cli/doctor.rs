//! `loadline doctor`: what Loadline can measure on this machine or in one JVM, and how to enable the rest.

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
    /// PID of a JVM: show what Loadline can read from it, where each of its flags was set, and whether the attach API
    /// works. Sends nothing to the JVM
    #[arg(value_name = "PID", value_parser = pid)]
    pid: Option<u32>,
    /// Show all flags of the JVM, including those left at their defaults
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
