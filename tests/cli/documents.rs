//! The documents against the program: messages that are explained are still said, links lead somewhere.

use crate::called::{read, root};
use crate::schemas::doubts;
use std::path::{Path, PathBuf};

/// Headings of the troubleshooting document that quote a message.
fn messages() -> Vec<String> {
    let text = read(root().join("docs/troubleshooting.md"));
    let found: Vec<String> = text.lines().filter_map(|line| line.strip_prefix("### ")).map(str::to_owned).collect();
    assert!(found.len() >= 40, "{}", found.len());
    found
}

/// What stays of a message when what stands in backticks is taken out.
fn fixed(message: &str) -> Vec<&str> {
    let pieces = message.split('`').step_by(2).map(|piece| piece.trim_matches(|c: char| !c.is_alphanumeric()));
    pieces.filter(|piece| !piece.is_empty()).collect()
}

/// All of `src` without its tests, each string on one line.
fn sources() -> String {
    let mut text = String::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "rs") => text.push_str(&joined(&read(path))),
                false => {}
            }
        }
    }
    text
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Without tests; a string that goes on after `\` and a line end is one string.
fn joined(source: &str) -> String {
    let work = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let mut pieces = work.split("\\\n");
    let first = pieces.next().unwrap().to_owned();
    pieces.fold(first, |text, piece| text + piece.trim_start())
}

/// A sentence may be put together of two parts, such as `the subject` and what it did not do.
fn said(piece: &str, sources: &str) -> bool {
    let is_part = |text: &str| text.contains(' ') && sources.contains(text);
    let splits = piece.match_indices(' ').map(|(at, _)| piece.split_at(at));
    sources.contains(piece) || splits.into_iter().any(|(one, two)| is_part(one) && is_part(two.trim_start()))
}

#[test]
fn every_message_explained_is_still_said() {
    let sources = sources();
    for message in messages() {
        for piece in fixed(&message) {
            assert!(said(piece, &sources), "no source says `{piece}` of: {message}");
        }
    }
    assert!(!said("the subject did not feel well", &sources), "this check must be able to fail");
}

#[test]
fn every_kind_of_doubt_is_explained() {
    let messages = messages();
    let explains = |message: &str, text: &str| {
        let pieces = fixed(message);
        let mut rest = text;
        let mut in_order = |piece: &&str| match rest.find(*piece) {
            Some(at) => {
                rest = &rest[at + piece.len()..];
                true
            }
            None => false,
        };
        pieces.iter().map(|piece| piece.len()).sum::<usize>() >= "at mark".len() && pieces.iter().all(&mut in_order)
    };
    for doubt in doubts() {
        let text = doubt.text();
        assert!(messages.iter().any(|message| explains(message, &text)), "not explained: {text}");
    }
}

#[test]
fn every_entry_ends_with_a_command() {
    let text = read(root().join("docs/troubleshooting.md"));
    for entry in text.split("\n### ").skip(1) {
        let entry = entry.split("\n## ").next().unwrap().trim_end();
        let (causes, command) = entry.split_once("```console\n$ ").unwrap_or_else(|| panic!("no command: {entry}"));
        assert!(causes.contains("\n- "), "no cause: {entry}");
        assert!(command.ends_with("\n```") && command.lines().count() == 2, "not one command: {entry}");
    }
}

/// Every document that a reader is shown: those of the root, of `docs`, and the README of every folder.
fn documents() -> Vec<PathBuf> {
    let is_document = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
    let mut found: Vec<PathBuf> = entries(&root()).into_iter().filter(is_document).collect();
    found.extend(entries(&root().join("docs")).into_iter().filter(is_document));
    let folders = ["bench", "scenarios", "tests/samples", "tests/cli/archives"].map(|name| root().join(name));
    let folders = folders.into_iter().chain(entries(&root().join("scenarios")));
    found.extend(folders.map(|folder| folder.join("README.md")).filter(|file| file.exists()));
    found
}

/// Prose stands one sentence on a line, so that a change of one shows as one.
#[test]
fn documents_have_a_sentence_a_line_and_whole_links() {
    let files = documents();
    assert!(files.len() >= 20, "{files:?}");
    for path in files {
        let name = path.display();
        let mut in_code = false;
        for line in read(&path).lines() {
            in_code ^= line.starts_with("```");
            if in_code || line.starts_with(['|', '#']) {
                continue;
            }
            // An item of a list may say why in the same line.
            let item = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
            let is_item = item.starts_with("- ") || item.starts_with(". ");
            let sentences = line.match_indices(". ").filter(|_| !is_item).filter(|(at, _)| {
                let next = line[at + 2..].chars().next();
                next.is_some_and(char::is_uppercase) && !line[..*at].ends_with(|c: char| c.is_ascii_digit())
            });
            assert_eq!(sentences.count(), 0, "{name}: two sentences: {line}");
            for target in line.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
                let file = target.split('#').next().unwrap();
                let exists = target.contains("://") || path.parent().unwrap().join(file).exists();
                assert!(exists, "{name}: `{target}` is not there");
            }
        }
    }
}
