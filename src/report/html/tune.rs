//! A tuning on the page: the answer, what it changes, the way to it in pictures, every remedy, and what to set.

use super::tables::{facts, figure, lines, prose, section, table};
use crate::record::Document;
use crate::report::chart;
use crate::report::markup::{Markup, shortened};
use crate::report::summary::tune as told;
use crate::report::summary::tune_answer::answer;
use crate::report::summary::tune_request::request;

/// A sentence of a doubt.
const DOUBT_CHARS: usize = 2000;

/// The section; nothing where nothing was tuned.
pub(super) fn write(out: &mut Markup, document: &Document) {
    let Some(tune) = &document.tune else { return };
    section(out, "tune", "Tuning", |out| {
        let mut all = answer(tune);
        all.extend(told::method(tune));
        facts(out, &all);
        let tables = [
            (told::gains(tune), "What it changes, by the confirmation alone"),
            (told::owners(tune, usize::MAX), "By owner, MiB"),
        ];
        for (found, title) in tables {
            titled(out, title, found);
        }
        chart::tunes(document).iter().for_each(|one| figure(out, one));
        titled(out, "Every remedy, MiB", told::remedies(tune));
        titled(out, "Path of the search", told::path_told(tune));
        doubts(out, &tune.doubts);
        for snippet in told::snippets_of(document, tune) {
            out.words("h3", &[], &snippet.name);
            lines(out, snippet.lines.iter());
        }
        if let Some(text) = request(document, tune) {
            out.words("h3", &[], "For a change request").element("p", &[], |out| prose(out, &text.join(" ")));
        }
    });
}

fn titled(out: &mut Markup, title: &str, found: Option<crate::report::summary::Table>) {
    if let Some(found) = found {
        table(out.words("h3", &[], title), &found);
    }
}

/// What makes the answer doubtful.
fn doubts(out: &mut Markup, doubts: &[String]) {
    if doubts.is_empty() {
        return;
    }
    out.words("h3", &[], "Doubts about the answer").element("ul", &[("class", &"doubts")], |out| {
        for doubt in doubts {
            out.element("li", &[], |out| prose(out, &shortened(doubt, DOUBT_CHARS))).line();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TuneOutcome;
    use crate::report::tune_sample;

    fn written(document: &Document) -> String {
        let mut out = Markup::new();
        write(&mut out, document);
        out.as_str().to_owned()
    }

    #[test]
    fn the_section_has_the_answer_the_pictures_and_what_to_set() {
        let document = tune_sample::proved();
        let text = written(&document);
        for piece in ["<section id=\"tune\">", "412.3 MiB of 1413.0 MiB RSS", "Every remedy", "Path of the search"] {
            assert!(text.contains(piece), "{piece}");
        }
        for piece in ["MALLOC_ARENA_MAX=1", "For a change request", "Doubts about the answer", "JDK-8380060"] {
            assert!(text.contains(piece), "{piece}");
        }
        assert_eq!(text.matches("role=\"img\"").count(), 2);
        assert_eq!(written(&Document { tune: None, ..document }), "");
    }

    #[test]
    fn every_ending_has_its_section() {
        for (outcome, document) in tune_sample::endings() {
            let text = written(&document);
            assert_eq!(text.contains("docker"), outcome == TuneOutcome::Proved, "{outcome:?}");
            assert!(text.contains("gc.shenandoah"), "every remedy is there: {outcome:?}");
        }
    }

    #[test]
    fn hostile_text_is_text() {
        let text = written(&tune_sample::hostile("</pre><script>alert(1)</script>\u{202e}\u{1b}[31m"));
        assert!(!text.contains("<script") && !text.contains(['\u{1b}', '\u{202e}']));
        assert_eq!(text.matches("</pre>").count(), text.matches("<pre>").count());
        assert!(text.contains("&lt;script&gt;"));
    }
}
