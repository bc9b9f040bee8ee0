//! `loadline report`: any report again, from an archive, without a JVM.

use super::args::Report;
use super::exit::Code;
use crate::archive;
use crate::error::{Error, Result};
use crate::report::{Progress, document, print, render, summarize};

pub(super) fn report(verb: &Report) -> Result<Code> {
    let archive = archive::read(&verb.archive)?;
    let text = match verb.json {
        true => document(&archive.conditions, &archive.trials),
        false => render(&summarize(&archive.conditions, &archive.trials, &archive.missing)),
    };
    print(&text).map_err(|cause| Error::io("write to", "standard output", &cause))?;
    if verb.json {
        let mut talk = Progress::new(false);
        archive.missing.iter().for_each(|what| talk.warn(&format!("warning: {what}")));
    }
    Ok(Code::Yes)
}
