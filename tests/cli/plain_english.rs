//! The pages that a stranger reads first: short, in plain English, each with a command.

use crate::called::{read, root};
use std::path::PathBuf;

/// Flesch (1948): 60 to 70 is plain English. Code is counted as a short word.
const READING_EASE_MIN: f64 = 55.0;
const SENTENCE_WORDS_MAX: usize = 30;
const PAGE_WORDS_MAX: usize = 250;
const README: (usize, usize) = (90, 600);
/// Habits that keep readers out.
const HABITS: [&str; 9] =
    [" is said", " is told", " anew", " what is not ", " stands ", " is none", " nobody ", " as is.", " beside it"];

fn pages() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join("docs/how-to")).unwrap();
    let mut pages: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    assert!(pages.len() >= 10, "{pages:?}");
    pages
}

/// The sentences of a page: no code, no tables, no headings; the words of links, and `code` for what is between
/// backticks.
fn sentences(text: &str) -> Vec<String> {
    let (mut prose, mut in_code) = (String::new(), false);
    for line in text.lines() {
        in_code ^= line.starts_with("```");
        if in_code || line.starts_with(['|', '#', '`']) {
            continue;
        }
        let literal = line.split('`').enumerate().map(|(at, part)| if at % 2 == 1 { "code" } else { part });
        let line: String = literal.collect();
        let linked = line.split("](").map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
        prose.push_str(&format!("{}\n", linked.collect::<Vec<_>>().join(" ")));
    }
    let ends = |c: char| matches!(c, '.' | '!' | '?' | ':' | ';' | '\n');
    prose.split(ends).map(str::trim).filter(|sentence| sentence.contains(' ')).map(str::to_owned).collect()
}

fn words(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split(|c: char| !c.is_alphabetic() && c != '\'').filter(|word| !word.is_empty())
}

/// Groups of vowels, a silent `e` at the end left out.
fn syllables(word: &str) -> usize {
    let is_vowel = |c: char| "aeiouyAEIOUY".contains(c);
    let letters: Vec<bool> = word.chars().map(is_vowel).collect();
    let groups = letters.iter().enumerate().filter(|(at, vowel)| **vowel && (*at == 0 || !letters[at - 1])).count();
    let silent = word.ends_with('e') && !word.ends_with("le") && groups > 1;
    (groups - usize::from(silent)).max(1)
}

fn reading_ease(sentences: &[String]) -> f64 {
    let words: Vec<&str> = sentences.iter().flat_map(|sentence| words(sentence)).collect();
    let syllables: usize = words.iter().map(|word| syllables(word)).sum();
    let each = words.len() as f64;
    206.835 - 1.015 * each / sentences.len() as f64 - 84.6 * syllables as f64 / each
}

#[test]
fn the_first_pages_read_easily() {
    for page in pages().into_iter().chain([root().join("README.md")]) {
        let (name, text) = (page.display().to_string(), read(&page));
        let found = sentences(&text);
        let ease = reading_ease(&found);
        assert!(ease >= READING_EASE_MIN, "{name}: reading ease {ease:.0}");
        let long = found.iter().find(|sentence| words(sentence).count() > SENTENCE_WORDS_MAX);
        assert_eq!(long, None, "{name}: more than {SENTENCE_WORDS_MAX} words in a sentence");
        for habit in HABITS {
            assert!(!found.iter().any(|sentence| sentence.contains(habit)), "{name}: `{habit}`");
        }
    }
}

#[test]
fn the_first_pages_are_short_and_have_a_command_each() {
    for page in pages() {
        let text = read(&page);
        let count = text.split_whitespace().count();
        assert!(count <= PAGE_WORDS_MAX, "{}: {count} words", page.display());
        assert!(text.starts_with("# ") && text.contains("loadline "), "{}", page.display());
    }
    let readme = read(root().join("README.md"));
    let (lines, words) = (readme.lines().count(), readme.split_whitespace().count());
    assert!(lines <= README.0 && words <= README.1, "README.md: {lines} lines, {words} words");
}

#[test]
fn syllables_are_those_that_are_spoken() {
    let check = |word: &str, count: usize| assert_eq!(syllables(word), count, "{word}");
    check("heap", 1);
    check("memory", 3);
    check("code", 1);
    check("table", 2);
    check("x", 1);
}
