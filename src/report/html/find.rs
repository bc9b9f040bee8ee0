//! The load line on the page: the answer with its proof, the picture of the search, every trial, and what to set.

use super::tables::{facts, figure, lines, section, table};
use crate::record::Document;
use crate::report::chart;
use crate::report::markup::Markup;
use crate::report::snippets::snippets;
use crate::report::summary::find as told;

/// The section; nothing where nothing was searched.
pub(super) fn write(out: &mut Markup, document: &Document) {
    let Some(find) = &document.find else { return };
    let mut title = told::what_was_sought(find).to_owned();
    title.get_mut(..1).map(str::make_ascii_uppercase);
    section(out, "find", &title, |out| {
        facts(out, &told::facts(find, &document.trials));
        chart::finds(document).iter().for_each(|one| figure(out, one));
        if let Some(others) = told::others(find) {
            out.words("h3", &[], "Other ways to size, limit in MiB");
            table(out, &others);
        }
        for snippet in snippets(find, told::command(&document.trials), told::image(&document.trials)) {
            out.words("h3", &[], &snippet.name);
            lines(out, snippet.lines.iter());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::find_sample;

    fn written(document: &Document) -> String {
        let mut out = Markup::new();
        write(&mut out, document);
        out.as_str().to_owned()
    }

    #[test]
    fn the_section_has_the_answer_the_picture_and_what_to_set() {
        let document = find_sample::found();
        let text = written(&document);
        let limit = document.find.as_ref().unwrap().limit_bytes.unwrap() >> 20;
        for piece in ["<section id=\"find\">", "load line", "5 of 5 times", "role=\"img\"", "buildpack formula"] {
            assert!(text.contains(piece), "{piece}");
        }
        for piece in [format!("--memory={limit}m"), format!("memory: {limit}Mi"), format!("MemoryMax={limit}M")] {
            assert!(text.contains(&piece), "{piece}");
        }
        assert_eq!(written(&Document { find: None, ..document }), "");
    }

    #[test]
    fn every_ending_has_its_section() {
        for (outcome, document) in find_sample::endings() {
            let text = written(&document);
            assert!(text.contains("role=\"img\""), "{outcome:?}");
            let set = document.find.as_ref().is_some_and(|find| find.limit_bytes.is_some());
            assert_eq!(text.contains("docker"), set, "{outcome:?}");
        }
    }

    #[test]
    fn hostile_text_is_text() {
        let text = written(&find_sample::hostile("</pre><script>alert(1)</script>\u{202e}\u{1b}[31m"));
        assert!(!text.contains("<script") && !text.contains(['\u{1b}', '\u{202e}']));
        assert_eq!(text.matches("</pre>").count(), text.matches("<pre>").count());
        assert!(text.contains("&lt;script&gt;"));
    }
}
