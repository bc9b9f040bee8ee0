//! What is said of tunings of a made-up server: each ending, each number, hostile text, records of any content.

use super::super::summarize;
use super::*;
use crate::report::terminal::render;
use crate::report::tune_sample;

const WIDTH: usize = 80;

fn shown_whole(document: &Document, depth: Depth) -> String {
    render(&summarize(document, &[], depth))
}

fn screen(document: &Document) -> String {
    shown_whole(document, Depth::default())
}

#[test]
fn a_tuning_that_was_proved() {
    insta::assert_snapshot!(screen(&tune_sample::proved()));
}
