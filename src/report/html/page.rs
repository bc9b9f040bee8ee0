//! A summary as a page of its own: what is no document of trials, such as the end of a JVM that was watched.

use super::tables::{facts, figure, lines, prose, section, table};
use super::{policy_of_style, style};
use crate::record::PostMortem;
use crate::report::chart::{Figure, definitions, last_hours};
use crate::report::markup::Markup;
use crate::report::summary::{Block, Summary, summarize_post_mortem};

/// What to say of a life that ended, with the picture of its last hours, as an HTML document that refers to nothing
/// outside itself and has no script.
pub fn post_mortem_page(of: &PostMortem) -> String {
    page(&summarize_post_mortem(of), last_hours(of).as_ref(), &of.loadline)
}

/// The picture stands behind the first words.
fn page(summary: &Summary, picture: Option<&Figure>, version: &str) -> String {
    let title = title(&summary.blocks).unwrap_or("loadline");
    page_of(title, version, |out| body(out, &summary.blocks, picture))
}

/// The first heading.
pub(super) fn title(blocks: &[Block]) -> Option<&str> {
    blocks.iter().find_map(|block| match block {
        Block::Heading(text) => Some(text.as_str()),
        _ => None,
    })
}

/// A page with this between its head and its foot.
pub(super) fn page_of(title: &str, version: &str, inside: impl FnOnce(&mut Markup)) -> String {
    let mut out = Markup::fixed("<!doctype html>\n");
    out.element("html", &[("lang", &"en")], |out| {
        out.element("head", &[], |out| {
            out.empty("meta", &[("charset", &"utf-8")]);
            out.empty("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &policy_of_style())]);
            out.empty("meta", &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")]);
            out.empty("meta", &[("name", &"color-scheme"), ("content", &"light dark")]);
            out.words("title", &[], title);
            out.element("style", &[], |out| {
                out.append(&style());
            });
        });
        out.line().element("body", &[], |out| {
            out.element("header", &[], |out| {
                out.words("h1", &[], title);
            });
            out.line();
            // Shapes of the charts, once.
            out.element(
                "svg",
                &[("class", &"definitions"), ("width", &"0"), ("height", &"0"), ("aria-hidden", &"true")],
                |out| {
                    out.append(&definitions());
                },
            );
            out.line();
            out.element("main", &[], inside).line();
            let written = format!(
                "Written by loadline {version}. This file is complete in itself and asks nothing of a network."
            );
            out.element("footer", &[], |out| {
                out.words("p", &[], written);
            });
        });
    });
    out.as_str().to_owned()
}

/// The first heading is that of the page.
fn body(out: &mut Markup, all: &[Block], picture: Option<&Figure>) {
    let title = all.iter().position(|block| matches!(block, Block::Heading(_)));
    let behind = all.iter().position(|block| matches!(block, Block::Text(_))).unwrap_or(0);
    for (index, block) in all.iter().enumerate() {
        if Some(index) != title {
            blocks(out, std::slice::from_ref(block), &format!("part-{index}"));
        }
        if let Some(picture) = picture.filter(|_| index == behind) {
            figure(out, picture);
        }
    }
}

/// Pieces of a summary; the ids of their sections begin with this.
pub(super) fn blocks(out: &mut Markup, all: &[Block], id: &str) {
    for (index, block) in all.iter().enumerate() {
        let id = if all.len() == 1 { id.to_owned() } else { format!("{id}-{index}") };
        match block {
            Block::Heading(text) => {
                out.words("h2", &[], text);
            }
            Block::Text(text) => {
                out.element("p", &[], |out| prose(out, text));
            }
            Block::Failing(all) if all.is_empty() => {}
            Block::Failing(all) => lines(out, all.iter()),
            Block::Facts(all) => facts(out, all),
            Block::Table(one) => section(out, &id, &one.title, |out| table(out, one)),
            Block::Doubts(all) => {
                out.element("ul", &[("class", &"doubts")], |out| {
                    for (what, next) in all {
                        out.element("li", &[], |out| {
                            prose(out, what);
                            out.element("div", &[("class", &"next soft")], |out| prose(out, next));
                        })
                        .line();
                    }
                });
            }
            Block::Literal { title, lines: all } => section(out, &id, title, |out| lines(out, all.iter())),
            Block::Bars(_) => {}
        }
        out.line();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::summary::Table;

    #[test]
    fn foreign_text_stays_text() {
        let evil = "<script>alert(1)</script>\"'&`x";
        let table =
            Table { title: evil.into(), head: vec![evil.into()], rows: vec![vec![evil.into()]], ..Table::default() };
        let pairs = vec![(evil.to_owned(), evil.to_owned())];
        let blocks = vec![
            Block::Heading(evil.into()),
            Block::Heading(evil.into()),
            Block::Text(evil.into()),
            Block::Facts(pairs.clone()),
            Block::Doubts(pairs),
            Block::Table(table),
            Block::Literal { title: evil.into(), lines: vec![evil.into()] },
            Block::Failing(vec![evil.into()]),
        ];
        let page = page(&Summary { blocks }, None, "0.1.0");
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
        assert!(!page.contains("http://") && !page.contains("https://"));
        let doubts = page.split("<ul class=\"doubts\">").nth(1).unwrap();
        assert!(doubts.contains("<div class=\"next soft\">"), "what to do stands apart from what was seen: {page}");
    }
}
