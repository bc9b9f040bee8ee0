//! Prints a page as HTML: sections, verdicts with a marker and color, charts, tables.

use super::tables::{badge, facts, figure, lines, prose, table};
use crate::markup::{Attribute, Markup};
use crate::page::{Fold, Page, Part, Section, Verdict};
use crate::table::Table;
use crate::units::shortened;

/// Maximum length of a name in a heading.
const NAME_CHARS: usize = 160;
/// Maximum length of a sentence.
const TEXT_CHARS: usize = 2000;
/// Verdicts at the top of the page; the sections below have all of them.
const VERDICTS_MAX: usize = 24;
/// Doubts shown; hundreds would be repetitive.
const DOUBTS_MAX: usize = 200;
/// A larger page gets no more charts; about eighty long trials fit.
const CHARTS_BYTES_MAX: usize = 8 << 20;

pub(super) fn write(out: &mut Markup, page: &Page) {
    let mut charts = Charts::default();
    page.sections.iter().for_each(|of| section(out, of, 2, &mut charts));
    if charts.left_out > 0 {
        let what = format!("{} charts are left out to keep the page small; ", charts.left_out);
        out.element("p", &[], |out| prose(out, &format!("{what}`loadline report --plot` draws them.")));
    }
}

#[derive(Debug, Default)]
struct Charts {
    bytes: usize,
    /// The number of omitted charts.
    left_out: usize,
}

pub(super) fn links(out: &mut Markup, page: &Page) {
    let named: Vec<&Section> = page.sections.iter().filter(|of| !of.id.is_empty() && !of.heading.is_empty()).collect();
    if named.is_empty() {
        return;
    }
    out.element("nav", &[("aria-label", &"Sections")], |out| {
        for of in named {
            out.words("a", &[("href", &format!("#{}", of.id))], heading_of(of, 2)).text(" ");
        }
    });
}

fn heading_of(of: &Section, level: usize) -> String {
    shortened(&if level == 2 { of.caption() } else { of.heading.clone() }, NAME_CHARS)
}

