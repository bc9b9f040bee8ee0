//! `loadline doctor`: what this machine lets Loadline measure, and how to get the rest.

use super::exit::Code;
use crate::clock::Clock;
use crate::doctor;
use crate::error::{Error, Result};
use crate::report::{Block, Summary, print, render};

pub(super) fn doctor(clock: Clock) -> Result<Code> {
    let sections = doctor::examine(clock).into_iter();
    let blocks = sections.flat_map(|section| [Block::Heading(section.title.to_owned()), Block::Facts(section.facts)]);
    let text = render(&Summary { blocks: blocks.collect() });
    print(&text).map_err(|cause| Error::io("write to", "standard output", &cause))?;
    Ok(Code::Yes)
}
