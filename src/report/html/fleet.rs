//! The page of a fleet: what has to be done something about, every service in the order that the reader chooses, what
//! has no answer, and what there is to win. Without a script: the table stands there once for each order.

use super::page::{blocks, page_of, title};
use super::tables::{section, table};
use crate::record::FleetDocument;
use crate::report::markup::{Attribute, Markup};
use crate::report::screen::Glyphs;
use crate::report::summary::fleet::{orders, services, told};
use crate::report::summary::{Block, Depth};

/// A fleet as an HTML document that refers to nothing outside itself and has no script.
pub fn fleet_page(document: &FleetDocument) -> String {
    let told = told(document, Glyphs::Blocks, Depth::default());
    let heading = title(&told.before).unwrap_or("loadline").to_owned();
    let before: Vec<Block> =
        told.before.into_iter().filter(|block| *block != Block::Heading(heading.clone())).collect();
    page_of(&heading, env!("CARGO_PKG_VERSION"), |out| {
        blocks(out, &before, "head");
        if told.services.is_some() {
            section(out, "services", "Load lines, MiB", |out| ordered(out, document));
        }
        blocks(out, &told.after, "part");
        blocks(out, told.to_win.map(Block::Text).as_slice(), "to-win");
    })
}

/// The table in every order, with what chooses one of them.
fn ordered(out: &mut Markup, document: &FleetDocument) {
    let orders = orders(document);
    out.element("div", &[("class", &"orders"), ("role", &"group"), ("aria-label", &"Order")], |out| {
        for (number, (word, _)) in orders.iter().enumerate() {
            let id = format!("by-{word}");
            let usual: &[Attribute<'_>] = if number == 0 { &[("checked", &"")] } else { &[] };
            let radio: [Attribute<'_>; 3] = [("type", &"radio"), ("name", &"order"), ("id", &id)];
            out.empty("input", &[&radio, usual].concat());
            out.words("label", &[("for", &id)], format!("by {word}"));
        }
        for (_, order) in &orders {
            let mut services = services(order, Glyphs::Blocks);
            // A page has room for whole names.
            services.rows.iter_mut().zip(order).for_each(|(row, of)| row[0].clone_from(&of.name));
            out.element("div", &[], |out| table(out, &services)).line();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fleet_sample;

    #[test]
    fn the_page_has_every_service_in_every_order_and_no_script() {
        let page = fleet_page(&fleet_sample::fleet());
        assert_eq!(page.matches("<th scope=\"row\" class=\"brief\"><div>catalogue</div></th>").count(), 5);
        assert_eq!(page.matches("type=\"radio\"").count(), 5);
        assert_eq!(page.matches(" checked=").count(), 1);
        assert!(page.contains("<h1>shop: 11 services</h1>") && page.contains("<p>3.0 GiB to win on 3 services</p>"));
        assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    }

    #[test]
    fn hostile_text_is_text() {
        let page = fleet_page(&fleet_sample::hostile("</title><script>alert(1)</script>\u{202e}\u{1b}[31m\"'"));
        assert!(!page.contains("<script") && !page.contains(['\u{1b}', '\u{202e}']));
        assert!(page.contains("&lt;script&gt;"));
    }

    #[test]
    fn a_plan_of_blocks_has_a_page_without_the_table() {
        let document = FleetDocument { services: Vec::new(), ..fleet_sample::fleet() };
        let page = fleet_page(&document);
        assert!(page.contains("<h1>shop, by nodes</h1>") && !page.contains("type=\"radio\""));
    }
}