fn section(out: &mut Markup, of: &Section, level: usize, charts: &mut Charts) {
    let id: &[Attribute<'_>] = if of.id.is_empty() { &[] } else { &[("id", &of.id)] };
    let mut inside = |out: &mut Markup, level| of.parts.iter().for_each(|one| part(out, one, of, level, charts));
    if of.fold != Fold::Never {
        let open: &[Attribute<'_>] = if of.fold == Fold::Open { &[("open", &"")] } else { &[] };
        let class: &[Attribute<'_>] = &[("class", &"trial")];
        out.element("details", &[class, id, open].concat(), |out| {
            inside(out.words("summary", &[], heading_of(of, level)), level);
        });
    } else if of.heading.is_empty() {
        let label: &[Attribute<'_>] = if id.is_empty() { &[] } else { &[("aria-label", &of.id)] };
        out.element("section", &[id, label].concat(), |out| inside(out, level));
    } else {
        out.element("section", id, |out| {
            inside(out.words(tag(level), &[], heading_of(of, level)).line(), level + 1);
        });
    }
    out.line();
}

fn part(out: &mut Markup, part: &Part, of: &Section, level: usize, charts: &mut Charts) {
    match part {
        Part::Text(text) => drop(out.element("p", &[], |out| prose(out, &shortened(text, TEXT_CHARS)))),
        Part::Facts(all) => facts(out, all),
        Part::Table(one) => {
            if !one.title.is_empty() && !one.title.eq_ignore_ascii_case(&of.heading) {
                out.words(tag(level), &[], shortened(&one.title, NAME_CHARS));
            }
            table(out, one);
        }
        Part::Orders(orders) => ordered(out, orders),
        Part::Figure(_) if charts.bytes > CHARTS_BYTES_MAX => charts.left_out += 1,
        Part::Figure(one) => {
            let before = out.as_str().len();
            figure(out, one);
            charts.bytes += out.as_str().len() - before;
        }
        Part::Verdicts(all) => verdicts(out, all),
        Part::Doubts(all) => doubts(out, all),
        Part::Literal(of) => {
            if !of.title.is_empty() {
                out.words(tag(level), &[], &of.title);
            }
            lines(out, &of.lines);
        }
        Part::Section(within) => section(out, within, level, charts),
        // A chart shows the same data.
        Part::Bars(_) => {}
    }
    out.line();
}

/// A heading's element, down to level four.
fn tag(level: usize) -> &'static str {
    match level {
        ..=2 => "h2",
        3 => "h3",
        _ => "h4",
    }
}

fn verdicts(out: &mut Markup, all: &[Verdict]) {
    if all.is_empty() {
        return;
    }
    out.element("ul", &[("class", &"verdicts large")], |out| {
        for of in all.iter().take(VERDICTS_MAX) {
            out.element("li", &[], |out| {
                badge(out, of.standing, &of.word);
                out.element("span", &[], |out| {
                    if !of.about.is_empty() {
                        out.words("b", &[], format!("{}:", shortened(&of.about, NAME_CHARS))).text(" ");
                    }
                    prose(out, &shortened(&of.text, TEXT_CHARS));
                });
            })
            .line();
        }
    });
    let left_out = all.len().saturating_sub(VERDICTS_MAX);
    if left_out > 0 {
        out.words("p", &[("class", &"soft")], format!("{left_out} more are in the sections below."));
    }
}

fn doubts(out: &mut Markup, all: &[(String, String)]) {
    out.element("ul", &[("class", &"doubts")], |out| {
        for (what, next) in all.iter().take(DOUBTS_MAX) {
            out.element("li", &[], |out| {
                prose(out, &shortened(what, TEXT_CHARS));
                if !next.is_empty() {
                    let next = shortened(next, TEXT_CHARS);
                    out.element("div", &[("class", &"next soft")], |out| prose(out, &next));
                }
            })
            .line();
        }
    });
}

/// The table in every order, with buttons to choose one. Needs no script, because the page contains a table per order.
fn ordered(out: &mut Markup, orders: &[(&'static str, Table)]) {
    out.element("div", &[("class", &"orders"), ("role", &"group"), ("aria-label", &"Order")], |out| {
        for (number, (word, _)) in orders.iter().enumerate() {
            let id = format!("by-{word}");
            let usual: &[Attribute<'_>] = if number == 0 { &[("checked", &"")] } else { &[] };
            let radio: [Attribute<'_>; 3] = [("type", &"radio"), ("name", &"order"), ("id", &id)];
            out.empty("input", &[&radio, usual].concat());
            out.words("label", &[("for", &id)], format!("by {word}"));
        }
        for (_, one) in orders {
            out.element("div", &[], |out| table(out, one)).line();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Literal, Topic};
    use crate::words::Standing;

    #[test]
    fn foreign_text_is_escaped_in_page_parts() {
        let evil = "<script>alert(1)</script>\"'&`x";
        let text = || evil.to_owned();
        let pairs = vec![(text(), text())];
        let table = Table::new(evil, [evil], [vec![text()], vec!["x".repeat(10_000)]]);
        let verdict = Verdict::new(Standing::Fail, evil, text()).about(evil);
        let parts = vec![
            Part::Text(text()),
            Part::Facts(pairs.clone()),
            Part::Doubts(pairs),
            Part::Orders(vec![("name", table.clone())]),
            Part::Table(table),
            Part::Literal(Literal { title: text(), lines: vec![text()] }),
            Part::Verdicts(vec![verdict]),
        ];
        let within = Part::Section(Section::new(Topic::Answer, evil, parts.clone()).folded(Fold::Open).id(evil));
        let page = Page::new(evil, [Section::new(Topic::Answer, evil, [parts, vec![within]].concat())]);
        let mut out = Markup::new();
        write(&mut out, &page);
        let page = out.as_str();
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
        assert!(!page.contains("http://") && !page.contains("https://"));
        assert!(page.len() < 10_000, "a cell has a maximum length: {}", page.len());
        let doubts = page.split("<ul class=\"doubts\">").nth(1).unwrap();
        assert!(doubts.contains("<div class=\"next soft\">"), "the next step is separate from the doubt: {page}");
    }
}
