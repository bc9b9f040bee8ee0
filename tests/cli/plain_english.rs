//! The first pages that users read: short, in plain English, each with a command.

use crate::called::{entries, read, root, rust_files};
use std::path::{Path, PathBuf};

/// Flesch (1948): 60 to 70 is plain English. Code counts as a short word.
const READING_EASE_MIN: f64 = 55.0;
const SENTENCE_WORDS_MAX: usize = 30;
const PAGE_WORDS_MAX: usize = 250;
const README: (usize, usize) = (90, 600);
const DOCUMENTS_WORDS_MAX: usize = 25_000;
const OPENINGS: [&str; 5] = ["What", "Where", "Of", "Who", "That"];
/// Habits that make text hard to read.
const HABITS: [&str; 9] =
    [" is said", " is told", " anew", " what is not ", " stands ", " is none", " nobody ", " as is.", " beside it"];

fn pages() -> Vec<PathBuf> {
    let mut pages = entries(&root().join("docs/how-to"));
    pages.sort();
    assert!(pages.len() >= 10, "{pages:?}");
    pages
}

/// A page's sentences without code, tables, and headings; with link text, and `code` for text in backticks.
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

/// Groups of vowels, without a silent final `e`.
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
fn the_first_pages_are_easy_to_read() {
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
fn the_first_pages_are_short_and_have_a_command() {
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
fn syllables_are_counted_as_spoken() {
    let check = |word: &str, count: usize| assert_eq!(syllables(word), count, "{word}");
    check("heap", 1);
    check("memory", 3);
    check("code", 1);
    check("table", 2);
    check("x", 1);
}

/// The other pages of `docs`, except generated ones.
fn longer_pages() -> Vec<PathBuf> {
    let mut pages = entries(&root().join("docs"));
    pages.retain(|path| path.extension().is_some_and(|end| end == "md"));
    pages
}

#[test]
fn pages_avoid_long_sentences_and_weak_openings() {
    for page in longer_pages() {
        let (name, text) = (page.display().to_string(), read(&page));
        let found = sentences(&text);
        let ease = reading_ease(&found);
        assert!(ease >= READING_EASE_MIN, "{name}: reading ease {ease:.0}");
        for sentence in &found {
            assert!(words(sentence).count() <= SENTENCE_WORDS_MAX, "{name}: too long: {sentence}");
            let first = words(sentence).next().unwrap_or_default();
            let asks = text.contains(&format!("{sentence}?"));
            assert!(asks || !OPENINGS.contains(&first), "{name}: opens with `{first}`: {sentence}");
        }
    }
}

/// Findings and troubleshooting are reference pages, so their words do not count.
#[test]
fn the_documentation_is_short() {
    const LOOKED_UP: [&str; 3] = ["findings.md", "troubleshooting.md", "SUMMARY.md"];
    let is_looked_up = |page: &PathBuf| LOOKED_UP.iter().any(|name| page.ends_with(name));
    let read_through = longer_pages().into_iter().chain(pages()).filter(|page| !is_looked_up(page));
    let words: usize = read_through.map(|page| read(&page).split_whitespace().count()).sum();
    assert!(words <= DOCUMENTS_WORDS_MAX, "the documents have {words} words");
}

#[test]
fn the_site_summary_lists_each_page_once() {
    let summary = read(root().join("docs/SUMMARY.md"));
    let reference = ["keys.md", "options.md", "remedies.md"].map(|name| root().join("docs/reference").join(name));
    for page in longer_pages().into_iter().chain(pages()).chain(reference) {
        let name = page.strip_prefix(root().join("docs")).unwrap().display().to_string();
        let expected = usize::from(name != "SUMMARY.md");
        assert_eq!(summary.matches(&format!("({name})")).count(), expected, "{name}");
    }
}

/// Pages, and the complete outputs that samples come from: real runs, repeated by `bench/samples.sh`, archives of real
/// trials, and a synthetic fleet, as its page states.
const REAL_RUNS: [(&str, &[&str]); 10] = [
    ("README.md", &["docs/pictures/load-line.txt"]),
    ("docs/compare.md", &["tests/cli/snapshots/cli__compare__a_comparison_is_shown.snap"]),
    ("docs/explain.md", &["docs/pictures/explain.txt"]),
    ("docs/find.md", &["docs/pictures/load-line.txt"]),
    ("docs/findings.md", &["docs/pictures/findings.txt"]),
    ("docs/how-to/gate.md", &["docs/pictures/gate.txt"]),
    ("docs/fleet.md", &[FLEET]),
    ("docs/load.md", &["docs/pictures/load.txt"]),
    (
        "docs/memory.md",
        &[
            "docs/pictures/account.txt",
            "docs/pictures/accounts.txt",
            "docs/pictures/changes.txt",
            "docs/pictures/charge.txt",
        ],
    ),
    ("docs/tune.md", &["docs/pictures/tune.txt"]),
];
const FLEET: &str = "crates/report/src/summary/snapshots/loadline_report__summary__fleet__tests__\
                     a_fleet_is_ordered_from_insufficient_limits_to_savings.snap";

/// Whether a sample has lines of this output in order; `…` represents omitted lines.
fn is_cut_from(sample: &str, real: &str) -> bool {
    let mut rest = real.lines();
    sample.lines().filter(|line| line.trim() != "…").all(|line| rest.any(|real| real == line))
}

#[test]
fn sample_output_comes_from_real_runs() {
    for page in longer_pages().into_iter().chain(pages()).chain([root().join("README.md")]) {
        let (name, text) = (page.strip_prefix(root()).unwrap().display().to_string(), read(&page));
        let samples: Vec<&str> =
            text.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        let runs = REAL_RUNS.iter().find(|(of, _)| *of == name).map_or(&[] as &[&str], |(_, runs)| runs);
        let runs: Vec<String> = runs.iter().map(|run| read(root().join(run))).collect();
        assert_eq!(samples.is_empty(), runs.is_empty(), "{name}: REAL_RUNS must list each page with samples");
        for sample in samples {
            assert!(runs.iter().any(|real| is_cut_from(sample, real)), "{name}: no run has all lines of\n{sample}");
        }
    }
}

/// Habits that no screen text has.
const ON_SCREEN: [&str; 8] =
    [" is said", " is told", " are told", " anew", " beside it", " stands still", " stands beside", " nobody "];

/// The user-visible lines of a file: in code, only strings contain such words; in `src/cli`, the help does too.
fn lines_read<'t>(path: &Path, text: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
    let has_help = path.to_string_lossy().contains("src/cli/");
    let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = product.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(move |(_, line)| {
        let is_help = has_help && line.starts_with("    ///");
        is_help || !line.trim_start().starts_with("//")
    })
}

#[test]
fn messages_avoid_forbidden_phrases() {
    let (mut seen, mut found) = (0, Vec::new());
    for path in sources() {
        let text = read(&path);
        for (at, line) in lines_read(&path, &text) {
            seen += 1;
            found.extend(
                ON_SCREEN
                    .iter()
                    .filter(|habit| line.contains(**habit))
                    .map(|habit| format!("{}:{at}: `{habit}`", path.display())),
            );
        }
    }
    assert!(seen > 10_000, "only {seen} lines of messages were checked");
    assert_eq!(found, [] as [String; 0]);
}

/// The program's sources without tests.
fn sources() -> Vec<PathBuf> {
    const LEFT_OUT: [&str; 4] = ["tests", "target", "test-support", "made_up"];
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut files = rust_files(|folder| LEFT_OUT.contains(&&*name(folder)));
    files.retain(|path| !name(path).contains("test") && !name(path).contains("sample"));
    files
}
