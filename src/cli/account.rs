//! `loadline account`: who holds the resident memory of a running JVM, now.

use super::args::{Account, By};
use super::dumps::new_file;
use super::exit::Code;
use super::session::{ISO_8601, Interrupt, utc};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::record::{ACCOUNT_SCHEMA, AccountDocument, DoubtRecord};
use crate::report::{self, Detail, Progress, print, render, summarize_account};
use crate::series;
use crate::weigh::{Collecting, Weighing};

/// Listens to signals, so that a Ctrl-C waits until the JVM's threads run again.
pub(super) fn account(verb: &Account, typed: String, clock: Clock, interrupt: &Interrupt) -> Result<Code> {
    let machine = series::machine_now(clock);
    let heap_dump = verb.heap_dump.as_deref().map(new_file).transpose()?;
    let then = Collecting { classes: verb.classes, heap_dump };
    let mut talk = Progress::new(verb.quiet);
    let weighing = Weighing { stop: !verb.no_stop, netty: verb.netty };
    let weighed = weighing.take_then(verb.pid, &clock, &then, &mut |price| talk.step(price))?;
    if interrupt.seen() {
        return Err(Error::interrupted());
    }
    let document = AccountDocument {
        schema: ACCOUNT_SCHEMA.to_owned(),
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        taken: utc(clock, ISO_8601),
        command: typed,
        machine,
        jvm: weighed.jvm,
        subject_command: weighed.command,
        mark: weighed.mark,
        objects: weighed.objects,
        heap_dump: weighed.heap_dump,
        doubts: weighed.doubts.into_iter().map(DoubtRecord::from).collect(),
    };
    let text = match verb.json {
        true => report::document(&document),
        false => render(&summarize_account(&document, &details(&verb.by))),
    };
    print(&text).map_err(|cause| Error::io("write to", "standard output", &cause))?;
    if !verb.json && verb.by.is_empty() {
        talk.step(&format!("details: loadline account {} --by thread,pool,file,tag,loader,code,region", verb.pid));
    }
    Ok(Code::Yes)
}

/// Each detail once, in the order typed.
fn details(by: &[By]) -> Vec<Detail> {
    let mut details = Vec::new();
    for by in by {
        let detail = match by {
            By::Thread => Detail::Thread,
            By::File => Detail::File,
            By::Tag => Detail::Tag,
            By::Region => Detail::Region,
            By::Loader => Detail::Loader,
            By::Code => Detail::Code,
            By::Pool => Detail::Pool,
        };
        if !details.contains(&detail) {
            details.push(detail);
        }
    }
    details
}
