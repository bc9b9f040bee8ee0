//! The exit code for the judgment of a result.

use super::exit::Code;
use crate::error::Result;
use crate::record::Document;
use crate::report::Progress;
use crate::result::{Bisected, Judgement};

/// The exit code for a printed result. For `git bisect`, explains the code on stderr.
pub(super) fn code(judgement: &Judgement, result: &Document, progress: &mut Progress) -> Result<Code> {
    if !judgement.is_for_bisect() {
        return judgement.passes(result).map(Code::of);
    }
    Ok(match judgement.bisected(result) {
        Bisected::Good => {
            progress.step("bisect: good");
            Code::Yes
        }
        Bisected::Bad => {
            progress.step("bisect: bad");
            Code::No
        }
        Bisected::Unknown(why) => {
            progress.warn(&format!("bisect: neither good nor bad: {why}"));
            Code::Skipped
        }
    })
}
