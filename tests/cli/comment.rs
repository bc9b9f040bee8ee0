//! Comments and trackers' files from recorded archives: compared with an archive, a configuration, or only budgets.

use crate::archive_halves::half;
use crate::called::{Called, folder, loadline_in};
use tempfile::TempDir;

/// A directory with `main` and `this`; the latter retains 12 MiB more.
fn before_and_after() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    half("lean", "shop", &place.path().join("main"));
    half("stout", "shop", &place.path().join("this"));
    place
}

fn report(place: &TempDir, options: &[&str]) -> Called {
    let called = loadline_in(place.path(), &[&["report", "this"], options].concat());
    assert!(called.code <= 1 && !called.stderr.contains("error"), "{called}");
    called
}

#[test]
fn a_comment_shows_changes_to_reviewers() {
    let place = before_and_after();
    let against = report(&place, &["--baseline", "main", "--budget", "rss.loaded<=+5%", "--comment", "-"]);
    insta::assert_snapshot!("what_changed_against_the_main_branch", against);
    let compared = loadline_in(place.path(), &["compare", "main", "this", "--comment", "-"]);
    let same = |text: &str| text.lines().skip(2).take(1).collect::<String>();
    assert!(compared.stdout.starts_with("<!-- loadline:shop -->\n<!-- loadline-verdict: worse -->\n"), "{compared}");
    // The sentence about the budget comes first; the sentence about the change is the same in both.
    let sentence = same(&compared.stdout);
    let budget = "budget rss.loaded&#60;=+5% was exceeded by this/app: 68.7 MiB before, 92.3 MiB now: \
                  +37.6% (+15.2% … +63.1%, 6 trials), entirely above +5.0%. ";
    assert_eq!(same(&against.stdout), format!("{budget}{sentence}"));
    assert!(sentence.starts_with("this/app vs. main/app: worse in rss.loaded"), "{sentence}");
    let called = loadline_in(&folder(), &["report", "archives/compared", "--comment", "-", "--comment-always"]);
    insta::assert_snapshot!("what_changed_against_a_configuration", called);
}

#[test]
fn a_comment_without_a_comparison_needs_an_exceeded_budget() {
    let place = before_and_after();
    let called = report(&place, &["--budget", "rss.loaded<=1MiB", "--comment", "-"]);
    assert!(
        called.code == 1 && called.stdout.contains("\nbudget rss.loaded&#60;=1MiB was exceeded by app: "),
        "{called}"
    );
    let called = report(&place, &["--budget", "rss.loaded<=1GiB", "--comment", "-"]);
    assert_eq!((called.code, called.stdout.as_str()), (0, ""), "a met budget causes no comment");
    let called = report(&place, &["--budget", "rss.loaded<=1GiB", "--comment", "-", "--comment-always"]);
    assert!(called.stdout.contains("\nNo budget was exceeded: 1 budget met.\n"), "{called}");
    // An archive compared with itself has no change.
    let place = before_and_after();
    let called = loadline_in(place.path(), &["report", "main", "--baseline", "main", "--comment", "c.md"]);
    assert_eq!((called.code, std::fs::read(place.path().join("c.md")).unwrap().len()), (0, 0), "{called}");
    loadline_in(place.path(), &["report", "main", "--comment-always"]).expect(2);
}
