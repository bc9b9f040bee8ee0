//! `loadline doctor`: what this machine, or one JVM on it, lets Loadline measure, and how to get the rest.

use super::args::Doctor;
use super::exit::Code;
use crate::clock::Clock;
use crate::doctor::{self, Listed};
use crate::error::Result;
use crate::report::{Page, Part, Section, Topic, print, render};

pub(super) fn doctor(verb: &Doctor, clock: Clock) -> Result<Code> {
    let sections = match verb.pid {
        Some(pid) => doctor::examine_jvm(pid, if verb.flags { Listed::All } else { Listed::Changed }, clock)?,
        None => doctor::examine(clock),
    };
    let sections = sections.into_iter().map(|of| Section::new(Topic::Answer, of.title, [Part::Facts(of.facts)]));
    let text = render(&Page::new("", sections));
    print(&text)?;
    Ok(Code::Yes)
}
