//! The page of a history: what changed when, a picture and a table of each metric. Without a script.

use super::page::{blocks, page_of};
use super::tables::{figure, section, table};
use crate::record::HistoryDocument;
use crate::report::chart::of_metric;
use crate::report::summary::Block;
use crate::report::summary::history::{
    ROWS_PAGE, SERIES_MAX, facts, heading, rest, sentences, table as table_of, title,
};

/// Pictures of a page; hundreds of them would open slowly.
const PICTURES_MAX: usize = 60;

/// A history as an HTML document that refers to nothing outside itself and has no script.
pub fn history_page(document: &HistoryDocument) -> String {
    page_of(&heading(document), &document.loadline, |out| {
        blocks(out, &[Block::Facts(facts(document))], "head");
        let mut drawn = 0;
        for (number, series) in document.series.iter().take(SERIES_MAX).enumerate() {
            if document.series.len() > 1 {
                blocks(out, &[Block::Heading(title(series))], "series");
            }
            let told: Vec<Block> = sentences(series).into_iter().map(Block::Text).collect();
            blocks(out, &told, &format!("told-{number}"));
            for (at, metric) in series.metrics.iter().enumerate() {
                let of = table_of(series, metric, ROWS_PAGE);
                section(out, &format!("metric-{number}-{at}"), &of.title, |out| {
                    match of_metric(series, metric, &format!("history-{number}-{at}"), of.clone()) {
                        Some(picture) if drawn < PICTURES_MAX => {
                            drawn += 1;
                            figure(out, &picture);
                        }
                        _ => table(out, &of),
                    }
                });
                out.line();
            }
            let refused: Vec<Block> = series.refused.iter().map(|why| Block::Text(why.clone())).collect();
            blocks(out, &refused, &format!("refused-{number}"));
        }
        blocks(out, &rest(document), "rest");
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::history_sample;

    #[test]
    fn the_page_has_what_changed_a_picture_and_every_point() {
        let page = history_page(&history_sample::history());
        assert!(page.contains("<h1>history of tiny-http, serial</h1>"), "{page}");
        assert!(page.contains("+7.8 MiB") && page.contains("metaspace +7.5 MiB") && page.contains("<svg"));
        assert!(page.contains(">rss.loaded, MiB</text>"), "a picture says its unit: {page}");
        assert!(page.contains("9c01d2e") && page.contains("JDK: 17.0.15 | 21.0.3"));
        assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    }

    #[test]
    fn hostile_text_is_text() {
        let page = history_page(&history_sample::hostile("</title><script>alert(1)</script>\u{202e}\u{1b}[31m\"'`"));
        assert!(!page.contains("<script") && !page.contains(['\u{1b}', '\u{202e}']));
        assert!(page.contains("&lt;script&gt;"));
    }

    #[test]
    fn thousands_of_points_make_a_small_page() {
        let page = history_page(&history_sample::long(1_000));
        assert!(page.len() < 400_000, "{}", page.len());
    }
}
